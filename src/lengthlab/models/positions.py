"""How attention knows where a token stands: a part of attention, chosen like any part.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those asked for), C channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from lengthlab.models.alibi import Alibi
from lengthlab.models.learned import Learned
from lengthlab.models.randomized import Randomized
from lengthlab.models.rope import Rope, SlowRope


class Positions(Protocol):
    """Data that builds a module `(q_BHQC, k_BHTC, at_BQ) -> (q_BHQC, k_BHTC)`; without `at_BQ`, every token has a query."""

    def build(self, channels: int) -> nn.Module: ...


@runtime_checkable
class Turns(Protocol):
    """A module of positions that only turns pairs of channels, so that a kernel can do it instead."""

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """cos_TF and sin_TF by position and pair."""


@runtime_checkable
class Begins(Protocol):
    """A module of positions that has a say in the weights that queries and keys begin with."""

    def set_first_weights(self, weight_HCD: Tensor) -> None:
        """Changes those of the queries, or of the keys, in place; D is the width."""


@runtime_checkable
class Biased(Protocol):
    """A module of positions that changes scores rather than queries and keys."""

    def bias(self, at_BQ: Tensor, tokens: int, heads: int) -> Tensor:
        """bias_BHQT, to be added to the scores."""


@dataclass(frozen=True)
class NoPositions:
    """Attention sees a set; order is left to the recurrence beside it (alone: Kazemnejad et al. 2023, arXiv 2305.19466)."""

    def build(self, channels: int) -> nn.Module:
        return _Untouched(channels)


class _Untouched(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self._angles: dict[tuple[int, torch.device], tuple[Tensor, Tensor]] = {}

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, at_BQ: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return q_BHQC, k_BHTC

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """No turn at all."""
        if (tokens, device) not in self._angles:
            ones_TF = torch.ones(tokens, self.channels // 2, device=device)
            self._angles[tokens, device] = ones_TF, torch.zeros_like(ones_TF)
        return self._angles[tokens, device]


POSITIONS: dict[str, type[Any]] = {
    "rope": Rope,
    "slow-rope": SlowRope,
    "none": NoPositions,
    "alibi": Alibi,
    "learned": Learned,
    "randomized": Randomized,
}
