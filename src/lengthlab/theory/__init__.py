"""What is promised: C-RASP[pos] programs, and which tasks have one.

primitives.py has what programs are made of, program.py puts it together, plain.py reads one sequence and batches.py many,
text.py writes a program down. retrieval.py, copying.py, counting.py and languages.py have the programs of our tasks, lemmas.py
says which task has which, and by whose proof. verdict.py is what a table shows, guarantee.py what `lengthlab guarantee` tells;
trial.py holds a program against its task (prompts.py: on which inputs). Only trial.py draws, and needs torch for it.
"""

from lengthlab.theory.guarantee import Guarantee, guarantee
from lengthlab.theory.primitives import (
    Choice,
    Count,
    Periodic,
    Predicate,
    all_of,
    any_of,
    back,
    count,
    exists,
    token,
)
from lengthlab.theory.program import Program
from lengthlab.theory.text import shown
from lengthlab.theory.trial import Trial
from lengthlab.theory.verdict import Verdict, verdict

__all__ = [
    "Choice",
    "Count",
    "Guarantee",
    "Periodic",
    "Predicate",
    "Program",
    "Trial",
    "Verdict",
    "all_of",
    "any_of",
    "back",
    "count",
    "exists",
    "guarantee",
    "shown",
    "token",
    "verdict",
]
