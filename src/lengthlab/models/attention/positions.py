"""How attention knows where a token stands: a part of attention, chosen like any part.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those named), C channels of a head, F = C / 2 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import ismethod
from typing import Protocol, TypeGuard, runtime_checkable

import torch
from torch import Tensor, nn

from lengthlab.models.layout import PLAIN, Layout


class Positions(Protocol):
    """Data that builds a module `(q_BHQC, k_BHTC, layout) -> (q_BHQC, k_BHTC)`.

    `layout.query_BQ` are the tokens with a query, all if None; `layout.position_BT` are ids, where the task has its own. A
    module that is right for a piece of a sequence, too (`layout.piece`), says `in_pieces = True`.
    """

    def build(self, channels: int) -> nn.Module: ...


class Rotary(Protocol):
    """A module of positions that only rotates pairs of channels, so that a kernel can do it instead."""

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """cos_TF and sin_TF by position and pair."""


@runtime_checkable
class InitsWeights(Protocol):
    """A module of positions that has a say in the first weights of queries and keys."""

    def init_weights(self, weight_HCD: Tensor) -> None:
        """Changes those of the queries, or of the keys, in place; D is the width."""


class Biased(Protocol):
    """A module of positions that changes scores rather than queries and keys."""

    def bias(self, query_BQ: Tensor, key_BT: Tensor, heads: int) -> Tensor:
        """bias_BHQT, to be added to the scores of queries and keys at these positions."""


def is_biased(positions: nn.Module) -> TypeGuard[Biased]:
    """By its method: a parameter that is called `bias` makes nothing of the kind of a module."""
    return ismethod(getattr(positions, "bias", None))


def is_rotary(positions: nn.Module) -> TypeGuard[Rotary]:
    """By its method, as above."""
    return ismethod(getattr(positions, "angles", None))


def reads_pieces(module: nn.Module) -> bool:
    """Whether a module of positions, or of scores, says that it is right for pieces of a sequence."""
    return getattr(module, "in_pieces", False) is True


@dataclass(frozen=True)
class NoPositions:
    """Attention sees a set; order is left to the recurrence beside it (alone: Kazemnejad et al. 2023, arXiv 2305.19466)."""

    def build(self, channels: int) -> nn.Module:
        return Untouched(channels)


class Untouched(nn.Module):
    in_pieces = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self._angles: dict[tuple[int, torch.device], tuple[Tensor, Tensor]] = {}

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = PLAIN) -> tuple[Tensor, Tensor]:
        return q_BHQC, k_BHTC

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """No rotation at all."""
        if (tokens, device) not in self._angles:
            ones_TF = torch.ones(tokens, self.channels // 2, device=device)
            self._angles[tokens, device] = ones_TF, torch.zeros_like(ones_TF)
        return self._angles[tokens, device]
