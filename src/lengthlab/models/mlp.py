"""The feed-forward part of a transformer block."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from lengthlab.errors import require
from lengthlab.models.asked import Links
from lengthlab.models.linear import Linear


@dataclass(frozen=True)
class Mlp:
    """Two linear maps with ReLU between, `factor` times as wide inside, as in the first (post-LayerNorm) transformer."""

    factor: int = 4

    def __post_init__(self) -> None:
        require(self.factor >= 1, f"model.mlp must be at least 1, not {self.factor}")

    def build(self, width: int) -> nn.Module:
        return Links(Linear(width, self.factor * width), nn.ReLU(), Linear(self.factor * width, width))
