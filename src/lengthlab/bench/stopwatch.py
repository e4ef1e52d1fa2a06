"""How a way of training is timed."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

WARM_UP = 3
"""Steps before anything is timed, and again to find out how long they take; where they come by turns, one turn."""
LEAST_TURNS = 2
"""Of a repeat: in one turn alone, runs side by side would all begin together and never meet each other half-way."""


class Trainer(Protocol):
    """Models in training, one or several."""

    turn: int
    """Steps come in multiples of this."""

    def go(self, steps: int) -> None:
        """So many steps of every model, and wait until they are done."""


@dataclass(frozen=True)
class Patience:
    """How often a measurement is repeated, and about how long each time takes."""

    repeats: int
    seconds: float


def paces(trainer: Trainer, patience: Patience) -> tuple[float, ...]:
    """Seconds for one step of every model, repeat by repeat.

    >>> class Idle:
    ...     turn = 50
    ...     def go(self, steps: int) -> None:
    ...         assert steps % self.turn == 0
    >>> len(paces(Idle(), Patience(repeats=3, seconds=0.001)))
    3
    """
    warm_up = WARM_UP if trainer.turn == 1 else trainer.turn
    trainer.go(warm_up)
    pace = _pace(trainer, warm_up)
    turns = max(LEAST_TURNS, round(patience.seconds / max(pace * trainer.turn, 1e-6)))
    return tuple(_pace(trainer, turns * trainer.turn) for _ in range(patience.repeats))


def _pace(trainer: Trainer, steps: int) -> float:
    start = perf_counter()
    trainer.go(steps)
    return (perf_counter() - start) / steps
