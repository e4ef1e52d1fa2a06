"""Claims as data: one file or folder an experiment, its docstring gives the claim, the cost and the command. No torch."""

from pathlib import Path

from lengthlab.errors import LabError, a_kind, nearest, require
from lengthlab.experiments.association import ASSOCIATION
from lengthlab.experiments.auxiliary import AUXILIARY
from lengthlab.experiments.born import BORN
from lengthlab.experiments.coupling import COUPLING
from lengthlab.experiments.crasp import CRASP
from lengthlab.experiments.dat import DAT
from lengthlab.experiments.drawing import Grid as Grid
from lengthlab.experiments.drawing import Strip as Strip
from lengthlab.experiments.far import FAR
from lengthlab.experiments.hard_states import HARD_STATES
from lengthlab.experiments.hints import HINTS
from lengthlab.experiments.long_memory import LONG_MEMORY
from lengthlab.experiments.needles import NEEDLES
from lengthlab.experiments.passkey import PASSKEY
from lengthlab.experiments.plateau import PLATEAU
from lengthlab.experiments.recurrences import RECURRENCES_STUDY
from lengthlab.experiments.remedies import REMEDIES
from lengthlab.experiments.rules import RULES
from lengthlab.experiments.size import Size as Size
from lengthlab.experiments.study import Arm as Arm
from lengthlab.experiments.study import At as At
from lengthlab.experiments.study import Check as Check
from lengthlab.experiments.study import Claim as Claim
from lengthlab.experiments.study import Reference as Reference
from lengthlab.experiments.study import Section as Section
from lengthlab.experiments.study import Source as Source
from lengthlab.experiments.study import Study as Study
from lengthlab.experiments.variable_tracking import VARIABLE_TRACKING
from lengthlab.registry import register, registered
from lengthlab.spec.source import is_reference, load_reference

_PAPERS = (DAT, FAR, REMEDIES, PLATEAU, BORN, CRASP, COUPLING)
_MEMORY = (RECURRENCES_STUDY, HARD_STATES, PASSKEY, NEEDLES, VARIABLE_TRACKING, LONG_MEMORY)
_HELPED = (HINTS, ASSOCIATION, AUXILIARY)
for _study in (*_PAPERS, *_MEMORY, RULES, *_HELPED):
    register(Study, _study.name, lambda study=_study: study)


def studies() -> dict[str, Study]:
    """All that are registered, ours first."""
    return {name: make() for name, make in registered(Study).items()}


def find_study(name: str, folder: Path = Path()) -> Study:
    """One that is registered by its name, or a user's own: `my_study.py:STUDY`.

    >>> find_study("far").seeds
    3
    """
    if is_reference(name):
        found = load_reference(name, folder)
        require(isinstance(found, Study), f"{name} is {a_kind(found)}, not a Study")
        assert isinstance(found, Study)
        return found
    known = registered(Study)
    if name not in known:
        raise LabError(f"unknown study '{name}'; {nearest(name, known)}; one of your own is named my_study.py:STUDY")
    made: Study = known[name]()
    return made
