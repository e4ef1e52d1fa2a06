"""Local attention: a query sees its own token and a few before it, and nothing else.

Shapes: B samples, T tokens, Q of them with a query, W tokens of the window, N = T / W blocks, D width, H heads, C channels of a
head, J = 2W keys that a block of queries meets.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import require, require_whole
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import Mixer
from lengthlab.switch.band import is_windowed

NARROW = 4
"""A window of at most so many tokens is read token by token back, without blocks and without padding between documents."""


@dataclass(frozen=True)
class LocalAttention:
    """Softmax attention over a sliding window of the last tokens, without positions (Beltagy et al. 2020, arXiv 2004.05150).

    >>> module = LocalAttention(heads=2, window=4).build(width=8)
    >>> module(torch.randn(1, 10, 8)).shape
    torch.Size([1, 10, 8])
    """

    heads: int = 8
    window: int = 128
    """Tokens that a query sees, its own among them."""

    def __post_init__(self) -> None:
        require_whole(self.heads, "model.heads", 1)
        require_whole(self.window, "model.window", 1)

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"model.heads = {self.heads} does not divide model.width = {width}")
        return _LocalAttention(width, self.heads, self.window)


class _LocalAttention(Mixer):
    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.q = Linear(width, width)
        self.kv = Linear(width, 2 * width)
        self.out = Linear(width, width)

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        """In blocks as long as the window, each of which sees itself and the block before: memory grows with T, not with T²."""
        tokens, window = x_BTD.shape[1], self.window
        x_BNWD = F.pad(x_BTD, (0, 0, 0, -tokens % window)).view(len(x_BTD), -1, window, x_BTD.shape[2])
        kv_BNWE = self.kv(x_BNWD)
        kv_BNJE = torch.cat((F.pad(kv_BNWE, (0, 0, 0, 0, 1, 0))[:, :-1], kv_BNWE), dim=2)
        place_W, place_J = torch.arange(window, device=x_BTD.device), torch.arange(-window, window, device=x_BTD.device)
        seen_WJ = (place_J <= place_W[:, None]) & (place_J > place_W[:, None] - window)
        there_N1J = torch.arange(x_BNWD.shape[1], device=x_BTD.device)[:, None, None] * window + place_J >= 0
        out_BNWD = self._attend(self.q(x_BNWD), kv_BNJE, seen_WJ & there_N1J)
        return out_BNWD.flatten(1, 2)[:, :tokens]

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        """Where few outputs are wanted, of their windows alone."""
        query_BQ, tokens = layout.query_BQ, x_BTD.shape[1]
        if query_BQ is None or query_BQ.shape[1] * self.window > tokens:
            narrow = self.window <= NARROW and not is_windowed()  # a band cuts softmaxes over positions
            return pick(self._narrow(x_BTD, layout), query_BQ) if narrow else super().forward(x_BTD, layout)
        start_BQ = torch.zeros_like(query_BQ)
        if layout.documents is not None:
            start_BQ = query_BQ - layout.documents.inside(query_BQ).view_as(query_BQ)
        place_BQW = query_BQ[..., None] - torch.arange(self.window - 1, -1, -1, device=x_BTD.device)
        seen_BQW = place_BQW >= start_BQ[..., None]
        x_BQWD = pick(x_BTD, place_BQW.clamp(min=0).flatten(1)).view(*place_BQW.shape, x_BTD.shape[2])
        q_BQ1D = self.q(pick(x_BTD, query_BQ))[:, :, None]
        return self._attend(q_BQ1D, self.kv(x_BQWD), seen_BQW[:, :, None])[:, :, 0]

    def _narrow(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        """Every token with the same of its window at once: itself, the one before, and so on."""
        documents = layout.documents
        index_BT = PLAIN.index(x_BTD.shape[1], x_BTD.device) if documents is None else documents.index_1N
        q_BTHC, k_BTHC, v_BTHC = (
            each.unflatten(-1, (self.heads, -1)) for each in (self.q(x_BTD), *self.kv(x_BTD).chunk(2, dim=-1))
        )
        exact = torch.promote_types(x_BTD.dtype, torch.float32)
        scores = []
        for back in range(self.window):
            score_BTH = (q_BTHC * _earlier(k_BTHC, back)).sum(dim=-1, dtype=exact) / q_BTHC.shape[3] ** 0.5
            scores.append(score_BTH.masked_fill((index_BT < back)[..., None], -torch.inf))
        weights_BTHW = torch.stack(scores, dim=-1).softmax(dim=-1).to(v_BTHC.dtype)
        mixed_BTHC = torch.zeros_like(v_BTHC)
        for back in range(self.window):
            mixed_BTHC = mixed_BTHC + weights_BTHW[..., back, None] * _earlier(v_BTHC, back)
        out: Tensor = self.out(mixed_BTHC.flatten(2))
        return out

    def read_at(self, x_BTD: Tensor, state: Tensor | None, layout: Layout) -> tuple[Tensor, Tensor]:
        """Go on from a state: the last tokens that a window reaches back to."""
        query_BQ = layout.query_BQ
        before = 0 if state is None else state.shape[1]
        both_BTD = x_BTD if state is None else torch.cat((state, x_BTD), dim=1)
        after = both_BTD[:, max(0, both_BTD.shape[1] - self.window + 1) :].clone()  # not the memory of the whole piece
        if query_BQ is None:
            return self(both_BTD)[:, before:], after
        return self(both_BTD, Layout(query_BQ=query_BQ + before)), after

    def _attend(self, q_BNWD: Tensor, kv_BNJE: Tensor, seen_NWJ: Tensor) -> Tensor:
        """Of every block by itself; `seen` has dimensions for a block's queries and keys, and any before them."""
        heads = (self.heads, q_BNWD.shape[3] // self.heads)
        three = (q_BNWD, *kv_BNJE.chunk(2, dim=-1))
        q, k, v = (x.reshape(*x.shape[:3], *heads).transpose(2, 3) for x in three)
        mixed_BNHWC = F.scaled_dot_product_attention(q, k, v, attn_mask=seen_NWJ.unsqueeze(-3))
        out: Tensor = self.out(mixed_BNHWC.transpose(2, 3).flatten(3))
        return out


def _earlier(x_BTHC: Tensor, back: int) -> Tensor:
    """For every token what is so many tokens before it; zeros where nothing is."""
    return F.pad(x_BTHC, (0, 0, 0, 0, back, 0))[:, : x_BTHC.shape[1]]
