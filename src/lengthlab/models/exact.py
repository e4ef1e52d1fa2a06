"""What is not to be kept in 16 bits: sums over many tokens, exponents of sums, scores that choose."""

from __future__ import annotations

import torch
from torch import Tensor


def exact(x: Tensor) -> Tensor:
    """In fp32 where it is shorter.

    >>> exact(torch.ones(1, dtype=torch.bfloat16)).dtype, exact(torch.ones(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return x.float() if x.dtype.itemsize < torch.float32.itemsize else x
