"""How sharp attention is: what happens to a query before its scores are taken, and how scores become weights. A part of
attention, chosen like any part.

Shapes: B samples, H heads, T tokens, Q of them with a query (all, or those named), C channels of a head, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from lengthlab.errors import require_number
from lengthlab.models.layout import PLAIN, Layout


class Scores(Protocol):
    """Data that builds a module `(q_BHQC, x_BQD, layout) -> q_BHQC`, where x is what queries were made of.

    `layout.query_BQ` are the tokens with a query, all if None. A module that is right for a piece of a sequence, too
    (`layout.piece`), says `in_pieces = True`.
    """

    def build(self, heads: int, width: int) -> nn.Module: ...


@runtime_checkable
class CustomWeights(Protocol):
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
        require_number(self.first, "scores.first", above=0)

    def build(self, heads: int, width: int) -> nn.Module:
        return _LogN(heads, self.first)


@dataclass(frozen=True)
class Tempered:
    """Plain scores that are free to grow with the number of tokens to choose from: the query at token i times 1 + tau·log(i).

    The tempered softmax of *Task Hinting* (Awasthi & Gupta 2023, arXiv 2310.00726) as one of its authors codes it elsewhere,
    with the length of the whole sequence; here i is the number of tokens that a query sees. tau is learned for each head, and
    starts at random, `deviation` around 0: a model starts from plain scores.
    """

    deviation: float = 0.02

    def __post_init__(self) -> None:
        require_number(self.deviation, "scores.deviation", least=0)

    def build(self, heads: int, width: int) -> nn.Module:
        return _Tempered(heads, self.deviation)


class _Plain(nn.Module):
    in_pieces = True

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        return q_BHQC


class _LogN(nn.Module):
    in_pieces = True

    def __init__(self, heads: int, first: float) -> None:
        super().__init__()
        self.scale_H = nn.Parameter(torch.full((heads,), first))

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        # By the index, not by a task's own position id: it is the number of tokens to choose from.
        log_BQ = (layout.index_in_whole(q_BHQC.shape[2], q_BHQC.device) + 1).to(q_BHQC.dtype).log()
        return q_BHQC * (self.scale_H[:, None] * log_BQ[:, None])[..., None]


class _Tempered(nn.Module):
    in_pieces = True

    def __init__(self, heads: int, deviation: float) -> None:
        super().__init__()
        self.tau_H = nn.Parameter(deviation * torch.randn(heads))

    def forward(self, q_BHQC: Tensor, x_BQD: Tensor, layout: Layout = PLAIN) -> Tensor:
        log_BQ = (layout.index_in_whole(q_BHQC.shape[2], q_BHQC.device) + 1).to(q_BHQC.dtype).log()
        return q_BHQC * (1 + self.tau_H[:, None] * log_BQ[:, None])[..., None]
