"""What is not to be kept in 16 bits: sums over many tokens, exponents of sums, scores that choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def exact(x: Tensor) -> Tensor:
    """In fp32 where it is shorter.

    >>> exact(torch.ones(1, dtype=torch.bfloat16)).dtype, exact(torch.ones(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return x.float() if x.dtype.itemsize < torch.float32.itemsize else x


@contextmanager
def unrounded() -> Iterator[None]:
    """Products that are made meanwhile take factors of fp32 whole, also where those around them have 10 bits of them (TF32).

    A GPU is told so when a product is enqueued, so it holds for steps that are captured. Gradients are made later, and are
    rounded as all others are.
    """
    products = torch.backends.cuda.matmul
    if not _rounds():
        yield
        return
    products.allow_tf32 = False
    try:
        yield
    finally:
        products.allow_tf32 = True


def _rounds() -> bool:
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # somebody has set it by PyTorch's newer names, and the older do not tell any more
        return False
