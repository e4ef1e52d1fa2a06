"""Attention that breaks a stick, from the nearest token on: what a token leaves is for those before it.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.layout import PLAIN, Layout


@dataclass(frozen=True)
class StickBreaking:
    """A stick is broken from the nearest token on (Tan et al. 2024, arXiv 2410.17980).

    The weight of token j at token i is σ(z_ij) · Π_{j<k<i} (1 - σ(z_ik)), and none for token i itself. It needs no positions:
    nearer tokens come first. Weights add up to one at the most; what is left of the stick goes nowhere.
    """

    def build(self, heads: int, width: int) -> nn.Module:
        return _StickBreaking()


class _StickBreaking(nn.Module):
    in_pieces = True

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        return q_BHQC

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        # The last token that is seen is the query's own.
        before_BHQT = seen_BHQT & (seen_BHQT.flip(-1).cumsum(dim=-1).flip(-1) > 1)
        z = scores_BHQT.float()
        left = F.logsigmoid(-z).masked_fill(~before_BHQT, 0.0)
        after = left.flip(-1).cumsum(dim=-1).flip(-1) - left
        weights = (F.logsigmoid(z) + after).exp().masked_fill(~before_BHQT, 0.0)
        return weights.to(scores_BHQT.dtype)
