"""The memory that hierarchical attention reads: chunks of what comes in, encoded once for all layers inside.

Shapes: B samples, T tokens, D width, N chunks, S tokens of a chunk, M = B · N, G groups of heads, R = D / G channels of a
landmark, C channels of a head, E = 2C for keys and values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import require, require_whole
from lengthlab.models.attention.chunk_encoder import ChunkEncoder, ChunkMean
from lengthlab.models.attention.chunks import Chunks, Page
from lengthlab.models.compose import Part, keep_name
from lengthlab.models.layout import PLAIN, Layout
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import LaidOut, read, run


@dataclass(frozen=True)
class ChunkMemory:
    """A part, and around it the memory that its hierarchical attention reads (hierarchical.py).

    What comes in is cut into chunks, each of which is encoded by itself: in both directions, with a CLS token whose output
    becomes the landmark. With 0 layers of `encoder`, tokens are only normed, and the landmark is made of their mean. A chunk
    is in the memory when it is complete. With an `overlap` (ours, not the authors') a chunk begins with the last tokens of the
    one before it, so that nothing shorter than that lies across two chunks and in neither of them whole.
    """

    part: Part
    chunk: int = 64
    """Tokens of a chunk."""
    heads: int = 8
    """As many as the attention that reads it has."""
    kv_heads: int = 1
    """Keys and values for so many groups of heads, each of which finds chunks of its own."""
    encoder: int = 1
    """Layers."""
    overlap: int = field(default=0, metadata={"added": "0.3"})
    """Tokens."""

    def __post_init__(self) -> None:
        require_whole(self.chunk, "model.chunk", 1)
        require_whole(self.heads, "model.heads", 1)
        require_whole(self.kv_heads, "model.kv_heads", 1)
        require_whole(self.encoder, "model.encoder", 0)
        require_whole(self.overlap, "model.overlap", 0)
        fits = self.overlap < self.chunk
        require(fits, f"chunks of {self.chunk} tokens have fewer than that in common, not model.overlap = {self.overlap}")
        shared = self.heads % self.kv_heads == 0
        require(shared, f"model.kv_heads = {self.kv_heads} does not divide model.heads = {self.heads}")

    def build(self, width: int) -> nn.Module:
        require(width % self.heads == 0, f"model.heads = {self.heads} does not divide model.width = {width}")
        encoder = ChunkEncoder(width, self.heads, self.encoder) if self.encoder else ChunkMean(width)
        return _ChunkMemory(self, width, encoder, keep_name(self.part).build(width))


@dataclass(frozen=True)
class Stream:
    """Where a stream is: all complete chunks, the tokens of the one that is not, and the state of the part inside."""

    chunks: Chunks
    rest_BTD: Tensor
    inside: Any


class _ChunkMemory(LaidOut):
    def __init__(self, made_of: ChunkMemory, width: int, encoder: nn.Module, inside: nn.Module) -> None:
        super().__init__()
        self.width, self.groups = width, made_of.kv_heads
        self.empty = Chunks(made_of.chunk, overlap=made_of.overlap)
        self.encoder = encoder
        self.landmark = Linear(width, width)
        self.kv = Linear(width, 2 * width // made_of.heads * made_of.kv_heads)
        self.inside = inside

    @property
    def parts(self) -> Iterable[nn.Module]:
        return (self.inside,)

    def state_bytes(self, tokens: int) -> int:
        """Landmarks and all keys and values."""
        numbers = self.width + self.empty.size * self.kv.out_features
        return self.empty.complete(tokens) * numbers * self.kv.weight.element_size()

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        padded_BTD = x_BTD if layout.documents is None else layout.documents.pad(x_BTD)
        chunks = replace(self.empty, pages=(self._page(padded_BTD),)).after_others(layout.distractors)
        return run(self.inside, x_BTD, replace(layout, chunks=chunks))

    def read(self, x_BTD: Tensor, state: Stream | None, layout: Layout = PLAIN) -> tuple[Tensor, Stream]:
        """Go on from a state."""
        state = state or Stream(self.empty, x_BTD[:, :0], None)
        rest_BTD = torch.cat((state.rest_BTD, x_BTD), dim=1)
        complete = self.empty.complete(rest_BTD.shape[1])
        chunks = state.chunks.extended(self._page(rest_BTD)) if complete else state.chunks
        out_BTD, inside = read(self.inside, x_BTD, state.inside, replace(layout, chunks=chunks))
        chunks = replace(chunks, first=chunks.first + x_BTD.shape[1])
        return out_BTD, Stream(chunks, rest_BTD[:, complete * chunks.stride :].clone(), inside)

    def _page(self, x_BTD: Tensor) -> Page:
        """All complete chunks of these tokens."""
        size, number = self.empty.size, self.empty.complete(x_BTD.shape[1])
        tokens_MSD, summary_MD = self.encoder(self._cut(x_BTD, number).reshape(-1, size, self.width))
        landmark_BNGR = self.landmark(summary_MD).view(len(x_BTD), number, self.groups, self.width // self.groups)
        kv_BNSGE = self.kv(tokens_MSD).view(len(x_BTD), number, size, self.groups, self.kv.out_features // self.groups)
        return Page(landmark_BNGR.transpose(1, 2), kv_BNSGE.permute(0, 3, 1, 2, 4).contiguous())

    def _cut(self, x_BTD: Tensor, number: int) -> Tensor:
        """So many chunks, one after the other; what they have in common is in both."""
        if not (self.empty.overlap and number):
            return x_BTD[:, : number * self.empty.size]
        return x_BTD.unfold(1, self.empty.size, self.empty.stride)[:, :number].transpose(2, 3)


def has_chunk_memory(network: nn.Module) -> bool:
    """Whether some part of a network reads a memory of chunks.

    >>> from lengthlab.models import lstm, lstm_hsa
    >>> has_chunk_memory(lstm(8).build(5)), has_chunk_memory(lstm_hsa(8, heads=2).build(5))
    (False, True)
    """
    return any(isinstance(module, _ChunkMemory) for module in network.modules())
