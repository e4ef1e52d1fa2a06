"""Why a trained model goes as far as it does, from its weights and its task.

samples.py: on what. parts.py finds attention and recurrence, cuts.py cuts one of them, pathways.py says who carries an answer.
attention_aim.py: is attention sharp (patience.py: no task is waited for for ever). state_probe.py: is the state right.
breaking_length.py: where will it break. remainder.py: what is left. pictures.py: what it looks like. words.py says it plainly,
examination.py does all of it.
"""

from lengthlab.inspection.why.examination import examine as examine
