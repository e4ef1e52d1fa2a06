"""A memory of keys and values that fades by one number per head and token: S = a·S + k·vᵀ, read by S·q.

Two ways that are equal: `walk_decay` goes from token to token, `scan_decay` from chunk to chunk.
Shapes: B samples, H heads, T tokens, N chunks, C tokens of a chunk, K channels of keys, V of values, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.exact import exact
from lengthlab.models.linear import Linear
from lengthlab.models.recurrence.chunks import CHUNK, chunked, log_between, unchunked

SHORTEST, LONGEST = 0.001, 0.1
"""Steps of time that a `Decay` begins with."""


class Decay(nn.Module):
    """How long a step of time a token is, and by how much memory fades in it: Δ = softplus(w·x + b) and log a = −exp(A)·Δ.

    First weights are those of Mamba-2's authors: exp(A) uniform in 1 to 16, Δ for x = 0 log-uniform in 0.001 to 0.1.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.step = Linear(width, heads)
        self.log_rate_H = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        with torch.no_grad():
            step_H = torch.empty(heads).uniform_(math.log(SHORTEST), math.log(LONGEST)).exp()
            self.step.bias.copy_(step_H + (-(-step_H).expm1()).log())  # the inverse of softplus

    def forward(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Δ and log a, both (B, H, T)."""
        step_BHT = F.softplus(exact(self.step(x_BTD))).transpose(1, 2)
        return step_BHT, -exact(self.log_rate_H).exp()[:, None] * step_BHT


DecayScan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(q_BHTK, k_BHTK, v_BHTV, log a_BHT, S_BHKV) → (out_BHTV, S_BHKV); queries and keys may have one head for all."""


def walk_decay(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_BHT: Tensor, s_BHKV: Tensor) -> tuple[Tensor, Tensor]:
    """Token after token."""
    out = []
    a_BHT = log_BHT.exp()
    for q_BHK, k_BHK, v_BHV, a_BH in zip(*(x.unbind(2) for x in (q_BHTK, k_BHTK, v_BHTV, a_BHT)), strict=True):
        s_BHKV = a_BH[..., None, None] * s_BHKV + k_BHK[..., :, None] * v_BHV[..., None, :]
        out.append((q_BHK[..., None, :] @ s_BHKV).squeeze(-2))
    return torch.stack(out, dim=2), s_BHKV


def scan_decay(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_BHT: Tensor, s_BHKV: Tensor) -> tuple[Tensor, Tensor]:
    """Chunk after chunk (Dao & Gu 2024, arXiv 2405.21060, section 6). With g the sum of log a since the chunk began, and S the
    memory before it: out_t = exp(g_t)·Sᵀq_t + Σ_{s ≤ t} exp(g_t − g_s) (q_t·k_s) v_s.
    """
    tokens = v_BHTV.shape[2]
    q_BHNCK, k_BHNCK, v_BHNCV, log_BHNC = (chunked(x, min(CHUNK, tokens)) for x in (q_BHTK, k_BHTK, v_BHTV, log_BHT))
    g_BHNC = log_BHNC.cumsum(dim=-1)
    inside_BHNCV = (q_BHNCK @ k_BHNCK.mT * log_between(g_BHNC).exp()) @ v_BHNCV
    left_BHNC = (g_BHNC[..., -1:] - g_BHNC).exp()
    added_BHNKV = k_BHNCK.mT @ (left_BHNC[..., None] * v_BHNCV)
    before = []
    for added_BHKV, a_BH in zip(added_BHNKV.unbind(2), g_BHNC[..., -1].exp().unbind(2), strict=True):
        before.append(s_BHKV)
        s_BHKV = a_BH[..., None, None] * s_BHKV + added_BHKV
    out_BHNCV = inside_BHNCV + g_BHNC.exp()[..., None] * (q_BHNCK @ torch.stack(before, dim=2))
    return unchunked(out_BHNCV, tokens), s_BHKV
