"""Turning pairs of channels by an angle.

Shapes: B samples, H heads, T tokens, C channels of a head, F pairs of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lengthlab.memory import require_memory

ANGLE_BYTES = 24
"""Of an angle in fp64, its cosine and its sine."""


def rotation_table(
    tokens: int, channels: int, base: float, device: torch.device, dtype: torch.dtype, factor: float = 1.0, first: int = 0
) -> tuple[Tensor, Tensor]:
    """cos_TC and sin_TC of so many positions from `first` on; computed on the CPU, unless only their shapes are wanted."""
    home = torch.device("cpu" if device.type != "meta" else "meta")
    if home.type == "cpu":
        require_memory(ANGLE_BYTES * tokens * channels, f"a table of {tokens} rotary positions of {channels} channels")
    with torch.inference_mode(False):  # the table is kept, and training cannot use what inference mode made
        position_1T = torch.arange(first, first + tokens, device=home)[None]
        cos_1TC, sin_1TC = rotation(position_1T, channels, base, dtype, factor)
        return cos_1TC[0].to(device), sin_1TC[0].to(device)


def rotation(position_BT: Tensor, channels: int, base: float, dtype: torch.dtype, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle, repeated for both halves of the channels; angles are computed in fp64. Positions are
    divided by `factor`.
    """
    device = position_BT.device
    frequency_F = base ** -(torch.arange(0, channels, 2, dtype=torch.float64, device=device) / channels)
    angle_BTF = position_BT[..., None].double() / factor * frequency_F
    angle_BTC = torch.cat((angle_BTF, angle_BTF), dim=-1)
    return angle_BTC.cos().to(dtype), angle_BTC.sin().to(dtype)


def rotate(x_BHTC: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + C/2]) by its angle."""
    low, high = x_BHTC.chunk(2, dim=-1)
    return x_BHTC * cos + torch.cat((-high, low), dim=-1) * sin
