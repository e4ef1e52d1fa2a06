"""Bits of which so many are ones, in any order.

Shapes: B samples, N bits of the longest sequence.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

BITS = ("0", "1")


def shuffled(ones_B: Tensor, n_B: Tensor, longest: int, generator: Generator) -> Tensor:
    """bit_BN: of the first n bits of a sample so many are 1, each choice of them alike; beyond them all are 0.

    >>> shuffled(torch.tensor([2]), torch.tensor([3]), 4, torch.Generator().manual_seed(0)).tolist()
    [[1, 0, 1, 0]]
    """
    place_N = torch.arange(longest, device=generator.device)
    key_BN = torch.rand(len(n_B), longest, generator=generator, device=generator.device)
    order_BN = key_BN.where(place_N < n_B[:, None], 2.0).argsort(dim=1)  # what is beyond comes last
    ones_BN = (place_N < ones_B[:, None]).long()
    return torch.zeros_like(order_BN).scatter_(1, order_BN, ones_BN)


def up_to(most_B: Tensor, generator: Generator) -> Tensor:
    """For each sample a whole number from 0 to `most`, each alike.

    >>> up_to(torch.tensor([0, 3, 3]), torch.Generator().manual_seed(0)).tolist()
    [0, 3, 0]
    """
    uniform_B = torch.rand(len(most_B), generator=generator, device=generator.device)
    return (uniform_B * (most_B + 1)).long().minimum(most_B)
