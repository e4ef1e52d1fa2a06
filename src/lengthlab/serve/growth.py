"""A log as the points of its figures, while it grows: however long it becomes, no more is kept than a figure shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lengthlab.report.course import LARGEST, MOST, Course, Stretch, by_length, drawable
from lengthlab.store.log import Summary


@dataclass
class Means:
    """At most `most` points, each the mean of equally many values, at the last of their steps; the last may stand for fewer.

    >>> means = Means(most=4)
    >>> for step in range(1, 7):
    ...     means.add(step, float(step))
    >>> means.points
    [(2, 1.5), (4, 3.5), (6, 5.5)]
    """

    most: int = MOST
    size: int = 1
    """Values that a point stands for."""
    bins: list[tuple[int, float, int]] = field(default_factory=list)
    """The last step, the sum and the number of values of each."""

    def add(self, step: int, value: float) -> None:
        if self.bins and self.bins[-1][2] < self.size:
            _, total, count = self.bins[-1]
            self.bins[-1] = step, total + value, count + 1
            return
        self.bins.append((step, value, 1))
        if len(self.bins) > self.most:
            pairs = [self.bins[place : place + 2] for place in range(0, len(self.bins), 2)]
            self.bins = [(pair[-1][0], sum(each[1] for each in pair), sum(each[2] for each in pair)) for pair in pairs]
            self.size *= 2

    @property
    def points(self) -> list[tuple[int, float]]:
        return [(step, total / count) for step, total, count in self.bins]


@dataclass
class Samples:
    """Every so many-th of the values, at most `most`, and always the latest.

    >>> samples = Samples(most=4)
    >>> for step in range(1, 8):
    ...     samples.add(step, {})
    >>> [step for step, _ in samples.points]
    [1, 3, 5, 7]
    """

    most: int = MOST
    stride: int = 1
    seen: int = 0
    kept: list[tuple[int, Any]] = field(default_factory=list)
    latest: tuple[int, Any] | None = None

    def add(self, step: int, value: Any) -> None:
        if self.seen % self.stride == 0:
            self.kept.append((step, value))
            if len(self.kept) > self.most:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.seen += 1
        self.latest = step, value

    @property
    def points(self) -> list[tuple[int, Any]]:
        new = self.latest is not None and (not self.kept or self.kept[-1] != self.latest)
        return [*self.kept, *([self.latest] if new and self.latest else [])]


@dataclass
class Growth(Summary):
    """A summary of a log that has its curves, too."""

    loss: Means = field(default_factory=Means)
    probes: Samples = field(default_factory=Samples)
    rates: Samples = field(default_factory=Samples)
    rate: tuple[int, float] | None = None
    """The last one, which is a point only where it becomes another."""

    lengths: set[int] = field(default_factory=set)
    """Those that accuracy was watched at."""

    def take(self, lines: Sequence[Mapping[str, Any] | None]) -> None:
        super().take(lines)
        for line in lines:
            if line is not None and 0 <= line["step"] < LARGEST:
                self._draw(line["step"], line)

    def _draw(self, step: int, line: Mapping[str, Any]) -> None:
        """Written for speed: of 500 runs there may be five million lines."""
        loss, rate = line.get("loss"), line.get("lr")
        if drawable(loss):
            self.loss.add(step, loss)  # type: ignore[arg-type]
        if line.get("accuracy"):
            shares = by_length(line["accuracy"])
            self.lengths.update(shares)
            self.probes.add(step, shares)
        before = self.rate
        if before is not None and before[1] == rate and type(rate) is float:
            self.rate = step, rate
        elif drawable(rate):
            self.rate = step, float(rate)  # type: ignore[arg-type]
            if before is not None and self.rates.latest != before:
                self.rates.add(*before)
            self.rates.add(*self.rate)

    def course(self, seed: int, longest: float, stretches: tuple[Stretch, ...]) -> Course:
        """What a figure shows of it; `longest` is the end of the training range."""
        probes = self.probes.points
        inside = max((length for length in self.lengths if length <= longest), default=0)
        beyond = max((length for length in self.lengths if length > longest), default=0)
        rates = self.rates.points
        return Course(
            seed,
            tuple(self.loss.points),
            tuple([*rates, self.rate] if self.rate and rates[-1] != self.rate else rates),
            tuple((step, shares[inside]) for step, shares in probes if inside in shares),
            tuple((step, shares[beyond]) for step, shares in probes if beyond in shares),
            (inside, beyond),
            stretches,
        )
