"""A memory that is corrected rather than added to (the delta rule): S = a·(I − β·k·kᵀ)·S + β·k·vᵀ, read by Sᵀq.

What is stored under a key of length 1 is replaced by v as far as β says; β above 1 turns its sign. A token may make several
such steps, of which the first fades the memory and the last is read. Two ways that are equal: `walk_delta` goes from step to
step, `scan_delta` from chunk to chunk.
Shapes: B samples, H heads, T tokens, U = T·J steps, J steps of a token, N chunks, C steps of a chunk, Q = C / J tokens of it,
K channels of keys, V of values.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lengthlab.models.recurrence.chunks import CHUNK, chunked, log_between, unchunked

DeltaScan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None, Tensor], tuple[Tensor, Tensor]]
"""(q_BHTK, k_BHUK, v_BHUV, β_BHU, log a_BHU, S_BHKV) → (out_BHTV, S_BHKV); without log a, nothing fades."""


def walk_delta(
    q_BHTK: Tensor, k_BHUK: Tensor, v_BHUV: Tensor, beta_BHU: Tensor, log_BHU: Tensor | None, s_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Step after step."""
    log_BHU = torch.zeros_like(beta_BHU) if log_BHU is None else log_BHU
    steps = k_BHUK.shape[2] // q_BHTK.shape[2]
    after = []
    for k_BHK, v_BHV, beta_BH, a_BH in zip(*(x.unbind(2) for x in (k_BHUK, v_BHUV, beta_BHU, log_BHU.exp())), strict=True):
        s_BHKV = a_BH[..., None, None] * s_BHKV
        wrong_BHV = v_BHV - (k_BHK[..., None, :] @ s_BHKV).squeeze(-2)
        s_BHKV = s_BHKV + k_BHK[..., :, None] * (beta_BH[..., None] * wrong_BHV)[..., None, :]
        after.append(s_BHKV)
    read = after[steps - 1 :: steps]
    out = [(q_BHK[..., None, :] @ s_BHKV).squeeze(-2) for q_BHK, s_BHKV in zip(q_BHTK.unbind(2), read, strict=True)]
    return torch.stack(out, dim=2), s_BHKV


def scan_delta(
    q_BHTK: Tensor, k_BHUK: Tensor, v_BHUV: Tensor, beta_BHU: Tensor, log_BHU: Tensor | None, s_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Chunk after chunk (Yang et al. 2024, arXiv 2406.06484 and 2412.06464).

    A step writes k_t·u_tᵀ with u_t = β_t (v_t − a_t·Sᵀk_t). With g the sum of log a since the chunk began and S the memory
    before it, u_t + β_t Σ_{s < t} exp(g_t − g_s) (k_t·k_s) u_s = β_t (v_t − exp(g_t)·Sᵀk_t): a triangular system, solved for
    all chunks at once for v, and for the keys that S is read by.
    """
    log_BHU = torch.zeros_like(beta_BHU) if log_BHU is None else log_BHU
    tokens = q_BHTK.shape[2]
    steps = k_BHUK.shape[2] // tokens
    size = min(max(1, CHUNK // steps), tokens)
    q_BHNQK = chunked(q_BHTK, size)
    k_BHNCK, v_BHNCV, beta_BHNC, log_BHNC = (chunked(x, size * steps) for x in (k_BHUK, v_BHUV, beta_BHU, log_BHU))
    g_BHNC = log_BHNC.cumsum(dim=-1)
    decay_BHNCC, beta_BHNC1 = log_between(g_BHNC).exp(), beta_BHNC[..., None]
    system_BHNCC = beta_BHNC1 * (k_BHNCK @ k_BHNCK.mT) * decay_BHNCC
    known = torch.cat((beta_BHNC1 * v_BHNCV, beta_BHNC1 * g_BHNC.exp()[..., None] * k_BHNCK), dim=-1)
    # Ones are taken for the diagonal.
    solved = torch.linalg.solve_triangular(system_BHNCC, known, upper=False, unitriangular=True)
    own_BHNCV, by_memory_BHNCK = torch.split(solved, [v_BHNCV.shape[-1], k_BHNCK.shape[-1]], dim=-1)
    kept_BHNCK = k_BHNCK * (g_BHNC[..., -1:] - g_BHNC).exp()[..., None]
    before, written = [], []
    chunks = (x.unbind(2) for x in (own_BHNCV, by_memory_BHNCK, kept_BHNCK, g_BHNC[..., -1].exp()))
    for own_BHCV, by_memory_BHCK, kept_BHCK, a_BH in zip(*chunks, strict=True):
        u_BHCV = own_BHCV - by_memory_BHCK @ s_BHKV
        before.append(s_BHKV)
        written.append(u_BHCV)
        s_BHKV = a_BH[..., None, None] * s_BHKV + kept_BHCK.mT @ u_BHCV
    read = slice(steps - 1, None, steps)
    inside_BHNQV = (q_BHNQK @ k_BHNCK.mT * decay_BHNCC[..., read, :]) @ torch.stack(written, dim=2)
    across_BHNQV = g_BHNC[..., read].exp()[..., None] * (q_BHNQK @ torch.stack(before, dim=2))
    return unchunked(inside_BHNQV + across_BHNQV, tokens), s_BHKV
