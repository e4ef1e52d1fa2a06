"""Attention that can give a token no weight at all: entmax instead of softmax, so that weights do not thin out with length.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from lengthlab.errors import require_number
from lengthlab.models.layout import PLAIN, Layout


@dataclass(frozen=True)
class Entmax:
    """1.5-entmax instead of softmax (Peters, Niculae & Martins 2019, arXiv 1905.05702).

    Weights are [z/2 - τ]₊², with τ such that they add up to one; low scores get none.
    """

    def build(self, heads: int, width: int) -> nn.Module:
        return _Entmax()


@dataclass(frozen=True)
class AdaptiveEntmax:
    """ASEntmax: 1.5-entmax of scores scaled by content and length (Vasylenko et al. 2025, arXiv 2506.16640).

    The query at token i is multiplied by δ + softplus(w·x) · log(i)^(γ·tanh(u·x)), with w and u learned for each head, δ = 1,
    and the logarithm that of at least 2.
    """

    delta: float = 1.0
    gamma: float = 2.0

    def __post_init__(self) -> None:
        require_number(self.delta, "scores.delta", least=0)
        require_number(self.gamma, "scores.gamma", above=0)

    def build(self, heads: int, width: int) -> nn.Module:
        return _AdaptiveEntmax(heads, width, self.delta, self.gamma)


class EntmaxWeights(nn.Module):
    """1.5-entmax of the scores; attention over short documents has a kernel for it."""

    in_pieces = True

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        return q_BHQC

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        return entmax15(scores_BHQT.float().masked_fill(~seen_BHQT, -torch.inf)).to(scores_BHQT.dtype)


class _Entmax(EntmaxWeights):
    """By this name messages call it."""


class _AdaptiveEntmax(EntmaxWeights):
    def __init__(self, heads: int, width: int, delta: float, gamma: float) -> None:
        super().__init__()
        self.delta, self.gamma = delta, gamma
        self.growth = nn.Linear(width, heads)
        self.power = nn.Linear(width, heads)

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        index_BQ = layout.index_in_whole(q_BHQC.shape[2], q_BHQC.device)
        log_BQ1 = (index_BQ + 1).clamp(min=2).to(x_BQD.dtype).log()[..., None]
        power_BQH = self.gamma * self.power(x_BQD).tanh()
        scale_BQH = self.delta + F.softplus(self.growth(x_BQD)) * log_BQ1**power_BQH
        out_BHQC: Tensor = q_BHQC * scale_BQH.transpose(1, 2)[..., None]
        return out_BHQC


class _Entmax15(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, z: Tensor) -> Tensor:
        z = (z - z.amax(dim=-1, keepdim=True)) / 2
        weights: Tensor = (z - _threshold(z)).clamp(min=0) ** 2
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors  # type: ignore[attr-defined]
        root: Tensor = weights.sqrt()
        dz = grad * root
        return dz - root * (dz.sum(dim=-1, keepdim=True) / root.sum(dim=-1, keepdim=True))


def entmax15(z: Tensor) -> Tensor:
    """1.5-entmax over the last dimension; -inf gets no weight.

    >>> entmax15(torch.tensor([4.0, 3.0, 0.0]))
    tensor([0.8307, 0.1693, 0.0000])
    """
    out: Tensor = _Entmax15.apply(z)  # type: ignore[no-untyped-call]
    return out


def _threshold(z: Tensor) -> Tensor:
    """τ, exactly: of the largest k values for each k, the τ that makes their squares add up to one; the last k whose τ is
    below its smallest value is the support.
    """
    sorted_z = z.sort(dim=-1, descending=True).values
    finite = sorted_z.isfinite()
    sorted_z = sorted_z.masked_fill(~finite, 0.0)
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    mean = sorted_z.cumsum(dim=-1) / k
    spread = k * ((sorted_z**2).cumsum(dim=-1) / k - mean**2)
    tau = mean - ((1 - spread) / k).clamp(min=0).sqrt()
    support = (finite & (tau <= sorted_z)).sum(dim=-1, keepdim=True)
    return tau.gather(-1, support - 1)
