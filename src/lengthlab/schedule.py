"""When what learns: a schedule is a row of phases, each with its length, its learning rates, the parts that are off and the
questions that count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Literal

from lengthlab.errors import require

EPOCH = 2**14
"""Samples in one of the paper's epochs; its data is drawn afresh, so an epoch is only a unit of length."""

BLOCK = 50
"""Steps that are made in one go: their data is drawn together, and on a GPU nobody looks in between."""

Covers = Literal["part", "sublayers", "function"]
OFF: dict[Covers, tuple[str, ...]] = {"part": ("attention",), "sublayers": ("attend", "mlp"), "function": ("attend",)}
"""What "deactivate the attention modules" covers: the whole attention part, all of it but the norms, or the attention
function alone.
"""


@dataclass(frozen=True)
class Epochs:
    """A length given in the paper's epochs of 2^14 samples."""

    number: float

    def __post_init__(self) -> None:
        require(isfinite(self.number) and self.number > 0, f"a phase lasts more than 0 epochs, not {self.number} epochs")
        object.__setattr__(self, "number", float(self.number))  # 3 and 3.0 are one content


@dataclass(frozen=True)
class Mastered:
    """A length that training itself decides: the phase is over when `question` was right in at least `accuracy` of 200 samples
    kept for that, at so many `looks` in a row, `every` steps apart; after `limit` steps in any case.

    The samples are of `times` times the longest training length: 1 is inside the training range; more is a probe beyond it,
    which decides when the phase ends and is never learned from.

    >>> delayed(first=Mastered("modulo", accuracy=0.95), joint=16_000).phases[0].steps_at(batch=256)  # at most
    20000
    """

    question: str = "modulo"
    accuracy: float = 0.99
    times: int = 1
    looks: int = 3
    every: int = 100
    limit: int = 20_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "accuracy", float(self.accuracy))  # 1 and 1.0 are one content
        require(0 < self.accuracy <= 1, f"accuracy must be more than 0 and at most 1, not {self.accuracy}")
        for name in ("times", "looks", "every", "limit"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, f"{name} must be a whole number of at least 1, not {value}")
        require(self.every % BLOCK == 0, f"every must be a multiple of {BLOCK}, the steps made in one go, not {self.every}")
        require(self.limit > self.every, f"limit must be more than every = {self.every}, or nobody looks, not {self.limit}")


Duration = int | Epochs | Mastered
"""Steps, epochs of 2^14 samples, or until a question is mastered."""

LearningRate = float | Mapping[str, float]
"""One for all, or one for each named part and one for the `rest`."""


def epochs(number: float) -> Epochs:
    """So many times 2^14 samples.

    >>> Phase(epochs(3), lr=1e-4).steps_at(batch=64)
    768
    """
    return Epochs(number)


@dataclass(frozen=True)
class Phase:
    """`off`: names of parts that are switched off. `asks`: questions that count in the loss; none named means all."""

    length: Duration
    lr: LearningRate = 1e-4
    off: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lr = self.lr
        lr = {part: float(rate) for part, rate in lr.items()} if isinstance(lr, Mapping) else float(lr)
        for name, value in (("lr", lr), ("off", tuple(self.off)), ("asks", tuple(self.asks))):
            object.__setattr__(self, name, value)  # 1 and 1.0, list and tuple are one content
        if not isinstance(self.length, (Epochs, Mastered)):
            require(self.length >= 1, f"a phase lasts at least 1 step, not {self.length}")
        if isinstance(self.lr, Mapping):
            require("rest" in self.lr, "schedule.lr by part needs a 'rest', the learning rate of everything not named")
        for rate in self.rates.values():
            require(isfinite(rate) and rate >= 0, f"schedule.lr must be a finite number of at least 0, not {rate}")

    @property
    def rates(self) -> dict[str, float]:
        """Learning rate by part; `rest` is always there."""
        return dict(self.lr) if isinstance(self.lr, Mapping) else {"rest": float(self.lr)}

    def steps_at(self, batch: int) -> int:
        """How many steps; at most, where training itself decides."""
        if isinstance(self.length, Mastered):
            return self.length.limit
        return ceil(self.length.number * EPOCH / batch) if isinstance(self.length, Epochs) else self.length


