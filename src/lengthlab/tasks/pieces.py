"""Sequences of unequal lengths, written piece after piece: a mark, a number, a mark, the answer.

Shapes: B samples, S tokens of a piece at the most, T tokens of a sequence at the most; K ids of a token, where it has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from lengthlab.tasks.batch import Batch


@dataclass(frozen=True)
class Piece:
    """The first `count_B` of its tokens are written. `position_BS` are ids, or (B, S, K) of them; 0, if there are none."""

    tokens_BS: Tensor
    count_B: Tensor
    position_BS: Tensor | None = None


def mark(token: int, count_B: Tensor, position_B: Tensor | None = None) -> Piece:
    """One token, the same in every sample that another count is of; `position_B` are its ids, or (B, K) of them."""
    one_B = torch.ones_like(count_B)
    return Piece(token * one_B[:, None], one_B, None if position_B is None else position_B[:, None])


def write(read: Sequence[Piece], answer: Sequence[Piece], question: str, placed: bool = False) -> Batch:
    """What is read and what is to be answered, without gaps, padded on the right. The batch has position ids if it is `placed`.

    >>> digits = Piece(torch.tensor([[7, 8], [9, 0]]), torch.tensor([2, 1]))
    >>> batch = write([digits], [mark(3, digits.count_B)], "end")
    >>> batch.tokens_BT.tolist(), batch.target["end"].tolist()
    ([[7, 8, 3], [9, 3, 0]], [[-100, 3, -100], [3, -100, -100]])
    """
    pieces = [*read, *answer]
    begin = list(accumulate((piece.count_B for piece in pieces), initial=torch.zeros_like(pieces[0].count_B)))
    at_BT = torch.cat([_places(piece, begin_B) for piece, begin_B in zip(pieces, begin, strict=False)], dim=1)
    tokens_BT = _written(torch.cat([piece.tokens_BS for piece in pieces], dim=1), at_BT)
    place_T, first_B, length_B = torch.arange(tokens_BT.shape[1], device=tokens_BT.device), begin[len(read)], begin[-1]
    asked_BT = (place_T >= first_B[:, None] - 1) & (place_T < length_B[:, None] - 1)
    return Batch.asking(tokens_BT, {question: asked_BT}, length_B, _positions(pieces, at_BT) if placed else None)


def _places(piece: Piece, begin_B: Tensor) -> Tensor:
    """at_BS: where each token of a piece goes, counted from 1; 0 where it is not written."""
    place_S = torch.arange(piece.tokens_BS.shape[1], device=begin_B.device)
    return (begin_B[:, None] + (place_S + 1)) * (place_S < piece.count_B[:, None])


def _written(x_BT: Tensor, at_BT: Tensor) -> Tensor:
    """Every number at its place; column 0 is for those that have none, and is cut off."""
    size, width = x_BT.shape
    return x_BT.new_zeros(size, width + 1).scatter_(1, at_BT, x_BT)[:, 1:]


def _positions(pieces: Sequence[Piece], at_BT: Tensor) -> Tensor:
    """position_BT, or (B, T, K)."""
    axes = next((piece.position_BS.shape[2:] for piece in pieces if piece.position_BS is not None), torch.Size())
    ids = [
        piece.tokens_BS.new_zeros(*piece.tokens_BS.shape, *axes) if piece.position_BS is None else piece.position_BS
        for piece in pieces
    ]
    position_BT = torch.cat(ids, dim=1)
    if not axes:
        return _written(position_BT, at_BT)
    return torch.stack([_written(axis_BT, at_BT) for axis_BT in position_BT.unbind(dim=2)], dim=2)
