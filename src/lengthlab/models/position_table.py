"""Positions at the embedding: learned vectors by position id, the task's own or 0, 1, 2, …, that are added to the token's.

Shapes: B samples, T tokens, D width, L position ids, K ids of a token, where it has several; N tokens of all documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_number, require_whole
from lengthlab.models.attention.counted_random import CountedRandom
from lengthlab.models.layout import Layout


@dataclass(frozen=True)
class PositionIds:
    """A learned vector for each of so many ids. Where the task has ids of its own, these are taken as they are.

    Else a token's id is its index, counted from 0; with `random_start`, in training, from a number that is drawn for every
    sequence such that it has room, so that all vectors are learned (Huang et al. 2024, arXiv 2410.02140). Where a token has
    several ids, their vectors are added: of one table, or each of its own with as many `tables`.

    `orthogonal`: the first vectors are so to each other, where there are no more of them than channels. Ids that are further
    apart than a training sequence is long never meet in training, and may be near each other by chance.

    >>> PositionIds(8, tables=2).build(width=4).weight_LD.shape
    torch.Size([16, 4])
    """

    number: int
    random_start: bool = False
    tables: int = 1
    std: float = 0.02
    """Of the first weights."""
    orthogonal: bool = field(default=False, metadata={"added": "0.3"})

    def __post_init__(self) -> None:
        require_whole(self.number, "position_ids.number", 1)
        require_whole(self.tables, "position_ids.tables", 1, 8)
        require_number(self.std, "position_ids.std", above=0)

    def build(self, width: int) -> PositionTable:
        return PositionTable(self, width)


def _first_vectors(ids: PositionIds, width: int) -> Tensor:
    """weight_LD. Where there are more ids than channels, the channels are orthogonal instead, and vectors nearly so."""
    shape = (ids.tables * ids.number, width)
    if ids.orthogonal:
        return nn.init.orthogonal_(torch.empty(shape), gain=ids.std * max(shape) ** 0.5)
    return ids.std * torch.randn(shape)


class PositionTable(nn.Module):
    def __init__(self, ids: PositionIds, width: int) -> None:
        super().__init__()
        self.limit, self.tables = ids.number, ids.tables
        self.weight_LD = nn.Parameter(_first_vectors(ids, width))
        self.chance = CountedRandom() if ids.random_start else None

    def forward(self, tokens_BT: Tensor, layout: Layout) -> Tensor:
        if layout.position_BT is None:
            require(self.tables == 1, f"the model has {self.tables} tables of positions, and the task one id for each token")
            return self._vectors(self._index(tokens_BT, layout))
        return self._vectors(self._checked(layout.position_BT))

    def _vectors(self, position_BT: Tensor) -> Tensor:
        """x_BTD, summed over the ids of a token."""
        several = position_BT.dim() == 3
        if several and self.tables > 1:
            position_BT = position_BT + self.limit * torch.arange(self.tables, device=position_BT.device)
        fast = kernels.serve_embedding(self.weight_LD)
        x = kernels.embed(position_BT, self.weight_LD) if fast else self.weight_LD[position_BT]
        return x.sum(dim=2) if several else x

    def _checked(self, position_BT: Tensor) -> Tensor:
        ids = position_BT.shape[2] if position_BT.dim() == 3 else 1
        fits = self.tables in (1, ids)
        require(fits, f"the model has {self.tables} tables of positions, and a token of the task {ids} id{'s' * (ids > 1)}")
        if position_BT.device.type == "cpu" and position_BT.numel():  # on a GPU, training and evaluation look before
            require_position(int(position_BT.max()), self.limit)
        return position_BT

    def _index(self, tokens_BT: Tensor, layout: Layout) -> Tensor:
        """0, 1, 2, … in every sequence, or from its start on; in one that is read in pieces, from 0 on."""
        documents, piece = layout.documents, layout.piece
        if piece is not None:
            end = piece.first + tokens_BT.shape[1]
            require_position(max(end, piece.whole or 0) - 1, self.limit)
            return torch.arange(piece.first, end, device=tokens_BT.device)[None]
        longest = tokens_BT.shape[1] if documents is None else documents.longest
        require_position(longest - 1, self.limit)
        if documents is None:
            index_BT = torch.arange(longest, device=tokens_BT.device)[None]
            return index_BT if self.chance is None else index_BT + self._starts(len(tokens_BT), longest)
        if self.chance is None:
            return documents.index_1N
        start_B = self._starts(documents.number, documents.length_B[:, None])[:, 0]
        return documents.index_1N + start_B.index_select(0, documents.padded_N // longest)

    def _starts(self, sequences: int, tokens: int | Tensor) -> Tensor:
        """start_B1 of sequences of so many tokens; 0 when measured."""
        assert self.chance is not None
        if not self.training:
            return torch.zeros(sequences, 1, dtype=torch.int64, device=self.weight_LD.device)
        start_B1: Tensor = (self.chance(sequences, 1) * (self.limit - tokens + 1)).long()
        return start_B1


def require_position(largest: int, limit: int | None) -> None:
    """Refuse an id without a vector, before a GPU meets it: there it would end the process, and other runs with it."""
    fits = limit is None or largest < limit
    require(fits, f"position id {largest} is too large for a table of {limit}: raise the model's limit")
