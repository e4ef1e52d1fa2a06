"""Turning pairs of channels by an angle.

Shapes: B samples, H heads, T tokens, C channels of a head, F pairs of them.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rotation_table(tokens: int, channels: int, base: float, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle, repeated for both halves of the channels; angles are computed in fp64."""
    with torch.inference_mode(False):  # the table is kept, and training cannot use what inference mode made
        frequency_F = base ** -(torch.arange(0, channels, 2, dtype=torch.float64, device="cpu") / channels)
        angle_TF = torch.arange(tokens, dtype=torch.float64, device="cpu")[:, None] * frequency_F
        angle_TC = torch.cat((angle_TF, angle_TF), dim=1)
        return angle_TC.cos().to(device, dtype), angle_TC.sin().to(device, dtype)


def rotate(x_BHTC: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + C/2]) by its angle."""
    low, high = x_BHTC.chunk(2, dim=-1)
    return x_BHTC * cos + torch.cat((-high, low), dim=-1) * sin
