"""Causal self-attention: recall by content.

Shapes: B samples, T tokens, Q of them with a query (all, or those asked for), D width, H heads, C = D / H channels of a head,
E = 2D for keys and values. In a row of documents: N tokens of all, M of them with a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import LabError, nearest, require
from lengthlab.models.asked import pick
from lengthlab.models.documents import Documents, Mixer
from lengthlab.models.linear import Linear
from lengthlab.models.positions import POSITIONS, Begins, Biased, Positions, Turns
from lengthlab.models.rope import Rope
from lengthlab.models.scores import SCORES, PlainScores, Scores, Weighs
from lengthlab.models.temperature import Temperature

PAIRS = 2**25
"""Of query and key, at a time, where weights are written out."""


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
        return _Attention(width, self.heads, self.positions.build(width // self.heads), self.scores.build(self.heads, width))


def _named(choice: object, known: Mapping[str, type[Any]], where: str) -> object:
    """A part as it is, or the part of that name."""
    if not isinstance(choice, str):
        return choice
    if choice not in known:
        raise LabError(f"model.{where}: unknown name '{choice}'; {nearest(choice, known)}")
    return known[choice]()


def is_known(part: nn.Module) -> bool:
    """Whether it is one of the package's own positions or scores."""
    return type(part).__module__.startswith("lengthlab.models.")


class _Attention(Mixer):
    def __init__(self, width: int, heads: int, positions: nn.Module, scores: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.q = Linear(width, width)
        self.kv = Linear(width, 2 * width)
        self.positions = positions
        self.scores = scores
        self.out = Linear(width, width)
        if isinstance(positions, Begins):
            with torch.no_grad():
                for weight_DD in (self.q.weight, self.kv.weight[:width]):
                    positions.set_first_weights(weight_DD.view(heads, -1, width))

    @property
    def _softmax_now(self) -> bool:
        """Whether weights are a plain softmax; a temperature that adapts leaves training alone."""
        return not isinstance(self.scores, Weighs) or (self.training and isinstance(self.scores, Temperature))

    @property
    def keeps_to_documents(self) -> bool:
        return is_known(self.positions) and is_known(self.scores)

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        x_BQD = x_BTD if at_BQ is None else pick(x_BTD, at_BQ)
        q_BQD, kv_BTE = self.q(x_BQD), self.kv(x_BTD)
        if self.documents is None:
            mixed_BQD = self._mix(x_BQD, q_BQD, kv_BTE, at_BQ)
        else:
            mixed_BQD = self._mix_documents(x_BQD, q_BQD, kv_BTE, at_BQ, self.documents)
        out: Tensor = self.out(mixed_BQD)
        return out

    def _mix(self, x_BQD: Tensor, q_BQD: Tensor, kv_BTE: Tensor, at_BQ: Tensor | None) -> Tensor:
        q_BHQC = self._heads(q_BQD)
        k_BHTC, v_BHTC = map(self._heads, kv_BTE.chunk(2, dim=-1))
        q_BHQC, k_BHTC = self.positions(q_BHQC, k_BHTC, at_BQ)
        q_BHQC = self.scores(q_BHQC, at_BQ, x_BQD)
        if at_BQ is None and not isinstance(self.positions, Biased) and self._softmax_now:
            mixed_BHQC = F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, is_causal=True)
        else:
            at_BQ = torch.arange(k_BHTC.shape[2], device=x_BQD.device)[None] if at_BQ is None else at_BQ
            mixed_BHQC = self._weigh(q_BHQC, k_BHTC, v_BHTC, at_BQ)
        return mixed_BHQC.transpose(1, 2).flatten(2)

    def _weigh(self, q_BHQC: Tensor, k_BHTC: Tensor, v_BHTC: Tensor, at_BQ: Tensor) -> Tensor:
        """Some queries at a time, so that memory grows with T and not with T²; gradients need all of it anyway."""
        some = max(1, PAIRS // (k_BHTC.shape[:3].numel())) if not torch.is_grad_enabled() else q_BHQC.shape[2]
        pieces = zip(torch.split(q_BHQC, some, dim=2), torch.split(at_BQ, some, dim=1), strict=True)
        return torch.cat([self._weigh_some(q, k_BHTC, v_BHTC, at) for q, at in pieces], dim=2)

    def _weigh_some(self, q_BHQC: Tensor, k_BHTC: Tensor, v_BHTC: Tensor, at_BQ: Tensor) -> Tensor:
        heads, tokens, channels = k_BHTC.shape[1:]
        seen_BHQT = (torch.arange(tokens, device=at_BQ.device) <= at_BQ[:, :, None])[:, None]
        bias_BHQT = None
        if isinstance(self.positions, Biased):
            bias_BHQT = self.positions.bias(at_BQ, tokens, heads).to(q_BHQC.dtype)
        if self._softmax_now:
            mask = seen_BHQT if bias_BHQT is None else bias_BHQT.masked_fill(~seen_BHQT, -torch.inf)
            return F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, attn_mask=mask)
        scores_BHQT = q_BHQC @ k_BHTC.transpose(2, 3) / channels**0.5
        scores_BHQT = scores_BHQT if bias_BHQT is None else scores_BHQT + bias_BHQT
        assert isinstance(self.scores, Weighs)
        return self.scores.weigh(scores_BHQT, seen_BHQT.expand_as(scores_BHQT)) @ v_BHTC

    def _mix_documents(
        self, x_1MD: Tensor, q_1MD: Tensor, kv_1NE: Tensor, at_1M: Tensor | None, documents: Documents
    ) -> Tensor:
        """The same for every document of a row."""
        by_kernel = isinstance(self.positions, Turns) and self._softmax_now
        if by_kernel and kernels.serve_attention(q_1MD, self.heads, documents.longest):
            return self._mix_by_kernel(x_1MD, q_1MD, kv_1NE, at_1M, documents)
        kv_BTE = documents.pad(kv_1NE)
        if at_1M is None:
            return documents.row(self._mix(documents.pad(x_1MD), documents.pad(q_1MD), kv_BTE, None))
        x_BQD, q_BQD = (each_1MD.view(documents.number, -1, each_1MD.shape[2]) for each_1MD in (x_1MD, q_1MD))
        return self._mix(x_BQD, q_BQD, kv_BTE, documents.inside(at_1M)).flatten(0, 1)[None]

    def _mix_by_kernel(
        self, x_1MD: Tensor, q_1MD: Tensor, kv_1NE: Tensor, at_1M: Tensor | None, documents: Documents
    ) -> Tensor:
        assert isinstance(self.positions, Turns)
        tile = 1 << (documents.longest - 1).bit_length()
        angles = self.positions.angles(max(16, tile), q_1MD.device)
        inside_1M = documents.position_1N if at_1M is None else documents.inside(at_1M).view(1, -1)
        q_1MD = self.scores(self._heads(q_1MD), inside_1M, x_1MD).transpose(1, 2).flatten(2)
        at_M = None if at_1M is None else at_1M[0]
        return kernels.attend(q_1MD[0], kv_1NE[0], angles, at_M, *documents.place, self.heads)[None]

    def _heads(self, x_BTD: Tensor) -> Tensor:
        return x_BTD.reshape(*x_BTD.shape[:2], self.heads, -1).transpose(1, 2)
