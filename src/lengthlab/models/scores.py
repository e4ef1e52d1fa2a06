"""How sharp attention is: what happens to a query before its scores are taken. A part of attention, chosen like any part.

Shapes: B samples, H heads, T tokens, C channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from lengthlab.errors import require


class Scores(Protocol):
    """Data that builds a module `q_BHTC -> q_BHTC`."""

    def build(self, heads: int) -> nn.Module: ...


@dataclass(frozen=True)
class PlainScores:
    """The usual scores, q·k / sqrt(C)."""

    def build(self, heads: int) -> nn.Module:
        return nn.Identity()


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

    def build(self, heads: int) -> nn.Module:
        return _LogN(heads, self.first)


class _LogN(nn.Module):
    def __init__(self, heads: int, first: float) -> None:
        super().__init__()
        self.scale_H = nn.Parameter(torch.full((heads,), first))

    def forward(self, q_BHTC: Tensor) -> Tensor:
        log_T = torch.arange(1, q_BHTC.shape[2] + 1, device=q_BHTC.device, dtype=q_BHTC.dtype).log()
        return q_BHTC * (self.scale_H[:, None] * log_T)[:, :, None]


SCORES: dict[str, type[PlainScores] | type[LogN]] = {"none": PlainScores, "log-n": LogN}
