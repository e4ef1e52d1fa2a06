"""Random numbers as a function of a count, so that a step that is captured, repeated or resumed draws what it would have drawn.

Shapes: B samples, N numbers for each.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MASK = 2**32 - 1


class CountedRandom(nn.Module):
    """Draws anew for every sample at every call in training, and the same for all otherwise, so that what is measured does not
    depend on who is measured together. The count is kept with the weights.
    """

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, samples: int, numbers: int) -> Tensor:
        """uniform_BN in [0, 1), fp32."""
        if not self.training:
            return self.measured(numbers).expand(samples, numbers)
        self.count += 1
        place_BN = torch.arange(samples * numbers, device=self.count.device).view(samples, numbers)
        return uniform(place_BN, self.count)

    def measured(self, numbers: int) -> Tensor:
        """uniform_1N that all samples have when they are not trained on."""
        place_N = torch.arange(numbers, device=self.count.device)
        return uniform(place_N, torch.zeros_like(self.count))[None]


def uniform(place: Tensor, count: Tensor) -> Tensor:
    """In [0, 1), by place and count: two rounds of a hash of 32 bits (the finalizer of MurmurHash3).

    >>> uniform(torch.arange(3), torch.tensor(0))
    tensor([0.2694, 0.7750, 0.7130])
    """
    x = (place + 1) & MASK
    for salt in (count, count + 0x9E3779B9):
        x = (x ^ (salt * 0x85EBCA6B)) & MASK
        x = ((x ^ (x >> 16)) * 0x85EBCA6B) & MASK
        x = ((x ^ (x >> 13)) * 0xC2B2AE35) & MASK
        x = x ^ (x >> 16)
    return (x >> 8).float() / 2**24
