"""Hierarchical sparse attention (HSA): find a few chunks by their landmarks, then attend inside each of them.

Hu et al. 2025, arXiv 2504.16795. A sequence is cut into chunks of S tokens. With q and r linear in x_t, and only chunks c that
ended before token t to choose from, t ≥ (c + 1) S where chunks do not overlap:

    s_c = r · landmark_c / sqrt(R)                 K chunks with the highest s, most recent first
    w = stick-breaking of their s, or softmax      in fp32
    o = Σ_c w_c · softmax(q · K_c / sqrt(C)) V_c   y = W_o o

There are no positions, so nothing in it depends on how far away a chunk is. The chunk that a token stands in is not seen: that
is for local attention beside it (local.py) or for a recurrence below.

`ChunkMemory` makes the landmarks, keys and values; all `HierarchicalAttention` inside it reads them, one layer or several, each
of which chooses for itself.

Shapes: B samples, T tokens, Q of them with a query, D width, H heads, G groups of them with the same keys and values, P = H / G
heads of a group, C = D / H channels of a head, R = D / G channels of a landmark, N chunks, S tokens of a chunk, K chunks that a
query reads, E = 2C for keys and values. For the kernel: M = B · Q · G queries of a group, I = B · G · N chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lengthlab import kernels
from lengthlab.errors import LabError, require, require_whole
from lengthlab.models.attention.chunk_weights import ChunkWeights
from lengthlab.models.attention.chunks import Chunks
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import Mixer
from lengthlab.registry import chosen

GATHERED = 2**23
"""Numbers that are fetched, or scores that are taken, for queries that are worked on together."""


class OfQueries(Protocol):
    """Tensors with B and Q in front, for queries in x_BQD that stand at index_BQ."""

    def __call__(self, x_BQD: Tensor, index_BQ: Tensor, chunks: Chunks) -> tuple[Tensor, ...]: ...


@dataclass(frozen=True)
class HierarchicalAttention:
    """Each query reads the few chunks of a `ChunkMemory` around it whose landmarks fit it best.

    >>> from lengthlab.models import ChunkMemory
    >>> HierarchicalAttention(heads=2, chunks=4).weights
    BrokenStick()
    >>> module = ChunkMemory(HierarchicalAttention(heads=2, chunks=4), chunk=8, heads=2).build(width=16)
    >>> module(torch.randn(1, 100, 16)).shape
    torch.Size([1, 100, 16])
    """

    heads: int = 8
    chunks: int = 8
    """That a query reads. Much fewer than there are in training, or choosing is not learned."""
    weights: ChunkWeights | str = "stick-breaking"

    def __post_init__(self) -> None:
        require_whole(self.heads, "model.heads", 1)
        require_whole(self.chunks, "model.chunks", 1)
        object.__setattr__(self, "weights", chosen(ChunkWeights, self.weights))

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"model.heads = {self.heads} does not divide model.width = {width}")
        assert not isinstance(self.weights, str)
        return _HierarchicalAttention(width, self.heads, self.chunks, self.weights)


class _HierarchicalAttention(Mixer):
    def __init__(self, width: int, heads: int, most: int, weights: ChunkWeights) -> None:
        super().__init__()
        self.heads, self.most, self.weights = heads, most, weights
        self.q = Linear(width, width)
        self.r = Linear(width, width)
        self.out = Linear(width, width)

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        """All queries at once: the plain form."""
        return self._attend(x_BTD, layout.index(x_BTD.shape[1], x_BTD.device), self._chunks(layout))

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        """Queries only where outputs are wanted, and some at a time."""
        x_BQD, chunks, documents = pick(x_BTD, layout.query_BQ), self._chunks(layout), layout.documents
        if documents is None:
            return self._attend_in_blocks(x_BQD, layout.index(x_BTD.shape[1], x_BTD.device), chunks)
        if layout.query_BQ is None:
            x_BQD = documents.pad(x_BTD)
            return documents.row(self._attend_in_blocks(x_BQD, PLAIN.index(documents.longest, x_BTD.device), chunks))
        x_BQD = x_BQD.view(documents.number, -1, x_BQD.shape[2])
        return self._attend_in_blocks(x_BQD, documents.inside(layout.query_BQ), chunks).flatten(0, 1)[None]

    def read_at(self, x_BTD: Tensor, state: None, layout: Layout) -> tuple[Tensor, None]:
        """All that it goes on from is in the memory around it."""
        return self(x_BTD, layout), None

    def _chunks(self, layout: Layout) -> Chunks:
        if layout.chunks is None:
            raise LabError(
                "hierarchical attention reads the chunks of a memory around it: ChunkMemory(HierarchicalAttention())"
            )
        channels = {page.kv_BGNSE.shape[4] // 2 for page in layout.chunks.pages}
        fits = channels <= {self.q.out_features // self.heads}
        require(
            fits, f"hierarchical attention has {self.heads} heads, and the ChunkMemory around it another number: model.heads"
        )
        return layout.chunks

    def _attend_in_blocks(self, x_BQD: Tensor, index_BQ: Tensor, chunks: Chunks) -> Tensor:
        """Memory grows with T: what is scored or fetched for a block is let go of, and made again for its gradient. Where a
        kernel reads, nothing is fetched. Where nothing is asked, as in most pieces of a stream, no page is looked at.
        """
        if not (chunks.number and x_BQD.shape[1]):
            return self._nothing(x_BQD)
        if self._has_kernel(x_BQD, chunks):
            weight_BQGK, chunk_BQGK = _in_blocks(self._choose, chunks.largest, x_BQD, index_BQ, chunks)
            return self._read_by_kernel(x_BQD, weight_BQGK, chunk_BQGK, chunks)
        fetched = 2 * self.most * chunks.size * x_BQD.shape[2] // self.heads
        (out_BQD,) = _in_blocks(lambda *block: (self._attend(*block),), max(fetched, chunks.largest), x_BQD, index_BQ, chunks)
        return out_BQD

    def _attend(self, x_BQD: Tensor, index_BQ: Tensor, chunks: Chunks) -> Tensor:
        """With a copy of all chunks that are read."""
        if not chunks.number:
            return self._nothing(x_BQD)
        weight_BQGK, chunk_BQGK = self._choose(x_BQD, index_BQ, chunks)
        q_BQGPC = self._queries(x_BQD, chunks.groups)
        k_BGQKSC, v_BGQKSC = chunks.fetch(chunk_BQGK.transpose(1, 2)).chunk(2, dim=-1)
        inside_BQGPKS = torch.einsum("bqgpc,bgqksc->bqgpks", q_BQGPC, k_BGQKSC) / q_BQGPC.shape[-1] ** 0.5
        weights_BQGPKS = inside_BQGPKS.softmax(dim=-1) * weight_BQGK.to(x_BQD.dtype)[:, :, :, None, :, None]
        mixed_BQGPC = torch.einsum("bqgpks,bgqksc->bqgpc", weights_BQGPKS, v_BGQKSC)
        out: Tensor = self.out(mixed_BQGPC.flatten(2))
        return out

    def _nothing(self, x_BQD: Tensor) -> Tensor:
        """What is said where nothing is read."""
        out: Tensor = self.out(torch.zeros_like(x_BQD))
        return out

    def _queries(self, x_BQD: Tensor, groups: int) -> Tensor:
        q_BQGPC: Tensor = self.q(x_BQD).unflatten(-1, (groups, self.heads // groups, -1))
        return q_BQGPC

    def _choose(self, x_BQD: Tensor, index_BQ: Tensor, chunks: Chunks) -> tuple[Tensor, Tensor]:
        """weight_BQGK and chunk_BQGK: what each query reads."""
        r_BGQR = self.r(x_BQD).unflatten(-1, (chunks.groups, -1)).transpose(1, 2)
        score_BGQK, chunk_BGQK, seen_BGQK = chunks.best(r_BGQR, index_BQ, self.most)
        return self.weights.weigh(score_BGQK, seen_BGQK).transpose(1, 2), chunk_BGQK.transpose(1, 2)

    def _has_kernel(self, x_BQD: Tensor, chunks: Chunks) -> bool:
        """For what lies in one page, so not for a long stream, much of which is on the host."""
        kv_BGNSE = chunks.pages[0].kv_BGNSE
        return len(chunks.pages) == 1 and kernels.serve_chunks(x_BQD, kv_BGNSE, self.heads // chunks.groups)

    def _read_by_kernel(self, x_BQD: Tensor, weight_BQGK: Tensor, chunk_BQGK: Tensor, chunks: Chunks) -> Tensor:
        q_MPC = self._queries(x_BQD, chunks.groups).flatten(0, 2)
        row_BQGK = chunks.rows_of(chunk_BQGK.transpose(1, 2)).transpose(1, 2)
        choice = (row_BQGK.flatten(0, 2), weight_BQGK.flatten(0, 2))
        mixed_MPC = kernels.read_chunks(q_MPC, chunks.pages[0].kv_BGNSE.flatten(0, 2), *choice)
        out: Tensor = self.out(mixed_MPC.view(x_BQD.shape))
        return out


def _in_blocks(of: OfQueries, each: int, x_BQD: Tensor, index_BQ: Tensor, chunks: Chunks) -> tuple[Tensor, ...]:
    """Some queries at a time, if so many numbers are held for each."""
    some = max(1, GATHERED // (len(x_BQD) * chunks.groups * each))
    blocks = list(zip(torch.split(x_BQD, some, dim=1), torch.split(index_BQ, some, dim=1), strict=True))
    if len(blocks) < 2:
        return of(x_BQD, index_BQ, chunks)
    again = partial(checkpoint, of, use_reentrant=False, preserve_rng_state=False) if torch.is_grad_enabled() else of
    return tuple(torch.cat(each, dim=1) for each in zip(*(again(*block, chunks) for block in blocks), strict=True))
