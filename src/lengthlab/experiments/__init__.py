"""Claims as data: an experiment is a function that returns runs; its docstring gives the claim, the cost and the command."""

from collections.abc import Callable, Sequence

from lengthlab.experiments.dat import dat
from lengthlab.experiments.demo import demo
from lengthlab.run import Run

EXPERIMENTS: dict[str, Callable[[Sequence[int]], list[Run]]] = {"demo": demo, "dat": dat}
