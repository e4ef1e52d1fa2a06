"""Causal self-attention: recall by content.

Shapes: B samples, T tokens, Q of them with a query (all, or those named), D width, H heads, C = D / H channels of a head,
E = 2D for keys and values. In a row of documents: N tokens of all, M of them with a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_whole
from lengthlab.models.attention.entmax import EntmaxWeights
from lengthlab.models.attention.key_values import KeyValues, Page, Queries
from lengthlab.models.attention.positions import InitsWeights, Positions, Untouched, is_biased, is_rotary, reads_pieces
from lengthlab.models.attention.rope import Rope
from lengthlab.models.attention.scores import CustomWeights, PlainScores, Scores
from lengthlab.models.attention.temperature import Temperature
from lengthlab.models.layout import PLAIN, Documents, Layout, pick
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import Mixer
from lengthlab.registry import chosen
from lengthlab.switch.band import is_windowed

PAIRS = 2**25
"""Of query and key, at a time, where weights are written out."""


@dataclass(frozen=True)
class Attention:
    """Multi-head softmax attention with its four projections. Positions and scores are parts, or the name of one.

    >>> Attention(heads=4, positions="none", scores="log-n")
    Attention(heads=4, positions=NoPositions(), scores=LogN(first=0.43), bias=True)
    """

    heads: int = 8
    positions: Positions | str = Rope()
    scores: Scores | str = PlainScores()
    bias: bool = field(default=True, metadata={"added": "0.2"})
    """Of the projections."""

    def __post_init__(self) -> None:
        require_whole(self.heads, "model.heads", 1)
        object.__setattr__(self, "positions", chosen(Positions, self.positions))
        object.__setattr__(self, "scores", chosen(Scores, self.scores))

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"model.heads = {self.heads} does not divide model.width = {width}")
        assert not isinstance(self.positions, str)
        assert not isinstance(self.scores, str)
        positions, scores = self.positions.build(width // self.heads), self.scores.build(self.heads, width)
        return _Attention(width, self.heads, positions, scores, self.bias)


class _Attention(Mixer):
    def __init__(self, width: int, heads: int, positions: nn.Module, scores: nn.Module, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.q = Linear(width, width, bias)
        self.kv = Linear(width, 2 * width, bias)
        self.positions = positions
        self.scores = scores
        self.out = Linear(width, width, bias)
        if isinstance(positions, InitsWeights):
            with torch.no_grad():
                for weight_DD in (self.q.weight, self.kv.weight[:width]):
                    positions.init_weights(weight_DD.view(heads, -1, width))

    @property
    def _softmax_now(self) -> bool:
        """Whether weights are a plain softmax; a temperature that adapts leaves training alone."""
        return not isinstance(self.scores, CustomWeights) or (self.training and isinstance(self.scores, Temperature))

    @property
    def _has_kernel(self) -> bool:
        """Whether attention over documents has a kernel for weights like these."""
        weigh = getattr(type(self.scores), "weigh", None)
        return self._softmax_now or weigh is EntmaxWeights.weigh

    @property
    def lacks(self) -> str:
        slow = [self.positions] * (not is_rotary(self.positions)) + [self.scores] * (not self._has_kernel)
        return f"attention has no kernel for {' and '.join(type(part).__name__.strip('_') for part in slow)}" if slow else ""

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        out: Tensor = self.out(self._attend(x_BTD, self.q(x_BTD), self.kv(x_BTD), layout))
        return out

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        """Queries only where outputs are wanted; keys and values of all. In a row of documents, one kernel for all of them
        where there is one for their sizes.
        """
        x_BQD = pick(x_BTD, layout.query_BQ)
        q_BQD, kv_BTE = self.q(x_BQD), self.kv(x_BTD)
        attend = self._attend if layout.documents is None else self._attend_documents
        out: Tensor = self.out(attend(x_BQD, q_BQD, kv_BTE, layout))
        return out

    def _attend(self, x_BQD: Tensor, q_BQD: Tensor, kv_BTE: Tensor, layout: Layout) -> Tensor:
        """Of a padded batch. PyTorch's own causal attention serves where every token has a query, weights are a softmax and
        positions do not change scores; else scores are masked by what each query may see.
        """
        q_BHQC, k_BHTC, v_BHTC = self._placed(x_BQD, q_BQD, kv_BTE, layout)
        if layout.query_BQ is None and not is_biased(self.positions) and self._softmax_now:
            mixed_BHQC = F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, is_causal=True)
        else:
            mixed_BHQC = self._weigh(q_BHQC, k_BHTC, v_BHTC, layout)
        return mixed_BHQC.transpose(1, 2).flatten(2)

    def _placed(self, x_BQD: Tensor, q_BQD: Tensor, kv_BTE: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
        """q_BHQC, k_BHTC and v_BHTC, as positions and scores have them."""
        q_BHQC = self._heads(q_BQD)
        k_BHTC, v_BHTC = map(self._heads, kv_BTE.chunk(2, dim=-1))
        several = layout.position_BT is not None and layout.position_BT.dim() == 3
        require(
            not several or isinstance(self.positions, Untouched),
            "a token of the task has several position ids, which vectors at the embedding can take (model.position_ids) and "
            "attention cannot: give it positions none",
        )
        q_BHQC, k_BHTC = self.positions(q_BHQC, k_BHTC, layout)
        return self.scores(q_BHQC, x_BQD, layout), k_BHTC, v_BHTC

    @property
    def has_state(self) -> bool:
        return reads_pieces(self.positions) and reads_pieces(self.scores)

    def state_bytes(self, tokens: int) -> int:
        return tokens * self.kv.out_features * self.kv.weight.element_size()

    def read_at(self, x_BTD: Tensor, state: KeyValues | None, layout: Layout) -> tuple[Tensor, KeyValues]:
        """Go on from a state: keys and values of all tokens so far. Queries are made only where outputs are wanted."""
        state = state or KeyValues()
        layout, tokens = layout.after(state.tokens), x_BTD.shape[1]
        x_BQD = pick(x_BTD, layout.query_BQ)
        q_BHQC, k_BHTC, v_BHTC = self._placed(x_BQD, self.q(x_BQD), self.kv(x_BTD), layout)
        position_BT = layout.position_BT
        if position_BT is None or position_BT.dim() == 3:  # by which no bias goes
            position_BT = state.tokens + torch.arange(tokens, device=x_BTD.device)[None]
        after = state.extended(Page(k_BHTC, v_BHTC, position_BT))
        position_BQ = pick(position_BT.expand(len(x_BTD), -1)[..., None], layout.query_BQ)[..., 0]
        bias = partial(self.positions.bias, heads=self.heads) if is_biased(self.positions) else None
        queries = Queries(q_BHQC, layout.index_in_whole(tokens, x_BTD.device), position_BQ, bias)
        return self.out(self._mixed(after, queries).transpose(1, 2).flatten(2)), after

    def _mixed(self, keys: KeyValues, queries: Queries) -> Tensor:
        if not queries.q_BHQC.shape[2]:
            return queries.q_BHQC
        if self._softmax_now:
            return keys.softmax(queries)
        assert isinstance(self.scores, CustomWeights)
        return keys.weighed(queries, self.scores.weigh)

    def _weigh(self, q_BHQC: Tensor, k_BHTC: Tensor, v_BHTC: Tensor, layout: Layout) -> Tensor:
        """Some queries at a time, so that memory grows with T and not with T²; gradients need all of it anyway."""
        tokens = k_BHTC.shape[2]
        index_BQ = layout.index(tokens, q_BHQC.device)
        some = max(1, PAIRS // (k_BHTC.shape[:3].numel())) if not torch.is_grad_enabled() else q_BHQC.shape[2]
        key_BT = torch.arange(tokens, device=q_BHQC.device)[None] if layout.position_BT is None else layout.position_BT
        pieces = zip(torch.split(q_BHQC, some, dim=2), torch.split(index_BQ, some, dim=1), strict=True)
        return torch.cat([self._weigh_some(q, k_BHTC, v_BHTC, index, key_BT) for q, index in pieces], dim=2)

    def _weigh_some(self, q_BHQC: Tensor, k_BHTC: Tensor, v_BHTC: Tensor, index_BQ: Tensor, key_BT: Tensor) -> Tensor:
        """What a query sees goes by the order of the tokens (`index_BQ`), what positions make of it by their ids (`key_BT`)."""
        heads, tokens, channels = k_BHTC.shape[1:]
        seen_BHQT = (torch.arange(tokens, device=index_BQ.device) <= index_BQ[:, :, None])[:, None]
        bias_BHQT = None
        if is_biased(self.positions):
            rows = max(len(index_BQ), len(key_BT))
            query_BQ = key_BT.expand(rows, -1).gather(1, index_BQ.expand(rows, -1))
            bias_BHQT = self.positions.bias(query_BQ, key_BT, heads).to(q_BHQC.dtype)
        if self._softmax_now:
            mask = seen_BHQT if bias_BHQT is None else bias_BHQT.masked_fill(~seen_BHQT, -torch.inf)
            return F.scaled_dot_product_attention(q_BHQC, k_BHTC, v_BHTC, attn_mask=mask)
        scores_BHQT = q_BHQC @ k_BHTC.transpose(2, 3) / channels**0.5
        scores_BHQT = scores_BHQT if bias_BHQT is None else scores_BHQT + bias_BHQT
        assert isinstance(self.scores, CustomWeights)
        return self.scores.weigh(scores_BHQT, seen_BHQT.expand_as(scores_BHQT)) @ v_BHTC

    def _attend_documents(self, x_1MD: Tensor, q_1MD: Tensor, kv_1NE: Tensor, layout: Layout) -> Tensor:
        """The same for every document of a row: by a kernel, or as a padded batch and back. A document has as many queries as
        every other, or all of its tokens.
        """
        documents, query_1M = layout.documents, layout.query_BQ
        assert documents is not None
        placed = layout.position_BT is None or isinstance(self.positions, Untouched)  # the kernel places tokens by their index
        by_kernel = is_rotary(self.positions) and self._has_kernel and placed and not is_windowed()
        if by_kernel and kernels.serve_attention(q_1MD, self.heads, documents.longest):
            return self._attend_by_kernel(x_1MD, q_1MD, kv_1NE, query_1M, documents)
        kv_BTE, padded = documents.pad(kv_1NE), layout.padded
        if query_1M is None:
            return documents.row(self._attend(documents.pad(x_1MD), documents.pad(q_1MD), kv_BTE, padded))
        x_BQD, q_BQD = (each_1MD.view(documents.number, -1, each_1MD.shape[2]) for each_1MD in (x_1MD, q_1MD))
        inside = Layout(padded.position_BT, documents.inside(query_1M))
        return self._attend(x_BQD, q_BQD, kv_BTE, inside).flatten(0, 1)[None]

    def _attend_by_kernel(
        self, x_1MD: Tensor, q_1MD: Tensor, kv_1NE: Tensor, query_1M: Tensor | None, documents: Documents
    ) -> Tensor:
        assert is_rotary(self.positions)
        tile = 1 << (documents.longest - 1).bit_length()
        angles = self.positions.angles(max(16, tile), q_1MD.device)
        index_1M = documents.index_1N if query_1M is None else documents.inside(query_1M).view(1, -1)
        q_1MD = self.scores(self._heads(q_1MD), x_1MD, Layout(query_BQ=index_1M)).transpose(1, 2).flatten(2)
        query_M = None if query_1M is None else query_1M[0]
        rows = (documents.start_B, documents.length_B)
        return kernels.attend(q_1MD[0], kv_1NE[0], angles, query_M, *rows, self.heads, not self._softmax_now)[None]

    def _heads(self, x_BTD: Tensor) -> Tensor:
        samples, tokens, width = x_BTD.shape
        return x_BTD.reshape(samples, tokens, self.heads, width // self.heads).transpose(1, 2)
