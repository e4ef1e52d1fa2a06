"""The phases of a run as its `run.json` tells them, without the classes that make a run: those need torch."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Any

from lengthlab.errors import LabError

EPOCH = 2**14
"""Samples in one of the paper's epochs; its data is drawn afresh, so an epoch is only a unit of length."""


@dataclass(frozen=True)
class Phase:
    """`steps` at most, where training itself decides (`open_ended`). Steps of the same `kind` take as long as each other."""

    steps: int
    off: tuple[str, ...]
    open_ended: bool
    kind: str
    longest: int
    """The longest sequence it trains on."""


@dataclass(frozen=True)
class Phases:
    """In order; none where the schedule could not be read.

    >>> two = [{"length": 100, "off": ["attention"]}, {"length": 50}]
    >>> phases = phases_in({"schedule": {"phases": two}, "batch": 4, "lengths": [1, 10]})
    >>> phases.ends, phases.at(99), phases.at(100), phases.at(150)
    ((100, 150), 0, 1, 2)
    """

    every: tuple[Phase, ...] = ()

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """After how many steps each is over, at most."""
        return tuple(accumulate(phase.steps for phase in self.every))

    @property
    def steps(self) -> int:
        return self.ends[-1] if self.every else 0

    def at(self, clock: int) -> int:
        """Which phase a step of the schedule (counted from 0) belongs to; the number of phases once all are over."""
        return bisect_right(self.ends, clock)

    def left(self, clock: int) -> list[int]:
        """Steps that each phase still has before it."""
        return [max(0, end - max(start, clock)) for start, end in zip([0, *self.ends], self.ends, strict=False)]

    def open_ended(self, clock: int = 0) -> bool:
        """Whether what is ahead may end sooner, because training itself decides."""
        return any(phase.open_ended for phase in self.every[self.at(clock) :])


def phases_in(content: Mapping[str, Any]) -> Phases:
    """Of the content of a `run.json`."""
    try:
        batch, usual = int(content["batch"]), content["lengths"]
        return Phases(tuple(_phase(phase, batch, usual) for phase in content["schedule"]["phases"]))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise LabError("its schedule cannot be read without the code that made it") from None


def _phase(data: Mapping[str, Any], batch: int, usual: Sequence[int]) -> Phase:
    length = data["length"]
    kind = json.dumps({key: value for key, value in data.items() if key not in ("length", "lr")}, sort_keys=True)
    open_ended = isinstance(length, Mapping) and "limit" in length
    longest = int((data.get("lengths") or usual)[-1])
    return Phase(_steps(length, batch), tuple(map(str, data.get("off", ()))), open_ended, kind, longest)


def _steps(length: int | Mapping[str, Any], batch: int) -> int:
    steps = length
    if isinstance(length, Mapping):
        steps = length["limit"] if "limit" in length else ceil(length["number"] * EPOCH / batch)
    if not isinstance(steps, int) or not 0 < steps < 2**53:
        raise ValueError
    return steps
