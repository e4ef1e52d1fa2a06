"""How attention knows where a token stands: a part of attention, chosen like any part.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those asked for), C channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.alibi import Alibi
from lengthlab.models.learned import Learned
from lengthlab.models.randomized import Randomized
from lengthlab.models.rotation import rotate, rotation_table


class Positions(Protocol):
    """Data that builds a module `(q_BHQC, k_BHTC, at_BQ) -> (q_BHQC, k_BHTC)`; without `at_BQ`, every token has a query."""

    def build(self, channels: int) -> nn.Module: ...


@runtime_checkable
class Turns(Protocol):
    """A module of positions that only turns pairs of channels, so that a kernel can do it instead."""

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """cos_TF and sin_TF by position and pair."""


@runtime_checkable
class Biased(Protocol):
    """A module of positions that changes scores rather than queries and keys."""

    def bias(self, at_BQ: Tensor, tokens: int, heads: int) -> Tensor:
        """bias_BHQT, to be added to the scores."""


@dataclass(frozen=True)
class NoPositions:
    """Attention sees a set; order is left to the recurrence beside it."""

    def build(self, channels: int) -> nn.Module:
        return _Untouched(channels)


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021, arXiv 2104.09864): pairs of channels turn by an angle that grows with the position.

    Channel i is paired with channel i + C/2, and pair i turns by t * base^(-2i/C) at token t.
    """

    base: float = 10_000.0

    def __post_init__(self) -> None:
        require(self.base > 0, f"positions.base must be above 0, not {self.base}")

    def build(self, channels: int) -> nn.Module:
        require(channels % 2 == 0, f"rope turns pairs of channels, so a head needs an even width, not {channels}")
        return _Rotation(channels, self.base)


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


class _Rotation(nn.Module):
    """Keeps its tables for good: a captured step reads them where they were."""

    def __init__(self, channels: int, base: float) -> None:
        super().__init__()
        self.channels, self.base = channels, base
        self._tables: dict[tuple[int, torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}
        self._angles: dict[tuple[int, torch.device], tuple[Tensor, Tensor]] = {}

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, at_BQ: Tensor | None = None) -> tuple[Tensor, Tensor]:
        cos_TC, sin_TC = self._table(k_BHTC.shape[2], k_BHTC.device, k_BHTC.dtype)
        turned_BHTC = rotate(k_BHTC, cos_TC, sin_TC)
        if at_BQ is None:
            return rotate(q_BHQC, cos_TC, sin_TC), turned_BHTC
        return rotate(q_BHQC, cos_TC[at_BQ][:, None], sin_TC[at_BQ][:, None]), turned_BHTC

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        if (tokens, device) not in self._angles:
            halves = (x_TC[:, : self.channels // 2] for x_TC in self._table(tokens, device, torch.float32))
            cos_TF, sin_TF = (half_TF.contiguous() for half_TF in halves)
            self._angles[tokens, device] = cos_TF, sin_TF
        return self._angles[tokens, device]

    def _table(self, tokens: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """For so many tokens; kept for the next power of two, so that a sweep over lengths keeps few."""
        size = 1 << (tokens - 1).bit_length()
        if (size, device, dtype) not in self._tables:
            self._tables[size, device, dtype] = rotation_table(size, self.channels, self.base, device, dtype)
        cos_TC, sin_TC = self._tables[size, device, dtype]
        return cos_TC[:tokens], sin_TC[:tokens]


POSITIONS: dict[str, type[Any]] = {
    "rope": Rope,
    "none": NoPositions,
    "alibi": Alibi,
    "learned": Learned,
    "randomized": Randomized,
}
