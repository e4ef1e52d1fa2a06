"""How sharp attention is: what happens to a query before its scores are taken, and how scores become weights. A part of
attention, chosen like any part.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those asked for), C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.entmax import AdaptiveEntmax, Entmax
from lengthlab.models.stick_breaking import StickBreaking
from lengthlab.models.temperature import AdaptiveTemperature


class Scores(Protocol):
    """Data that builds a module `(q_BHQC, at_BQ, x_BQD) -> q_BHQC`, where x is what queries were made of; without `at_BQ`,
    every token has a query.
    """

    def build(self, heads: int, width: int) -> nn.Module: ...


@runtime_checkable
class Weighs(Protocol):
    """A module of scores that has its own way from scores to weights; without one it is softmax."""

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        """weights_BHQT, none of them where a token is not seen."""


@dataclass(frozen=True)
class PlainScores:
    """The usual scores, q·k / sqrt(C)."""

    def build(self, heads: int, width: int) -> nn.Module:
        return _Plain()


@dataclass(frozen=True)
class LogN:
    """Scores that grow with the number of tokens to choose from: the query at token i is multiplied by s·log(i).

    Softmax over i tokens flattens as i grows (Veličković et al. 2024, arXiv 2410.01104); a score that grows like log(i)
    keeps the weight of the best token in place (Chiang & Cholak 2022, arXiv 2202.12172). The factor s is learned for each
    head and starts at `first`; 0.43 is about 1 / log(10), so that plain scores are what a model starts from near token 10.
    """

    first: float = 0.43

    def __post_init__(self) -> None:
        require(self.first > 0, f"scores.first must be above 0, not {self.first}")

    def build(self, heads: int, width: int) -> nn.Module:
        return _LogN(heads, self.first)


class _Plain(nn.Module):
    def forward(self, q_BHQC: Tensor, at_BQ: Tensor | None, x_BQD: Tensor) -> Tensor:
        return q_BHQC


class _LogN(nn.Module):
    def __init__(self, heads: int, first: float) -> None:
        super().__init__()
        self.scale_H = nn.Parameter(torch.full((heads,), first))

    def forward(self, q_BHQC: Tensor, at_BQ: Tensor | None, x_BQD: Tensor) -> Tensor:
        if at_BQ is None:
            at_BQ = torch.arange(q_BHQC.shape[2], device=q_BHQC.device)[None]
        log_BQ = (at_BQ + 1).to(q_BHQC.dtype).log()
        return q_BHQC * (self.scale_H[:, None] * log_BQ[:, None])[..., None]


SCORES: dict[str, type[Any]] = {
    "none": PlainScores,
    "log-n": LogN,
    "adaptive-temperature": AdaptiveTemperature,
    "entmax": Entmax,
    "adaptive-entmax": AdaptiveEntmax,
    "stick-breaking": StickBreaking,
}
