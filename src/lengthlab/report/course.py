"""How the training of a run went, step by step, in as few points as a figure shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve
from lengthlab.store.phases import phases_in

MOST = 80
"""Points of a line: more are no more to see."""
LEAST = 24
ALL_POINTS = 40_000
"""Of all runs of a page together, so that a thousand of them stay a page that opens at once."""
LARGEST = 2**53
"""Nothing in a log counts so far."""


@dataclass(frozen=True)
class Stretch:
    """Steps of one phase, up to `end`, and what was off in it."""

    end: int
    off: tuple[str, ...]


@dataclass(frozen=True)
class Course:
    """`loss` and `rates` by step; each loss is the mean of the log lines up to there. `inside` and `beyond`: accuracy by step
    at the longest training length, and at the longest length that was watched.
    """

    seed: int
    loss: tuple[tuple[int, float], ...] = ()
    rates: tuple[tuple[int, float], ...] = ()
    inside: tuple[tuple[int, float], ...] = ()
    beyond: tuple[tuple[int, float], ...] = ()
    watched: tuple[int, int] = (0, 0)
    stretches: tuple[Stretch, ...] = ()


def points_each(runs: int) -> int:
    """
    >>> points_each(100), points_each(1000), points_each(5000)
    (80, 40, 24)
    """
    return max(LEAST, min(MOST, ALL_POINTS // max(1, runs)))


def course_of(curve: Curve, points: int = MOST) -> Course:
    """What the log of a run says; nothing where it is not there or cannot be read."""
    try:
        lines = curve.folder.read_log()
    except (LabError, OSError):
        lines = []
    lines = [line for line in lines if 0 <= line["step"] < LARGEST]
    losses = [(line["step"], float(line["loss"])) for line in lines if drawable(line.get("loss"))]
    probes = [(line["step"], by_length(line["accuracy"])) for line in lines if line.get("accuracy")]
    lengths = sorted({length for _, shares in probes for length in shares})
    inside = max((length for length in lengths if length <= curve.trained[1]), default=0)
    beyond = max((length for length in lengths if length > curve.trained[1]), default=0)
    return Course(
        curve.first.seed,
        tuple(thinned(losses, points)),
        tuple(_changes(lines, points)),
        tuple(_picked([(step, shares[inside]) for step, shares in probes if inside in shares], points)),
        tuple(_picked([(step, shares[beyond]) for step, shares in probes if beyond in shares], points)),
        (inside, beyond),
        stretches_of(curve.content, curve.made.get("ends")),
    )


def thinned(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """At most so many points, each the mean of those that it stands for, at the last of them.

    >>> thinned([(50, 4.0), (100, 2.0), (150, 1.0), (200, 0.0)], 2)
    [(100, 3.0), (200, 0.5)]
    """
    size = -(-len(points) // most) if points else 1
    pieces = [points[start : start + size] for start in range(0, len(points), size)]
    return [(piece[-1][0], sum(value for _, value in piece) / len(piece)) for piece in pieces]


def _picked(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Every so many-th, the last among them."""
    size = -(-len(points) // most) if points else 1
    return list(points[::-1][::size][::-1])


def _changes(lines: Sequence[Mapping[str, Any]], most: int) -> list[tuple[int, float]]:
    """The learning rate where it becomes another, and at the ends."""
    rates = [(line["step"], float(line["lr"])) for line in lines if drawable(line.get("lr"))]
    last = len(rates) - 1
    kept = [
        point
        for place, point in enumerate(rates)
        if place in (0, last) or point[1] != rates[place - 1][1] or point[1] != rates[place + 1][1]
    ]
    return _picked(kept, most)


def drawable(value: Any) -> bool:
    """Whether it is a number that has a place in a figure: a log may hold infinity, and what is none."""
    return type(value) in (int, float) and abs(value) < LARGEST


def by_length(accuracy: Mapping[str, float]) -> dict[int, float]:
    """Shares alone."""
    return {int(length): float(share) for length, share in accuracy.items() if 0 <= float(share) <= 1}


def stretches_of(content: Mapping[str, Any], ends: Sequence[int] | None = None) -> tuple[Stretch, ...]:
    """The phases of a run with the steps at which they did end, where that is known, or will at the latest."""
    try:
        phases = phases_in(content)
    except LabError:
        return ()
    return tuple(Stretch(int(end), phase.off) for end, phase in zip(ends or phases.ends, phases.every, strict=False))
