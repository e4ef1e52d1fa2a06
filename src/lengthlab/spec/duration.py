"""How long a phase lasts: steps, epochs, or until a question is mastered."""

from __future__ import annotations

from dataclasses import dataclass

from lengthlab.errors import require, require_number, require_whole
from lengthlab.registry import kebab, register

BLOCK = 50
"""Steps that are made in one go: their data is drawn together, and on a GPU nobody looks in between."""


@dataclass(frozen=True)
class Epochs:
    """A length given in the paper's epochs of 2^14 samples."""

    number: float

    def __post_init__(self) -> None:
        require_number(self.number, "the epochs of a phase", above=0)
        object.__setattr__(self, "number", float(self.number))  # 3 and 3.0 are one content


@dataclass(frozen=True)
class Mastered:
    """A length that training itself decides: the phase is over when `question` was right in at least `accuracy` of 200 samples
    kept for that, at so many `looks` in a row, `every` steps apart; after `limit` steps in any case. If no question is named,
    it is what the task calls its state, or else the first that the phase asks.

    The samples are of `times` times the longest training length: 1 is inside the training range; more is a probe beyond it,
    which decides when the phase ends and is never learned from.

    >>> from lengthlab.spec.schedule import delayed
    >>> delayed(first=Mastered("modulo", accuracy=0.95), joint=16_000).phases[0].steps_at(batch=256)  # at most
    20000
    """

    question: str = ""
    accuracy: float = 0.99
    times: int = 1
    looks: int = 3
    every: int = 100
    limit: int = 20_000

    def __post_init__(self) -> None:
        require_number(self.accuracy, "accuracy", above=0, most=1)
        object.__setattr__(self, "accuracy", float(self.accuracy))  # 1 and 1.0 are one content
        for name in ("times", "looks", "every", "limit"):
            require_whole(getattr(self, name), name, 1)
        require(self.every % BLOCK == 0, f"every must be a multiple of {BLOCK}, the steps made in one go, not {self.every}")
        require(self.limit > self.every, f"limit must be more than every = {self.every}, or nobody looks, not {self.limit}")


Duration = int | Epochs | Mastered
"""Steps, epochs of 2^14 samples, or until a question is mastered."""


def epochs(number: float) -> Epochs:
    """So many times 2^14 samples.

    >>> from lengthlab.spec.schedule import Phase
    >>> Phase(epochs(3), lr=1e-4).steps_at(batch=64)
    768
    """
    return Epochs(number)


def check_length(name: str, length: Duration, least: int = 1) -> None:
    """Steps are whole, and at least so many."""
    if not isinstance(length, (Epochs, Mastered)):
        whole = isinstance(length, int) and not isinstance(length, bool)
        steps = f"at least {least} step{'s' if least != 1 else ''}"
        require(whole, f"schedule.{name} must be a whole number of steps, not {length!r}")
        require(length >= least, f"schedule.{name} must be {steps}, not {length}")


for _length in (Epochs, Mastered):
    register(_length, kebab(_length.__name__), _length)
