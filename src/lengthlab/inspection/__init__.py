"""Anyone's model, looked at before it is trained: what delaying attention would do to it, and whether it is fit to be measured.

subject.py finds the model that a user names, reading.py reads with it, dry_run.py tries the switch (flops.py: what it saves;
carry.py: what is left that carries anything), checks.py checks the model (trials.py: by
reading; state.py: fed step by step; weights.py: as it begins).
"""

from lengthlab.inspection.checks import Check, Report, check
from lengthlab.inspection.dry_run import DryRun, dry_run
from lengthlab.inspection.subject import Subject, find_subject

__all__ = ["Check", "DryRun", "Report", "Subject", "check", "dry_run", "find_subject"]
