"""Leave-Square-Out: all pairs of numbers below 100 as a plane, a square of which is kept from training (Hu et al. 2024, arXiv
2402.17709). Who adds by a rule has the square right; who adds by cases he has seen has not, and yet has right as many pairs
that are held out at random, because each of these has neighbours that are not.

Shapes: A first numbers, B second numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lengthlab.errors import require, require_whole

SIDE = 100
"""Numbers of the plane: 0 to 99."""
NONE = -1
"""Stands for an answer that is no number."""
Held = Literal["square", "random"]
HELD: tuple[Held, ...] = ("square", "random")


@dataclass(frozen=True)
class Split:
    """Which pairs are held out: a square that reaches `half` to each side of its centre, or as many pairs at random.

    >>> square, other = Split(half=8), Split("random", half=8)
    >>> square.size, int(square.held_out.sum()), int(other.held_out.sum())
    (289, 289, 289)
    >>> bool(square.held_out[42, 58]), bool(square.held_out[41, 58])
    (True, False)
    """

    held: Held = "square"
    half: int = 8
    centre: tuple[int, int] = (50, 50)

    def __post_init__(self) -> None:
        require(self.held in HELD, f"what is held out is 'square' or 'random', not {self.held!r}")
        require_whole(self.half, "half", 0)
        pair = isinstance(self.centre, (tuple, list)) and len(self.centre) == 2
        require(pair, f"centre is the pair of numbers in the middle of the square, like 50,50, not {self.centre!r}")
        for number in self.centre:
            require_whole(number, "each number of centre", 0, SIDE - 1)
        inside = all(self.half <= number < SIDE - self.half for number in self.centre)
        where = f"a square that reaches {self.half} to each side of {self.centre[0]},{self.centre[1]}"
        require(inside, f"{where} is not inside the plane, which ends at 0 and {SIDE - 1}")
        object.__setattr__(self, "centre", tuple(self.centre))

    @property
    def size(self) -> int:
        """Pairs that are held out."""
        return (2 * self.half + 1) ** 2

    @cached_property
    def held_out(self) -> NDArray[np.bool_]:
        """True for a pair that is held out; the same random ones whatever the model."""
        held = np.zeros((SIDE, SIDE), bool)
        if self.held == "random":
            chosen = np.random.default_rng(self.half).choice(SIDE * SIDE, self.size, replace=False)
            held.flat[chosen] = True
        else:
            a, b = self.centre
            held[a - self.half : a + self.half + 1, b - self.half : b + self.half + 1] = True
        return held

    def pairs(self, held: bool) -> NDArray[np.int64]:
        """pairs_P2: those that are held out, or the others."""
        return np.argwhere(self.held_out == held)


SUM_AB = np.add.outer(np.arange(SIDE), np.arange(SIDE))


@dataclass(frozen=True, eq=False)
class Plane:
    """What a model says to every pair: `said_AB` are numbers, NONE where it said something else.

    >>> plane = Plane("adder", Split(), seed=0, said_AB=SUM_AB)
    >>> plane.right(held=True), plane.right(held=False), plane.summary["held_out_accuracy"]
    (289, 9711, 1.0)
    """

    model: str
    split: Split
    seed: int
    said_AB: NDArray[np.int64]

    @property
    def correct(self) -> NDArray[np.bool_]:
        return np.equal(self.said_AB, SUM_AB)

    def right(self, held: bool) -> int:
        """How many of the pairs that are held out, or of the others, it has right."""
        return int(self.correct[self.split.held_out == held].sum())

    @property
    def summary(self) -> dict[str, Any]:
        """Sizes and accuracies, by name."""
        held, trained = self.split.size, SIDE * SIDE - self.split.size
        return {
            "model": self.model,
            "split": self.split.held,
            "half": self.split.half,
            "centre": list(self.split.centre),
            "seed": self.seed,
            "trained_on": trained,
            "held_out": held,
            "trained_on_right": self.right(held=False),
            "held_out_right": self.right(held=True),
            "trained_on_accuracy": self.right(held=False) / trained,
            "held_out_accuracy": self.right(held=True) / held,
        }

    def rows(self) -> Iterator[tuple[str, str, int, int, int, int, int, int | str]]:
        """A row for each pair: model, split, seed, a, b, whether it is held out, the sum, what was said."""
        for a in range(SIDE):
            for b in range(SIDE):
                said = int(self.said_AB[a, b])
                held = int(self.split.held_out[a, b])
                yield self.model, self.split.held, self.seed, a, b, held, a + b, "" if said == NONE else said


COLUMNS = ("model", "split", "seed", "a", "b", "held_out", "sum", "said")


def as_csv(planes: Iterable[Plane]) -> str:
    """Every pair of every plane; `said` is empty where no number was said."""
    lines = [",".join(COLUMNS)]
    for plane in planes:
        lines += [",".join([_quoted(str(row[0])), *map(str, row[1:])]) for row in plane.rows()]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def in_order(planes: Sequence[Plane]) -> dict[tuple[str, Held], list[Plane]]:
    """The seeds of each model and split, as models come and the square first."""
    names = list(dict.fromkeys(plane.model for plane in planes))
    found = {(name, held): [p for p in planes if (p.model, p.split.held) == (name, held)] for name in names for held in HELD}
    return {key: seeds for key, seeds in found.items() if seeds}
