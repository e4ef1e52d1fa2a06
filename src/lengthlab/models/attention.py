"""Causal self-attention: recall by content.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import LabError, nearest, require
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


def _named(choice: object, known: dict, where: str) -> object:  # type: ignore[type-arg]
    """A part as it is, or the part of that name."""
    if not isinstance(choice, str):
        return choice
    if choice not in known:
        raise LabError(f"model.{where}: unknown name '{choice}'; {nearest(choice, known)}")
    return known[choice]()


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, positions: nn.Module, scores: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.positions = positions
        self.scores = scores
        self.out = nn.Linear(width, width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        q_BHTC, k_BHTC, v_BHTC = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x_BTD).chunk(3, dim=-1)
        )
        q_BHTC, k_BHTC = self.positions(q_BHTC, k_BHTC)
        mixed_BHTC = F.scaled_dot_product_attention(self.scores(q_BHTC), k_BHTC, v_BHTC, is_causal=True)
        out: Tensor = self.out(mixed_BHTC.transpose(1, 2).flatten(2))
        return out
