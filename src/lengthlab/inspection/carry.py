"""Whether anything carries information from one token to later ones, found out by trying."""

from __future__ import annotations

import torch
from torch import nn

from lengthlab.inspection.reading import draw, logits, other

LENGTH = 16
CHANGED = 3
NOISE = 1e-6
"""Of the largest logit: what two forwards may differ by without a reason."""


def carries(network: nn.Module) -> bool:
    """Whether another token at one place changes the output at a later place. The weights of the network are lost.

    >>> table = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
    >>> carries(table)
    False
    """
    disturb(network)
    tokens_1T = draw(network, 1, LENGTH)
    changed_1T = tokens_1T.clone()
    changed_1T[:, CHANGED] = other(network, tokens_1T)[:, CHANGED]
    before, after = logits(network, tokens_1T), logits(network, changed_1T)
    return bool((before - after)[:, CHANGED + 1 :].abs().max() > NOISE * before.abs().max())


def disturb(network: nn.Module) -> None:
    """Many models begin with maps of zeros, through which nothing passes yet."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter), alpha=0.02)
