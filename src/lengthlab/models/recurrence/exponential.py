"""A memory with an exponential input gate: S = f·S + exp(i)·k·vᵀ, read by Sᵀq, and kept divided by exp(m) lest it overflow.

m = max(log f + m, i) is the largest logarithm in sight (Beck et al. 2024, arXiv 2405.04517, appendix). It may be any number
without changing what is read in the end, so no gradient goes through it. Two ways that are equal: `walk_exponential` goes from
token to token, `scan_exponential` from chunk to chunk.
Shapes: B samples, H heads, T tokens, N chunks, C tokens of a chunk, K channels of keys, V of values.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lengthlab.models.recurrence.chunks import CHUNK, chunked, log_between, unchunked

ExponentialScan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]
"""(q_BHTK, k_BHTK, v_BHTV, i_BHT, log f_BHT, S_BHKV, m_BH) → (Sᵀq_BHTV, m_BHT, S_BHKV, m_BH); S and Sᵀq divided by exp(m)."""


def walk_exponential(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, input_BHT: Tensor, log_f_BHT: Tensor, s_BHKV: Tensor, m_BH: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Token after token."""
    out, stabilizers = [], []
    tokens = (x.unbind(2) for x in (q_BHTK, k_BHTK, v_BHTV, input_BHT, log_f_BHT))
    for q_BHK, k_BHK, v_BHV, i_BH, f_BH in zip(*tokens, strict=True):
        before, m_BH = m_BH, torch.maximum(f_BH + m_BH, i_BH).detach()
        f_BH, i_BH = (f_BH + before - m_BH).exp(), (i_BH - m_BH).exp()
        s_BHKV = f_BH[..., None, None] * s_BHKV + i_BH[..., None, None] * k_BHK[..., :, None] * v_BHV[..., None, :]
        out.append((q_BHK[..., None, :] @ s_BHKV).squeeze(-2))
        stabilizers.append(m_BH)
    return torch.stack(out, dim=2), torch.stack(stabilizers, dim=2), s_BHKV, m_BH


def scan_exponential(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, input_BHT: Tensor, log_f_BHT: Tensor, s_BHKV: Tensor, m_BH: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Chunk after chunk. With g the sum of log f since the chunk began, token s is worth g_t − g_s + i_s to token t, and what
    was there before the chunk g_t + m.
    """
    tokens = v_BHTV.shape[2]
    size = min(CHUNK, tokens)
    q_BHNCK, k_BHNCK, v_BHNCV, log_f_BHNC = (chunked(x, size) for x in (q_BHTK, k_BHTK, v_BHTV, log_f_BHT))
    g_BHNC = log_f_BHNC.cumsum(dim=-1)
    worth_BHNCC = log_between(g_BHNC) + chunked(input_BHT, size, -torch.inf)[..., None, :]
    best_BHNC = worth_BHNCC.amax(dim=-1).detach()
    last_BHNC, best_BHN = worth_BHNCC[..., -1, :], best_BHNC[..., -1]
    added_BHNKV = k_BHNCK.mT @ ((last_BHNC - best_BHN[..., None]).exp()[..., None] * v_BHNCV)
    before = []
    for added_BHKV, g_BH, best_BH in zip(added_BHNKV.unbind(2), g_BHNC[..., -1].unbind(2), best_BHN.unbind(2), strict=True):
        before.append((s_BHKV, m_BH))
        m_before, m_BH = m_BH, torch.maximum(g_BH + m_BH, best_BH).detach()
        s_BHKV = (g_BH + m_before - m_BH).exp()[..., None, None] * s_BHKV + (best_BH - m_BH).exp()[..., None, None] * added_BHKV
    s_BHNKV, m_BHN = (torch.stack(each, dim=2) for each in zip(*before, strict=True))
    old_BHNC = g_BHNC + m_BHN[..., None]
    m_BHNC = torch.maximum(old_BHNC, best_BHNC).detach()
    inside_BHNCV = (q_BHNCK @ k_BHNCK.mT * (worth_BHNCC - m_BHNC[..., None]).exp()) @ v_BHNCV
    out_BHNCV = inside_BHNCV + (old_BHNC - m_BHNC).exp()[..., None] * (q_BHNCK @ s_BHNKV)
    return unchunked(out_BHNCV, tokens), unchunked(m_BHNC, tokens), s_BHKV, m_BH
