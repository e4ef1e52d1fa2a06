"""Attention that is on with a probability, decided anew at every step of the optimizer: a stochastic delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from torch import nn

from lengthlab.gradual import course, draw, value_at, whole_seed
from lengthlab.switch.closing import whole_step
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.forwards import Switched
from lengthlab.switch.gradual_delay import Finding, GradualDelay, Partly, found, hold
from lengthlab.switch.sites import Site

Chances = float | Sequence[tuple[int, float]]
"""One probability, or from which step on which."""


class Chanced(Partly):
    """On or off as it was drawn. In evaluation it is on, as what dropout drops is, unless it has not begun at all."""

    on = False
    never = True

    @property
    def is_off(self) -> bool:
        """Whether the next call is answered by the stand-in."""
        return not self.on and (self.never or self.module.training)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return (self.stand_in if self.is_off else self.original)(*inputs, **named)


class ChanceDelay(GradualDelay):
    """`by_chance` makes one."""

    def __init__(
        self,
        sites: tuple[Site, ...],
        p: Chances,
        until: Until | None = None,
        seed: int = 0,
        beside: Delay | None = None,
    ) -> None:
        self.p, self.seed = course(p, "p", most=1.0), whole_seed(seed)
        super().__init__(sites, until, beside)

    @property
    def rule(self) -> dict[str, Any]:
        return {"p": [list(pair) for pair in self.p], "seed": self.seed}

    def forward_of(self, site: Site, ours: Switched) -> Chanced:
        return Chanced(site, ours)

    def apply(self, steps: int) -> bool:
        chance = 0.0 if self.waits else value_at(self.p, steps)
        on = draw(self.seed, steps) < chance
        for forward in self.partly:
            forward.on, forward.never = on, chance == 0.0
        return on

    def status(self) -> str:
        if self.is_settled:
            return super().status()
        then = f", and always from step {self.until} on" if isinstance(self.until, int) else ""
        return f"on with probability {value_at(self.p, self.steps):g}{then}"


def by_chance(
    model: nn.Module, p: Chances, until: Until | None = None, seed: int = 0, **options: Unpack[Finding]
) -> ChanceDelay:
    """Attention on with probability `p` in each step of the optimizer; from `until` on, always.

    `p` is a number or pairs of a step and a number; before the first of them attention is off. A step in which it is off leaves
    its parameters without a gradient, and what the optimizer remembers of them as it was. What is drawn follows from `seed` and
    the step alone, so all processes agree and a resumed training goes on with the same draws. In evaluation attention is on.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2)
    >>> later = by_chance(layer, p=[(0, 0.25), (100, 0.5)], until=200)
    >>> later
    Delay, on with probability 0.25, and always from step 200 on:
      module     parameters  while off
      self_attn         288  (zeros, None)
    >>> drawn = []
    >>> for _ in range(200):
    ...     drawn.append(later.is_open)
    ...     later.step()
    >>> sum(drawn[:100]), sum(drawn[100:]), later.is_settled
    (28, 45, True)
    """
    plain = found(model, options)
    made = ChanceDelay(plain.sites, p, whole_step(until), seed, plain)
    hold(made)
    return made
