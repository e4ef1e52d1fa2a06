"""What stands between linear maps, and what drops some of their outputs. Each treats every number by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import nn

from lengthlab.errors import require_number


class Activation(Protocol):
    """Data that builds what stands between two maps; `width` is that of its input."""

    def build(self, width: int) -> nn.Module: ...


@dataclass(frozen=True)
class Relu:
    """The positive part of x."""

    def build(self, width: int) -> nn.Module:
        return nn.ReLU()


@dataclass(frozen=True)
class Gelu:
    """x · Φ(x) (Hendrycks & Gimpel 2016, arXiv 1606.08415)."""

    def build(self, width: int) -> nn.Module:
        return nn.GELU()


@dataclass(frozen=True)
class Silu:
    """x · σ(x) (Elfwing, Uchibe & Doya 2017, arXiv 1702.03118)."""

    def build(self, width: int) -> nn.Module:
        return nn.SiLU()


@dataclass(frozen=True)
class Dropout:
    """In training, this share of the numbers becomes 0 and the others grow to make up for it."""

    share: float = 0.1

    def __post_init__(self) -> None:
        require_number(self.share, "dropout.share", least=0, below=1)

    def build(self, width: int) -> nn.Module:
        return nn.Dropout(self.share)
