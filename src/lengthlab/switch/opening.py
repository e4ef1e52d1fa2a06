"""How a part is opened: at once, as the paper does it, or gently.

The learning rate of the opened part is scaled without touching groups or schedules: an optimizer's step is in proportion to its
learning rate, so taking only a share of the step that was made is the same as a smaller rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from lengthlab.errors import require
from lengthlab.switch.stand_in import Forward


@dataclass(frozen=True)
class Opening:
    """`rate` times the learning rate of the others, reached over `warm_up` steps; the part's contribution grows over `ramp`
    steps.

    >>> gently = Opening(rate=0.5, warm_up=4, ramp=10)
    >>> [gently.share(since) for since in (0, 1, 3, 100)], gently.weight(5)
    ([0.125, 0.25, 0.5, 0.5], 0.5)
    """

    rate: float = 1.0
    warm_up: int = 0
    ramp: int = 0

    def __post_init__(self) -> None:
        rated = isinstance(self.rate, Real) and 0 < self.rate < inf
        require(rated, f"rate must be a number above 0, not {self.rate!r}")
        for name, steps in (("warm_up", self.warm_up), ("ramp", self.ramp)):
            require(
                isinstance(steps, Integral) and steps >= 0, f"{name} must be a whole number of steps, at least 0, not {steps!r}"
            )

    def share(self, since: int) -> float:
        """Of a step, so many steps after the opening."""
        return self.rate * min(1.0, (since + 1) / self.warm_up) if self.warm_up else self.rate

    def weight(self, since: int) -> float:
        """Of the part's contribution."""
        return min(1.0, since / self.ramp) if self.ramp else 1.0


class Ramped:
    """The forward of a part whose contribution is still growing. The weight is a tensor, so that compiled code need not be
    compiled again when it changes.
    """

    def __init__(self, forward: Forward, stand_in: Forward) -> None:
        self.forward, self.stand_in = forward, stand_in
        with torch.inference_mode(False):  # an evaluation may open it, and training could not use a tensor of inference mode
            self.weight = torch.zeros(())

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        on = self.forward(*inputs, **named)
        several = isinstance(on, tuple)
        first = on[0] if several else on
        off = self._off(first, inputs, named)
        mixed = off + self.weight.to(first) * (first - off)
        return (mixed, *on[1:]) if several else mixed

    def _off(self, first: Tensor, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        uncounted = {name: value for name, value in named.items() if not hasattr(value, "update")}
        off = self.stand_in(*inputs, **uncounted)
        off = off[0] if isinstance(off, tuple) else off
        assert isinstance(off, Tensor)
        return off.to(first)
