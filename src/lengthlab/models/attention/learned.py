"""Positions as learned vectors.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, L tokens at the most.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError, require_whole
from lengthlab.models.attention.counted_random import CountedRandom
from lengthlab.models.layout import PLAIN, Layout, Piece, pick


@dataclass(frozen=True)
class Learned:
    """A vector for each absolute position (Gehring et al. 2017, arXiv 1705.03122), one for queries and one for keys.

    Token i has q + a[p + i] and k + b[p + i], the same a and b for all heads. Sequences begin at a random p in training, as in
    SHAPE (Kiyono et al. 2021, arXiv 2109.05644), so that vectors beyond the training length are learned at all; when measured
    or read in pieces they begin at p = 0. Where the task has position ids of its own, these are taken as they are.
    """

    limit: int = 2048

    def __post_init__(self) -> None:
        require_whole(self.limit, "positions.limit", 1)

    def build(self, channels: int) -> nn.Module:
        return LearnedPositions(channels, self.limit)


class LearnedPositions(nn.Module):
    in_pieces = True

    def __init__(self, channels: int, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.q_LC = nn.Parameter(0.02 * torch.randn(limit, channels))
        self.k_LC = nn.Parameter(0.02 * torch.randn(limit, channels))
        self.chance = CountedRandom()

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = PLAIN) -> tuple[Tensor, Tensor]:
        position_BT = layout.position_BT
        if position_BT is None:
            position_BT = self._positions(len(k_BHTC), k_BHTC.shape[2], layout.piece)
        position_BQ = pick(position_BT[..., None], layout.query_BQ)[..., 0]
        return q_BHQC + self.q_LC[position_BQ][:, None], k_BHTC + self.k_LC[position_BT][:, None]

    def _positions(self, samples: int, tokens: int, piece: Piece | None = None) -> Tensor:
        limit, device = len(self.k_LC), self.k_LC.device
        first = piece.first if piece else 0
        there = max(first + tokens, (piece and piece.whole) or 0)
        if there > limit:
            raise LabError(f"learned positions end at {limit} tokens, and there are {there}: raise positions.limit")
        if piece is not None:
            return torch.arange(first, first + tokens, device=device).expand(samples, -1)
        start_B1 = torch.zeros(samples, 1, dtype=torch.int64, device=device)
        if self.training:
            start_B1 = (self.chance(samples, 1) * (limit - tokens + 1)).long()
        return start_B1 + torch.arange(tokens, device=device)
