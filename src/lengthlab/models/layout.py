"""How the tokens that a network reads lie: position ids, where outputs are wanted, where documents begin.

Sequences of unequal lengths may lie in one long row, so that no work is spent on padding. Embedding, MLP, norms and head treat
every token by itself and never notice; what mixes tokens is given a `Layout`.

Shapes: B documents, T tokens of the longest, N tokens of all; D width, Q positions of a document at which outputs are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from lengthlab.models.attention.chunks import Chunks


class Documents:
    """Where the documents of a row lie. Lengths are in tokens, shortest first.

    >>> documents = Documents([1, 3])
    >>> documents.pad(torch.tensor([[5, 6, 7, 8]])).tolist()
    [[5, 0, 0], [6, 7, 8]]
    >>> documents.row(documents.pad(torch.tensor([[5, 6, 7, 8]]))).tolist()
    [[5, 6, 7, 8]]
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.longest, self.number, self.tokens = max(lengths), len(lengths), sum(lengths)
        self.length_B = torch.tensor(lengths, device=device)
        self.start_B = self.length_B.cumsum(0) - self.length_B
        here_BT = torch.arange(self.longest, device=device) < self.length_B[:, None]
        self.padded_N = here_BT.flatten().nonzero()[:, 0]
        """Where a token of the row lies in the flattened padded batch."""
        self.index_1N = (self.padded_N % self.longest)[None]
        """Where a token of the row lies in its document."""

    def row(self, x_BT: Tensor) -> Tensor:
        """x_1N...: a padded batch as one row."""
        return x_BT.flatten(0, 1).index_select(0, self.padded_N)[None]

    def pad(self, x_1N: Tensor) -> Tensor:
        """x_BT...: a row as a padded batch, with zeros where nothing is."""
        padded = x_1N.new_zeros(self.number * self.longest, *x_1N.shape[2:])
        return padded.index_copy(0, self.padded_N, x_1N[0]).view(self.number, self.longest, *x_1N.shape[2:])

    def inside(self, query_1M: Tensor) -> Tensor:
        """query_BQ: positions in the row, Q for each document in order, as positions in their documents."""
        return query_1M.view(self.number, -1) - self.start_B[:, None]

    def outside(self, query_BQ: Tensor) -> Tensor:
        """Positions in documents as positions in the row, with any dimensions before B."""
        return query_BQ + self.start_B[:, None]

    @cached_property
    def by_time(self) -> tuple[Tensor, Tensor, Tensor]:
        """For a scan through time: tokens first by time, then longest document first; the inverse; documents at each time."""
        time_N = self.padded_N % self.longest
        document_N = self.padded_N // self.longest
        order_N = (time_N * self.number + (self.number - 1 - document_N)).argsort()
        return order_N, order_N.argsort(), torch.bincount(time_N).cpu()


@dataclass(frozen=True)
class Piece:
    """Which tokens of their sequences are read now, where sequences are read in pieces: from index `first` on. `whole`: tokens
    of a whole sequence, where that is known.
    """

    first: int = 0
    whole: int | None = None


@dataclass(frozen=True)
class Layout:
    """What a module that mixes tokens must know besides x_BTD.

    `position_BT`: position ids, where the task has its own; else a token's position is its index in its sequence. Where a token
    has several ids, they are (B, T, K), and only vectors at the embedding can take them (position_table.py).
    `query_BQ`: where outputs are wanted; everywhere, if None. `documents`: x_BTD is one row of them (B is 1, T is N).
    `chunks`: the memory that hierarchical attention reads, made by the `ChunkMemory` around it. `piece`: where these tokens lie
    in their sequences, which are whole if None; `position_BT` and `query_BQ` are of this piece. `distractors`: of so many other
    samples of the batch a `ChunkMemory` holds the chunks besides. `shared`: several models are trained on this GPU side by
    side, so that what keeps little of it busy is better than what is quick alone.
    """

    position_BT: Tensor | None = None
    query_BQ: Tensor | None = None
    documents: Documents | None = None
    chunks: Chunks | None = None
    piece: Piece | None = None
    distractors: int = 0
    shared: bool = False

    @property
    def everywhere(self) -> Layout:
        """The same tokens with outputs everywhere."""
        return replace(self, query_BQ=None)

    @property
    def padded(self) -> Layout:
        """The same tokens as a padded batch with outputs everywhere: what a mixer's plain method is written for."""
        if self.documents is None or self.position_BT is None:
            return Layout(self.position_BT, chunks=self.chunks)
        return Layout(self.documents.pad(self.position_BT), chunks=self.chunks)

    def index(self, tokens: int, device: torch.device) -> Tensor:
        """index_BQ of the tokens with a query, in their sequence or in this piece of it; B may be 1 for all."""
        if self.query_BQ is not None:
            return self.query_BQ
        return torch.arange(tokens, device=device)[None]

    def index_in_whole(self, tokens: int, device: torch.device) -> Tensor:
        """The same in their sequence, of which this may be a piece.

        >>> Layout(piece=Piece(first=4)).index_in_whole(3, torch.device("cpu"))
        tensor([[4, 5, 6]])
        """
        return self.index(tokens, device) + (self.piece.first if self.piece else 0)

    def after(self, seen: int) -> Layout:
        """The same tokens as a piece that comes after so many."""
        return replace(self, piece=Piece(seen, self.piece.whole if self.piece else None))


PLAIN: Layout = Layout()
"""A padded batch, positions 0, 1, 2, …, outputs everywhere."""


def pick(x_BTD: Tensor, query_BQ: Tensor | None) -> Tensor:
    """x_BQD: the rows of x at the given positions; all of them, if none are given."""
    if query_BQ is None:
        return x_BTD
    return x_BTD.gather(1, query_BQ[:, :, None].expand(-1, -1, x_BTD.shape[2]))
