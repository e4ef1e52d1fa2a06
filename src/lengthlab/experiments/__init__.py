"""Claims as data: an experiment is a function that returns runs; its docstring gives the claim, the cost and the command."""

from collections.abc import Callable, Sequence

from lengthlab.experiments import far as _far
from lengthlab.experiments import plateau as _plateau
from lengthlab.experiments import remedies as _remedies
from lengthlab.experiments.dat import dat
from lengthlab.experiments.demo import demo
from lengthlab.experiments.study import Study
from lengthlab.run import Run

EXPERIMENTS: dict[str, Callable[[Sequence[int]], list[Run]]] = {
    "demo": demo,
    "dat": dat,
    "far": _far.far,
    "remedies": _remedies.remedies,
    "plateau": _plateau.plateau,
}
STUDIES: dict[str, Study] = {study.name: study for study in (_far.STUDY, _remedies.STUDY, _plateau.STUDY)}
