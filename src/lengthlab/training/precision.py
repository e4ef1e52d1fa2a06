"""How exactly a run is computed while it trains. Weights, Adam's memory and every evaluation are fp32 in any case.

| name | weights, Adam | matrix products | sums in them | recurrent state h | cell c | norms, softmax, loss | evaluation |
|------|---------------|-----------------|--------------|-------------------|--------|----------------------|------------|
| fp32 | fp32          | fp32, not TF32  | fp32         | fp32              | fp32   | fp32                 | fp32       |
| tf32 | fp32          | TF32            | fp32         | fp32              | fp32   | fp32                 | fp32       |
| bf16 | fp32          | bf16            | fp32         | bf16              | fp32*  | fp32 inside          | fp32       |

* in the GPU's kernel; where there is none, or for padded batches of a model that has a GPU to itself, as h.

bf16 is the fastest by far and enough for most, but what passes from layer to layer has 8 bits in it. Learned positions of a
long table need more: of the same recipe for unique copying, trained on n ≤ 50, one run in bf16 had 0.44 of the samples of
101…150 letters right, and one in fp32 0.99 (one H200, seed 100, which is not published).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from lengthlab.errors import LabError, nearest, require


@dataclass(frozen=True)
class Precision:
    """The type in which forward and backward pass are computed; `rounds`: whether factors of products have 10 bits in them."""

    name: str
    compute: torch.dtype
    rounds: bool = False

    @contextmanager
    def products(self) -> Iterator[None]:
        """While inside, a GPU makes matrix products so."""
        products, recurrence = torch.backends.cuda.matmul, torch.backends.cudnn
        before = products.allow_tf32, recurrence.allow_tf32
        products.allow_tf32 = recurrence.allow_tf32 = self.rounds
        try:
            yield
        finally:
            products.allow_tf32, recurrence.allow_tf32 = before


FP32 = Precision("fp32", torch.float32)
TF32 = Precision("tf32", torch.float32, rounds=True)
BF16 = Precision("bf16", torch.bfloat16)
PRECISIONS = {precision.name: precision for precision in (FP32, TF32, BF16)}


def precision_named(name: str | None, device: torch.device) -> Precision:
    """The precision of that name; without one, bf16 on a GPU and fp32 elsewhere.

    >>> precision_named(None, torch.device("cpu")).name
    'fp32'
    """
    if name is None:
        return BF16 if device.type == "cuda" else FP32
    if name not in PRECISIONS:
        raise LabError(f"unknown precision '{name}'; {nearest(name, PRECISIONS)}")
    chosen = PRECISIONS[name]
    require(device.type == "cuda" or not chosen.rounds, f"{name} is a way of NVIDIA's GPUs, not of '{device.type}': take fp32")
    return chosen
