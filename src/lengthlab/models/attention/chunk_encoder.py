"""A chunk read by itself, in both directions, and a summary of it.

Shapes: M chunks, S tokens of a chunk, L = S + 1 with the CLS token, D width, H heads, C channels of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.linear import Linear

MLP = 2
"""Times as wide as the model is the MLP of an encoder layer inside."""


class ChunkEncoder(nn.Module):
    """Layers of a transformer encoder over a chunk and a learned CLS token behind it, whose output is the summary.

    They are pre-norm, with a norm at the end, and without positions: order is left to the recurrence below.

    >>> tokens_MSD, summary_MD = ChunkEncoder(width=8, heads=2, layers=1)(torch.randn(5, 4, 8))
    >>> tokens_MSD.shape, summary_MD.shape
    (torch.Size([5, 4, 8]), torch.Size([5, 8]))
    """

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.cls_D = nn.Parameter(torch.randn(width) / width**0.5)
        self.layers = nn.ModuleList(_EncoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x_MSD: Tensor) -> tuple[Tensor, Tensor]:
        x_MLD = torch.cat((x_MSD, self.cls_D.to(x_MSD.dtype).expand(len(x_MSD), 1, -1)), dim=1)
        for layer in self.layers:
            x_MLD = layer(x_MLD)
        x_MLD = self.norm(x_MLD)
        return x_MLD[:, :-1], x_MLD[:, -1]


class ChunkMean(nn.Module):
    """Tokens behind a norm, and their mean as the summary: the simplest encoder there is."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, x_MSD: Tensor) -> tuple[Tensor, Tensor]:
        x_MSD = self.norm(x_MSD)
        return x_MSD, x_MSD.mean(dim=1)


class _EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), Linear(width, MLP * width), nn.GELU(), Linear(MLP * width, width))

    def forward(self, x_MLD: Tensor) -> Tensor:
        qkv_3MHLC = self.qkv(self.norm(x_MLD)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed_MHLC = F.scaled_dot_product_attention(*qkv_3MHLC)
        x_MLD = x_MLD + self.out(mixed_MHLC.transpose(1, 2).flatten(2))
        out: Tensor = x_MLD + self.feed(x_MLD)
        return out
