"""How exactly a run is computed while it trains. Weights, Adam's memory and every evaluation are fp32 in any case.

| name | weights, Adam | matrix products | sums in them | recurrent state h | cell c | norms, softmax, loss | evaluation |
|------|---------------|-----------------|--------------|-------------------|--------|----------------------|------------|
| fp32 | fp32          | fp32, not TF32  | fp32         | fp32              | fp32   | fp32                 | fp32       |
| bf16 | fp32          | bf16            | fp32         | bf16              | fp32*  | fp32 inside          | fp32       |

* in the GPU's kernel; where there is none, as h.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lengthlab.errors import LabError, nearest


@dataclass(frozen=True)
class Precision:
    """The type in which forward and backward pass are computed."""

    name: str
    compute: torch.dtype


FP32 = Precision("fp32", torch.float32)
BF16 = Precision("bf16", torch.bfloat16)
PRECISIONS = {precision.name: precision for precision in (FP32, BF16)}


def precision_named(name: str | None, device: torch.device) -> Precision:
    """The precision of that name; without one, bf16 on a GPU and fp32 elsewhere.

    >>> precision_named(None, torch.device("cpu")).name
    'fp32'
    """
    if name is None:
        return BF16 if device.type == "cuda" else FP32
    if name not in PRECISIONS:
        raise LabError(f"unknown precision '{name}'; {nearest(name, PRECISIONS)}")
    return PRECISIONS[name]
