"""How the scores of chosen chunks become their weights: a part of hierarchical attention, chosen like any part.

Shapes: B samples, G groups of heads, Q queries, K chunks that each of them reads, most recent first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class ChunkWeights(Protocol):
    """Data that turns scores into weights, in the type of the scores; what is not seen has none."""

    def weigh(self, score_BGQK: Tensor, seen_BGQK: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class BrokenStick:
    """A stick is broken, from the most recent chunk on: w_k = σ(s_k) · Π_{j<k} (1 - σ(s_j)), computed as a logarithm.

    What is left of the stick goes nowhere: weights add up to one at the most (Hu et al. 2025, arXiv 2504.16795).

    >>> BrokenStick().weigh(torch.tensor([0.0, 0.0, 0.0]), torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.2500])
    """

    def weigh(self, score_BGQK: Tensor, seen_BGQK: Tensor) -> Tensor:
        score = score_BGQK.masked_fill(~seen_BGQK, 0.0)  # finite, so that nothing sends NaN back
        left = F.logsigmoid(-score).masked_fill(~seen_BGQK, 0.0)
        before = left.cumsum(dim=-1) - left
        return (F.logsigmoid(score) + before).exp().masked_fill(~seen_BGQK, 0.0)


@dataclass(frozen=True)
class SoftmaxOfChunks:
    """Softmax over the chunks that are read; zeros where none is seen.

    >>> SoftmaxOfChunks().weigh(torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[True, True], [False, False]]))
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """

    def weigh(self, score_BGQK: Tensor, seen_BGQK: Tensor) -> Tensor:
        low = torch.finfo(score_BGQK.dtype).min  # finite: a row in which nothing is seen must not become NaN
        return score_BGQK.masked_fill(~seen_BGQK, low).softmax(dim=-1).masked_fill(~seen_BGQK, 0.0)