@dataclass(frozen=True)
class Schedule:
    """A name for the tables and the phases in order."""

    name: str
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        require(len(self.phases) >= 1, "a schedule has at least one phase")


def end_to_end(
    joint: Duration = Epochs(500),
    last: Duration = 0,
    lr: LearningRate = 1e-4,
    last_lr: LearningRate | None = None,
) -> Schedule:
    """Everything on from the first step: `joint` at `lr`, then `last` at `last_lr` (a tenth of `lr` if not given).

    The paper: 500 epochs at 1e-4, then 1e-5; it does not say for how long.

    >>> [phase.rates for phase in end_to_end(5_000, last=500).phases]
    [{'rest': 0.0001}, {'rest': 1e-05}]
    """
    return Schedule("end-to-end", _joint(joint, last, lr, last_lr))


def delayed(
    first: Duration | None = None,
    joint: Duration = Epochs(500),
    last: Duration = 0,
    lr: LearningRate = 1e-4,
    first_lr: LearningRate | None = None,
    last_lr: LearningRate | None = None,
    asks: tuple[str, ...] = ("modulo",),
    covers: Covers = "part",
) -> Schedule:
    """Attention is off for `first` and the recurrence is asked `asks` alone; then as end to end.

    If `first` is not given, training decides: attention opens when the first of `asks` is mastered. Then nothing
    has to be guessed; a longer delay may do better (`lengthlab reproduce plateau`).

    The paper: 1500 epochs of the recurrence at 1e-4, then 500 with attention at 1e-4, then 1e-5. It does not say what the
    recurrence is asked at first; asked `modulo` alone, recall comes up soon after attention is opened. `covers` says what is
    off: the whole attention part, so that the recurrence speaks to the head (`part`); attention and MLP in each of its
    blocks, whose norms stay (`sublayers`); or the attention function inside its blocks (`function`).

    >>> delayed(2_000, joint=16_000).phases[0]
    Phase(length=2000, lr=0.0001, off=('attention',), asks=('modulo',))
    >>> delayed(joint=16_000).phases[0].length
    Mastered(question='modulo', accuracy=0.99, times=1, looks=3, every=100, limit=20000)
    """
    require(first is not None or bool(asks), "schedule.first: say how long; with all questions asked none is to be mastered")
    first = Mastered(asks[0]) if first is None else first
    require(covers in tuple(OFF), f"schedule.covers must be 'part', 'sublayers' or 'function', not '{covers}'")
    _check_length("first", first)
    alone = Phase(first, lr if first_lr is None else first_lr, off=OFF[covers], asks=tuple(asks))
    return Schedule("delayed", (alone, *_joint(joint, last, lr, last_lr)))


def _joint(joint: Duration, last: Duration, lr: LearningRate, last_lr: LearningRate | None) -> tuple[Phase, ...]:
    _check_length("joint", joint)
    _check_length("last", last, least=0)
    phases = (Phase(joint, lr),)
    return phases if last == 0 else (*phases, Phase(last, _tenth(lr) if last_lr is None else last_lr))


def _check_length(name: str, length: Duration, least: int = 1) -> None:
    if not isinstance(length, (Epochs, Mastered)):
        require(length >= least, f"schedule.{name} must be at least {least} step{'s' if least != 1 else ''}, not {length}")


def _tenth(lr: LearningRate) -> LearningRate:
    return {part: rate / 10 for part, rate in lr.items()} if isinstance(lr, Mapping) else lr / 10


SCHEDULES: dict[str, Callable[..., Schedule]] = {"end-to-end": end_to_end, "delayed": delayed}
