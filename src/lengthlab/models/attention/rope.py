"""Rotary positions.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those named), C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lengthlab.errors import require, require_number, require_whole
from lengthlab.models.attention.rotation import rotate, rotation, rotation_table
from lengthlab.models.layout import PLAIN, Layout, pick


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021, arXiv 2104.09864): pairs of channels turn by an angle that grows with the position.

    Channel i is paired with channel i + C/2, and pair i turns by t * base^(-2i/C) at token t; by that much divided by `factor`,
    if positions are scaled linearly (Chen et al. 2023, arXiv 2306.15595).
    """

    base: float = 10_000.0
    factor: float = field(default=1.0, metadata={"added": "0.2"}, kw_only=True)

    def __post_init__(self) -> None:
        require_number(self.base, "positions.base", above=0)
        require_number(self.factor, "positions.factor", above=0)

    def build(self, channels: int) -> nn.Module:
        return _Rotation(channels, self.base, self.factor)


@dataclass(frozen=True)
class SlowRope(Rope):
    """Rotary positions that begin with what turns slowly: the same positions, and other first weights.

    A pair of channels that turns by more than a radian within `tokens` matches at some distances and not at others, and short
    sequences do not show at which. Queries and keys begin in such pairs, but the slowest, with `share` of the usual weights;
    all pairs learn. That slow pairs carry content and quick ones place is from Barbero et al. 2024 (arXiv 2410.06205), who keep
    the slowest from turning; to have them begin is ours. 205 tokens are 100 pairs of the paper's task and its questions.
    """

    tokens: int = 205
    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self.tokens, "positions.tokens", 1)
        require_number(self.share, "positions.share", above=0, most=1)

    def build(self, channels: int) -> nn.Module:
        return _SlowRotation(channels, self.base, self.factor, self.quick(channels), self.share)

    def quick(self, channels: int) -> list[int]:
        """The pairs that turn by more than a radian within `tokens`; the slowest is never one of them.

        >>> len(SlowRope().quick(channels=128)), SlowRope().quick(channels=4)
        (37, [0])
        """
        turns = [self.tokens / self.factor * self.base ** (-2 * pair / channels) for pair in range(channels // 2)]
        return [pair for pair, turn in enumerate(turns) if turn > 1 and turn != min(turns)]


class _Rotation(nn.Module):
    """Keeps its tables for good: a captured step reads them where they were. Not those of a piece."""

    in_pieces = True

    def __init__(self, channels: int, base: float, factor: float) -> None:
        super().__init__()
        require(channels % 2 == 0, f"rope rotates pairs of channels, so a head needs an even width, not {channels}")
        self.channels, self.base, self.factor = channels, base, factor
        self._tables: dict[tuple[int, torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}
        self._angles: dict[tuple[int, torch.device], tuple[Tensor, Tensor]] = {}

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = PLAIN) -> tuple[Tensor, Tensor]:
        if layout.position_BT is not None:
            return self._by_ids(q_BHQC, k_BHTC, layout.position_BT, layout.query_BQ)
        sizes = (k_BHTC.shape[2], k_BHTC.device, k_BHTC.dtype)
        cos_TC, sin_TC = self._table(*sizes) if layout.piece is None else self._of_piece(*sizes, layout.piece.first)
        rotated_BHTC, query_BQ = rotate(k_BHTC, cos_TC, sin_TC), layout.query_BQ
        if query_BQ is None:
            return rotate(q_BHQC, cos_TC, sin_TC), rotated_BHTC
        return rotate(q_BHQC, cos_TC[query_BQ][:, None], sin_TC[query_BQ][:, None]), rotated_BHTC

    def _by_ids(self, q_BHQC: Tensor, k_BHTC: Tensor, position_BT: Tensor, query_BQ: Tensor | None) -> tuple[Tensor, Tensor]:
        """By the task's own ids: no table, because nobody knows the largest of them before it is drawn."""
        cos_BTC, sin_BTC = rotation(position_BT, self.channels, self.base, k_BHTC.dtype, self.factor)
        rotated_BHTC = rotate(k_BHTC, cos_BTC[:, None], sin_BTC[:, None])
        return rotate(q_BHQC, pick(cos_BTC, query_BQ)[:, None], pick(sin_BTC, query_BQ)[:, None]), rotated_BHTC

    def angles(self, tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        if (tokens, device) not in self._angles:
            halves = (x_TC[:, : self.channels // 2] for x_TC in self._table(tokens, device, torch.float32))
            cos_TF, sin_TF = (half_TF.contiguous() for half_TF in halves)
            self._angles[tokens, device] = cos_TF, sin_TF
        return self._angles[tokens, device]

    def _of_piece(self, tokens: int, device: torch.device, dtype: torch.dtype, first: int) -> tuple[Tensor, Tensor]:
        return rotation_table(tokens, self.channels, self.base, device, dtype, self.factor, first)

    def _table(self, tokens: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """For so many tokens; kept for the next power of two, so that a sweep over lengths keeps few."""
        size = 1 << (tokens - 1).bit_length()
        if (size, device, dtype) not in self._tables:
            self._tables[size, device, dtype] = rotation_table(size, self.channels, self.base, device, dtype, self.factor)
        cos_TC, sin_TC = self._tables[size, device, dtype]
        return cos_TC[:tokens], sin_TC[:tokens]


class _SlowRotation(_Rotation):
    def __init__(self, channels: int, base: float, factor: float, quick: list[int], share: float) -> None:
        super().__init__(channels, base, factor)
        self.quick, self.share = quick, share

    def init_weights(self, weight_HCD: Tensor) -> None:
        for half_HFD in weight_HCD.chunk(2, dim=1):
            half_HFD[:, self.quick] *= self.share
