"""Sequences of unequal lengths in one long row, so that no work is spent on padding.

Embedding, MLP, norms and head treat every token by itself and never notice. Only what mixes tokens (a `Mixer`: attention,
recurrence) has to know where one document ends and the next begins.

Shapes: B documents, T tokens of the longest, N tokens of all; D width, Q positions asked for in a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from lengthlab.models.asked import TOKENWISE, Asked, Links, PostNorm, Sum


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
        self.place_N = here_BT.flatten().nonzero()[:, 0]
        """Where a token of the row lies in the flattened padded batch."""
        self.position_1N = (self.place_N % self.longest)[None]

    @property
    def place(self) -> tuple[Tensor, Tensor]:
        """What a kernel needs to know: where each document begins and how long it is."""
        return self.start_B, self.length_B

    def row(self, x_BT: Tensor) -> Tensor:
        """x_1N...: a padded batch as one row."""
        return x_BT.flatten(0, 1).index_select(0, self.place_N)[None]

    def pad(self, x_1N: Tensor) -> Tensor:
        """x_BT...: a row as a padded batch, with zeros where nothing is."""
        padded = x_1N.new_zeros(self.number * self.longest, *x_1N.shape[2:])
        return padded.index_copy(0, self.place_N, x_1N[0]).view(self.number, self.longest, *x_1N.shape[2:])

    def inside(self, at_1M: Tensor) -> Tensor:
        """at_BQ: positions in the row, Q for each document in order, as positions in their documents."""
        return at_1M.view(self.number, -1) - self.start_B[:, None]

    def outside(self, at_BQ: Tensor) -> Tensor:
        """at_1M: positions in documents as positions in the row."""
        return (at_BQ + self.start_B[:, None]).flatten()[None]

    @cached_property
    def by_time(self) -> tuple[Tensor, Tensor, Tensor]:
        """For a walk through time: tokens first by time, then longest document first; the way back; documents at each time."""
        time_N = self.place_N % self.longest
        document_N = self.place_N // self.longest
        order_N = (time_N * self.number + (self.number - 1 - document_N)).argsort()
        return order_N, order_N.argsort(), torch.bincount(time_N).cpu()


class Mixer(Asked):
    """A module that mixes tokens, and keeps to documents where it is told of some."""

    documents: Documents | None = None

    @property
    def keeps_to_documents(self) -> bool:
        """Not if something of somebody else's inside it may not."""
        return True


def lay_out(network: nn.Module, documents: Documents | None) -> None:
    """Tell every mixer of a network how the rows that it will read are made; None: rows are single documents, padded."""
    for module in network.modules():
        if isinstance(module, Mixer):
            module.documents = documents


def reads_documents(body: nn.Module) -> bool:
    """Whether everything in a body is known to treat tokens one by one, or to keep to documents."""
    if isinstance(body, Mixer):
        return body.keeps_to_documents
    if type(body) in TOKENWISE:
        return True
    return type(body) in (Links, Sum, PostNorm) and all(map(reads_documents, body.children()))
