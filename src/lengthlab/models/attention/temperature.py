"""Attention that is sharpened when it is measured, by how flat it has become.

Shapes: B samples, H heads, T tokens, Q of them with a query, C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.layout import PLAIN, Layout

DEGREE = 4
"""Of the polynomial, at the most."""
VELICKOVIC = (-0.037, 0.481, -2.3, 4.917, -1.791)
"""The coefficients of Veličković et al., fitted on a task of theirs: `AdaptiveTemperature(VELICKOVIC)`."""


@dataclass(frozen=True)
class AdaptiveTemperature:
    """Scores are sharpened in evaluation alone, by how flat the weights are (Veličković et al. 2024, arXiv 2410.01104).

    They are multiplied by β(h), a polynomial in the entropy h of the weights, but never by less than one, and not where h is at
    most `flat`. Without coefficients (highest power first) they are fitted to the network when its training is over, by
    `evaluation/temperature.py`, and `flat` with them: on how `question` is answered at so many `times` the training length, as
    far as the task reaches. Whatever is above 1 among these are lengths that training has not seen.
    """

    coefficients: tuple[float, ...] = ()
    flat: float = 0.5
    times: tuple[int, ...] = (1, 2, 4)
    question: str = "recall"

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", tuple(map(float, self.coefficients)))
        object.__setattr__(self, "times", tuple(self.times))
        fits = len(self.times) > 0 and all(isinstance(each, int) and each >= 1 for each in self.times)
        require(fits, f"scores.times must be whole numbers, one or more, each at least 1, not {list(self.times)}")

    def build(self, heads: int, width: int) -> nn.Module:
        return Temperature(self)


class Temperature(nn.Module):
    """What is fitted is kept with the weights; until then, β is 1."""

    in_pieces = True
    coefficients: Tensor
    flat: Tensor

    def __init__(self, made_of: AdaptiveTemperature) -> None:
        super().__init__()
        self.made_of = made_of
        plain = (*[0.0] * DEGREE, 1.0)
        self.register_buffer("coefficients", torch.tensor(made_of.coefficients or plain), persistent=self.waits)
        self.register_buffer("flat", torch.tensor(0.0 if self.waits else made_of.flat), persistent=self.waits)

    @property
    def waits(self) -> bool:
        """Whether it is fitted after training."""
        return not self.made_of.coefficients

    def take(self, fitted: AdaptiveTemperature) -> None:
        """From now on these."""
        missing = DEGREE + 1 - len(fitted.coefficients)
        self.coefficients.copy_(torch.tensor([*[0.0] * missing, *fitted.coefficients]))
        self.flat.fill_(fitted.flat)

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
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
