"""Learning rates as data: a number is a constant one; the others go by the step of their phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import cos, pi

from lengthlab.errors import require_number, require_whole
from lengthlab.registry import register


@dataclass(frozen=True)
class Rate:
    """A rate that changes from step to step: up to `peak` over the first `warm_up` steps, then as its kind says."""

    peak: float
    warm_up: int = 0

    def __post_init__(self) -> None:
        self._settle("peak")
        require_whole(self.warm_up, "warm_up", 0)

    def _settle(self, name: str) -> None:
        """A rate is a float, and one that can be."""
        require_number(getattr(self, name), f"the {name} of a learning rate", least=0)
        object.__setattr__(self, name, float(getattr(self, name)))

    def at(self, step: int, steps: int) -> float:
        """Of a step, counted from 0, in a phase of so many steps; at most so many, where training itself decides."""
        if step < self.warm_up:
            return self.peak * (step + 1) / self.warm_up
        return self.after((step - self.warm_up) / max(1, steps - self.warm_up))

    def after(self, share: float) -> float:
        """When this share of the steps after the warm-up is over."""
        return self.peak

    def over(self, number: float) -> Rate:
        """Divided by a number."""
        return replace(self, peak=self.peak / number)

    def times(self, factor: float) -> Rate:
        """Multiplied by a number; by 0, it stands still."""
        return replace(self, peak=self.peak * factor)


@dataclass(frozen=True)
class WarmUp(Rate):
    """Up to `peak`, and on at that.

    >>> [WarmUp(peak=0.4, warm_up=4).at(step, steps=10) for step in (0, 1, 3, 9)]
    [0.1, 0.2, 0.4, 0.4]
    """


@dataclass(frozen=True)
class Falling(Rate):
    """Up to `peak`, then down to `last` as its kind says."""

    last: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle("last")

    def over(self, number: float) -> Rate:
        return replace(self, peak=self.peak / number, last=self.last / number)

    def times(self, factor: float) -> Rate:
        return replace(self, peak=self.peak * factor, last=self.last * factor)


@dataclass(frozen=True)
class Linear(Falling):
    """Up to `peak`, then down to `last` in a straight line."""

    def after(self, share: float) -> float:
        return self.peak + (self.last - self.peak) * share


@dataclass(frozen=True)
class Cosine(Falling):
    """Up to `peak`, then down to `last` along half a cosine.

    >>> [round(Cosine(peak=1.0).at(step, steps=4), 3) for step in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    def after(self, share: float) -> float:
        return self.last + (self.peak - self.last) * (1 + cos(pi * share)) / 2


register(Rate, "warm-up", WarmUp)
register(Rate, "linear", Linear)
register(Rate, "cosine", Cosine)

AnyRate = float | Rate
"""A constant, or one that changes."""

LearningRate = AnyRate | Mapping[str, AnyRate]
"""One for all, or one for each named part and one for the `rest`."""


def divided(rate: LearningRate, number: float) -> LearningRate:
    """
    >>> divided({"attention": 0.5, "rest": Cosine(1.0)}, 2)
    {'attention': 0.25, 'rest': Cosine(peak=0.5, warm_up=0, last=0.0)}
    """
    if isinstance(rate, Mapping):
        return {part: _divided(each, number) for part, each in rate.items()}
    return _divided(rate, number)


def _divided(rate: AnyRate, number: float) -> AnyRate:
    return rate.over(number) if isinstance(rate, Rate) else rate / number


def to_nothing(rate: LearningRate) -> LearningRate:
    """Down from there in a straight line.

    >>> to_nothing({"lstm": 0.5, "rest": WarmUp(1.0, warm_up=100)})
    {'lstm': Linear(peak=0.5, warm_up=0, last=0.0), 'rest': Linear(peak=1.0, warm_up=0, last=0.0)}
    """
    if isinstance(rate, Mapping):
        return {part: _to_nothing(each) for part, each in rate.items()}
    return _to_nothing(rate)


def _to_nothing(rate: AnyRate) -> Linear:
    return Linear(rate.peak if isinstance(rate, Rate) else rate)


Slowed = float | Mapping[str, float]
"""By which rates are multiplied: one factor for everything but attention, or one for each named part."""


def slowed_by(rate: LearningRate, slowed: Slowed) -> LearningRate:
    """Rates once attention is open; as they are, where the factor is 1.

    >>> slowed_by(1.0, 0.25)
    {'attention': 1.0, 'rest': 0.25}
    >>> slowed_by({"attention": 0.5, "rest": Cosine(1.0)}, {"lstm": 0.0})
    {'attention': 0.5, 'rest': Cosine(peak=1.0, warm_up=0, last=0.0), 'lstm': Cosine(peak=0.0, warm_up=0, last=0.0)}
    """
    rates = dict(rate) if isinstance(rate, Mapping) else {"rest": rate}
    if isinstance(slowed, Mapping):
        return rates | {part: _times(rates.get(part, rates["rest"]), factor) for part, factor in slowed.items()}
    if slowed == 1:
        return rate
    attention = rates.pop("attention", rates["rest"])
    return {"attention": attention} | {part: _times(each, slowed) for part, each in rates.items()}


def _times(rate: AnyRate, factor: float) -> AnyRate:
    return rate.times(factor) if isinstance(rate, Rate) else rate * factor
