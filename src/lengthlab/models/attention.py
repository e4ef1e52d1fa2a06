"""Causal self-attention: recall by content.

Shapes: B samples, T tokens, Q of them with a query (all, or those asked for), D width, H heads, C = D / H channels of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import LabError, nearest, require
from lengthlab.models.asked import Asked, pick
from lengthlab.models.positions import POSITIONS, Positions, Rope
from lengthlab.models.scores import SCORES, PlainScores, Scores


@dataclass(frozen=True)
class Attention:
    """Multi-head softmax attention with its four projections. Positions and scores are parts, or the name of one.

    >>> Attention(heads=4, positions="none", scores="log-n")
    Attention(heads=4, positions=NoPositions(), scores=LogN(first=0.43))
    """

    heads: int = 8
    positions: Positions | str = Rope()
    scores: Scores | str = PlainScores()

    def __post_init__(self) -> None:
        require(self.heads >= 1, f"model.heads must be at least 1, not {self.heads}")
        object.__setattr__(self, "positions", _named(self.positions, POSITIONS, "positions"))
        object.__setattr__(self, "scores", _named(self.scores, SCORES, "scores"))

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"model.heads = {self.heads} does not divide model.width = {width}")
        assert not isinstance(self.positions, str)
        assert not isinstance(self.scores, str)
        return _Attention(width, self.heads, self.positions.build(width // self.heads), self.scores.build(self.heads))


def _named(choice: object, known: Mapping[str, Callable[[], object]], where: str) -> object:
    """A part as it is, or the part of that name."""
    if not isinstance(choice, str):
        return choice
    if choice not in known:
        raise LabError(f"model.{where}: unknown name '{choice}'; {nearest(choice, known)}")
    return known[choice]()


class _Attention(Asked):
    def __init__(self, width: int, heads: int, positions: nn.Module, scores: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.positions = positions
        self.scores = scores
        self.out = nn.Linear(width, width)

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        q_BHQC = self._heads(self.q(x_BTD if at_BQ is None else pick(x_BTD, at_BQ)))
        k_BHTC, v_BHTC = map(self._heads, self.kv(x_BTD).chunk(2, dim=-1))
        q_BHQC, k_BHTC = self.positions(q_BHQC, k_BHTC, at_BQ)
        q_BHQC = self.scores(q_BHQC, at_BQ)
        if at_BQ is None:
            mixed_BHQC = F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, is_causal=True)
        else:
            seen_BHQT = (torch.arange(x_BTD.shape[1], device=x_BTD.device) <= at_BQ[:, :, None])[:, None]
            mixed_BHQC = F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, attn_mask=seen_BHQT)
        out: Tensor = self.out(mixed_BHQC.transpose(1, 2).flatten(2))
        return out

    def _heads(self, x_BTD: Tensor) -> Tensor:
        return x_BTD.reshape(*x_BTD.shape[:2], self.heads, -1).transpose(1, 2)
