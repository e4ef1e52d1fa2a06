"""Norms: what keeps a residual stream in bounds. Parts, and what a residual is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import nn


class Norm(Protocol):
    """Data that builds a norm over the channels of a token."""

    def build(self, width: int) -> nn.Module: ...


@dataclass(frozen=True)
class LayerNorm:
    """Mean 0 and variance 1 over the channels of a token, then a scale and a shift (Ba, Kiros & Hinton 2016, arXiv 1607.06450).

    >>> LayerNorm().build(width=8).normalized_shape
    (8,)
    """

    def build(self, width: int) -> nn.Module:
        return nn.LayerNorm(width)


@dataclass(frozen=True)
class RmsNorm:
    """Mean square 1 over the channels of a token, then a scale (Zhang & Sennrich 2019, arXiv 1910.07467)."""

    def build(self, width: int) -> nn.Module:
        return nn.RMSNorm(width, eps=1e-6)
