"""Attention that is sharpened when it is measured, by how flat it has become.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import require


@dataclass(frozen=True)
class AdaptiveTemperature:
    """Scores are sharpened in evaluation alone, by how flat the weights are (Veličković et al. 2024, arXiv 2410.01104).

    They are multiplied by β(h), a polynomial in the entropy h of the weights, but never by less than one, and not where h is at
    most `flat`. The coefficients, highest power first, are the authors', fitted on a task of theirs;
    `evaluation/temperature.py` fits them to a network and a task of yours.
    """

    coefficients: tuple[float, ...] = (-0.037, 0.481, -2.3, 4.917, -1.791)
    flat: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", tuple(map(float, self.coefficients)))
        require(len(self.coefficients) >= 1, "scores.coefficients must be at least one number")

    def build(self, heads: int, width: int) -> nn.Module:
        return _AdaptiveTemperature(self.coefficients, self.flat)


class _AdaptiveTemperature(nn.Module):
    def __init__(self, coefficients: tuple[float, ...], flat: float) -> None:
        super().__init__()
        self.coefficients, self.flat = coefficients, flat

    def forward(self, q_BHQC: Tensor, at_BQ: Tensor | None, x_BQD: Tensor) -> Tensor:
        return q_BHQC

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        scores = scores_BHQT.float().masked_fill(~seen_BHQT, -torch.inf)
        weights = scores.softmax(dim=-1)
        if not self.training:
            weights = (self.sharpness(entropy(weights)) * scores).softmax(dim=-1)
        return weights.to(scores_BHQT.dtype)

    def sharpness(self, h: Tensor) -> Tensor:
        """β of an entropy."""
        beta = torch.zeros_like(h)
        for coefficient in self.coefficients:
            beta = beta * h + coefficient
        return torch.where(h > self.flat, beta.clamp(min=1.0), torch.ones_like(h))


def entropy(weights: Tensor) -> Tensor:
    """In nats, over the last dimension, which stays.

    >>> entropy(torch.tensor([0.5, 0.5, 0.0]))
    tensor([0.6931])
    """
    h: Tensor = torch.special.entr(weights).sum(dim=-1, keepdim=True)
    return h
