"""Positions as a penalty on distance.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.models.layout import PLAIN, Layout


@dataclass(frozen=True)
class Alibi:
    """Scores are lowered in proportion to the distance (Press, Smith & Lewis 2021, arXiv 2108.12409).

    That of token j at token i by m · (i - j), with a slope that is fixed for each of H heads: m = 2^(-8h/H) for h = 1 … H.
    """

    def build(self, channels: int) -> nn.Module:
        return _Alibi()


class _Alibi(nn.Module):
    in_pieces = True

    def forward(self, q_BHQC: Tensor, k_BHTC: Tensor, layout: Layout = PLAIN) -> tuple[Tensor, Tensor]:
        return q_BHQC, k_BHTC

    def bias(self, query_BQ: Tensor, key_BT: Tensor, heads: int) -> Tensor:
        """bias_BHQT, to be added to the scores."""
        slope_H = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=query_BQ.device) / heads)
        distance_BQT = query_BQ[:, :, None] - key_BT[:, None]
        return -slope_H[:, None, None] * distance_BQT[:, None]
