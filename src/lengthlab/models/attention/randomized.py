"""Rotary positions that are drawn at random, in order.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError, require, require_number, require_whole
from lengthlab.models.attention.counted_random import CountedRandom
from lengthlab.models.attention.rotation import rotate, rotation_table
from lengthlab.models.layout import PLAIN, Layout, Piece, pick


@dataclass(frozen=True)
class Randomized:
    """Rotary positions that are drawn at random, in order (Ruoss et al. 2023, arXiv 2305.16843).

    The T tokens of a sample stand at T positions out of 0 … limit - 1, drawn anew for every sample in training and once for
    all when measured, so that long distances are met in short sequences. Drawn are T sorted numbers up to limit - T, to which
    0 … T - 1 are added, so that no two are equal.
    """

    limit: int = 2048
    base: float = 10_000.0

    def __post_init__(self) -> None:
        require_whole(self.limit, "positions.limit", 1)
        require_number(self.base, "positions.base", above=0)

    def build(self, channels: int) -> nn.Module:
        require(channels % 2 == 0, f"randomized positions rotate pairs of channels: a head needs an even width, not {channels}")
        return RandomizedPositions(channels, self.limit, self.base)


class RandomizedPositions(nn.Module):
    in_pieces = True
    cos_LC: Tensor
    sin_LC: Tensor

    def __init__(self, channels: int, limit: int, base: float) -> None:
        super().__init__()
        self.limit = limit
        cos_LC, sin_LC = rotation_table(limit, channels, base, torch.get_default_device(), torch.float32)
        self.register_buffer("cos_LC", cos_LC, persistent=False)
        self.register_buffer("sin_LC", sin_LC, persistent=False)
        self.chance = CountedRandom()
        self._whole: dict[tuple[int, torch.device], Tensor] = {}

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = PLAIN) -> tuple[Tensor, Tensor]:
        require(layout.position_BT is None, "randomized positions are drawn, but the task has ids of its own: take others")
        sizes, piece = (len(k_BHTC), k_BHTC.shape[2]), layout.piece
        position_BT = self._positions(*sizes) if piece is None else self._of_piece(*sizes, piece)
        position_BQ = pick(position_BT[..., None], layout.query_BQ)[..., 0]
        return self._rotate(q_BHQC, position_BQ), self._rotate(k_BHTC, position_BT)

    def _rotate(self, x_BHTC: Tensor, position_BT: Tensor) -> Tensor:
        return rotate(x_BHTC, *(table_LC[position_BT][:, None].to(x_BHTC.dtype) for table_LC in (self.cos_LC, self.sin_LC)))

    def _of_piece(self, samples: int, tokens: int, piece: Piece) -> Tensor:
        """Where the tokens of a piece stand when the whole is read at once: that depends on how long it is."""
        if piece.whole is None:
            raise LabError("randomized positions are drawn for a whole sequence: say how long it is (Piece.whole)")
        key = (piece.whole, self.cos_LC.device)
        if key not in self._whole:  # drawn once for all pieces
            self._check(piece.whole)
            self._whole = {key: self._in_order(self.chance.measured(piece.whole))}
        return self._whole[key][:, piece.first : piece.first + tokens].expand(samples, -1)

    def _positions(self, samples: int, tokens: int) -> Tensor:
        self._check(tokens)
        return self._in_order(self.chance(samples, tokens))

    def _check(self, tokens: int) -> None:
        if tokens > self.limit:
            raise LabError(f"randomized positions end at {self.limit} tokens, and there are {tokens}: raise positions.limit")

    def _in_order(self, uniform_BT: Tensor) -> Tensor:
        tokens = uniform_BT.shape[1]
        drawn_BT = (uniform_BT * (self.limit - tokens + 1)).long().sort(dim=1).values
        return drawn_BT + torch.arange(tokens, device=drawn_BT.device)
