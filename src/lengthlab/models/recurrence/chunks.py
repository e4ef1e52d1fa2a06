"""Reading in chunks: inside a chunk all tokens at once, by products of matrices; from chunk to chunk a state.

Shapes: B samples, H heads, T tokens, N chunks, C tokens of a chunk, and anything after them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64
"""Tokens. The work inside a chunk grows with its square, the number of chunks falls with it."""


def chunked(x_BHT: Tensor, size: int, fill: float = 0.0) -> Tensor:
    """x_BHNC…: in chunks of one size, the last of them filled up.

    >>> chunked(torch.arange(1.0, 4.0).view(1, 1, 3), 2).tolist()
    [[[[1.0, 2.0], [3.0, 0.0]]]]
    """
    tokens = x_BHT.shape[2]
    lacking = -tokens % size
    if lacking:
        x_BHT = F.pad(x_BHT, (*(0, 0) * (x_BHT.dim() - 3), 0, lacking), value=fill)
    return torch.unflatten(x_BHT, 2, (-1, size))


def unchunked(x_BHNC: Tensor, tokens: int) -> Tensor:
    """x_BHT… again, without what filled the last chunk up."""
    return x_BHNC.flatten(2, 3)[:, :, :tokens]


def log_between(g_BHNC: Tensor) -> Tensor:
    """log_BHNCC of the decay from the state after token s (the last dimension) to that after token t; −∞ where s is later.

    `g_BHNC` are cumulative sums of log decays, each token's own included.

    >>> log_between(torch.tensor([[[[-1.0, -3.0]]]])).tolist()
    [[[[[0.0, -inf], [-2.0, 0.0]]]]]
    """
    size = g_BHNC.shape[-1]
    later_CC = torch.ones(size, size, dtype=torch.bool, device=g_BHNC.device).triu(1)
    return (g_BHNC[..., :, None] - g_BHNC[..., None, :]).masked_fill(later_CC, -torch.inf)
