"""Anyone's task or model, looked at before it is trained: whether a task says what it means, whether a model is fit to be
measured, and what delaying attention would do to it; and after it is trained: why it goes as far as it does (why/).

subject.py finds what a user names, reading.py reads with a model, dry_run.py tries the switch (flops.py: what it saves;
carry.py: what is left that carries anything), checks.py checks the model (trials.py: by reading; state.py: fed step by step;
weights.py: as it begins). task_check.py checks a task (task_trials.py: by what it draws, draws.py; chance.py: by a blind
guess). model_examination.py is the quick part for a run's model (look_ahead.py, part_shapes.py).
"""

from lengthlab.inspection.checks import Report, check
from lengthlab.inspection.dry_run import DryRun, dry_run
from lengthlab.inspection.subject import Subject, find_subject, find_task
from lengthlab.inspection.task_check import TaskReport, check_task
from lengthlab.inspection.verdict import Check

__all__ = ["Check", "DryRun", "Report", "Subject", "TaskReport", "check", "check_task", "dry_run", "find_subject", "find_task"]
