"""Recurrences small enough to be held against loops, and what is read with them.

Shapes: B samples, T tokens, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lengthlab.models import Bilinear, Deltaproduct, GatedDeltanet, Gru, Lstm, Mamba2, MLstm, Rnn, SLstm

WIDTH = 8
PARTS: dict[str, Any] = {
    "lstm": Lstm(),
    "lstm, 2 layers": Lstm(layers=2),
    "gru": Gru(),
    "rnn": Rnn(),
    "slstm": SLstm(heads=2),
    "mlstm": MLstm(heads=2),
    "mamba2": Mamba2(heads=2, state=4),
    "gated-deltanet": GatedDeltanet(heads=2),
    "gated-deltanet, negative": GatedDeltanet(heads=2, negative_eigenvalues=True),
    "deltaproduct": Deltaproduct(heads=2),
    "deltaproduct, gated, 3 steps": Deltaproduct(heads=2, steps=3, gated=True),
    "bilinear": Bilinear(size=4),
}
WALKERS = ("slstm", "bilinear")
"""Those that know no other way."""
CELLS = ("lstm", "lstm, 2 layers", "gru", "rnn")
"""PyTorch's own."""
LINEAR = [name for name in PARTS if name not in (*CELLS, *WALKERS)]


def built(name: str, dtype: torch.dtype = torch.float64) -> Any:
    """With weights far enough from zero that every part has a say."""
    torch.manual_seed(0)
    module = PARTS[name].build(WIDTH).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return module


def stream(length: int, size: int = 2, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    return torch.randn(size, length, WIDTH, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def same(one: Tensor, other: Tensor, tolerance: float = 1e-10) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=tolerance, atol=tolerance)
