"""Helpers whose question or answer is longer than a symbol: how often one occurs, and the one that is missing in the answer.

    <bos> 3 81 3 <count> 3 3 3 <eos>                    3 is there twice: it is said as often
    <bos> 81 3 40 <fill> 3 <blank> 81 <missing> 40      the sorted numbers, one of them left out

How both are written is ours: *Task Hinting* (Awasthi & Gupta, arXiv 2310.00726) has helpers of these names. A count is said one
by one, so that it needs no words of its own however long a sequence is.

Shapes: B samples, N symbols of the longest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import torch
from torch import Tensor

from lengthlab.tasks.alphabet import EOS, FIRST
from lengthlab.tasks.helper import ASK, Helper, repeats
from lengthlab.tasks.pieces import Piece, mark


@dataclass(frozen=True)
class Count(Helper):
    """A symbol as often as it was read, `<eos>` after the last. Where symbols do not repeat, that is once.

    >>> from lengthlab.tasks import Sort
    >>> task = Count(Sort(numbers=2, repeated=True))
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 1 1 <count> 0 0 <eos>'
    """

    name = "count"
    mark = "<count>"

    def tokens(self, length: int) -> int | None:
        return None if repeats(self.of) else length + 5

    def chance(self, length: int) -> Mapping[str, float]:
        if not repeats(self.of):
            return {self.name: 1 / self.alphabet}
        again = 1 / self.alphabet  # that another symbol is the one that is asked for
        likely = (comb(length - 1, k) * again**k * (1 - again) ** (length - 1 - k) for k in range(length))
        return {self.name: max(likely) / self.alphabet}

    def reply(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        asked_B1 = y_BN.gather(1, place_B1)
        if not repeats(self.of):
            return [Piece(asked_B1 + FIRST, torch.ones_like(n_B)), mark(EOS, n_B)]
        there_BN = torch.arange(y_BN.shape[1], device=y_BN.device) < n_B[:, None]
        count_B = ((y_BN == asked_B1) & there_BN).sum(dim=1)
        return [Piece((asked_B1 + FIRST).expand_as(y_BN), count_B), mark(EOS, n_B)]

    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        return (*[asked] * list(answer).count(asked), "<eos>")


@dataclass(frozen=True)
class Fill(Helper):
    """The main task's answer with a symbol left out, which is to be said."""

    name = "fill"
    mark = "<fill>"
    said = ("<blank>", "<missing>")

    def tokens(self, length: int) -> int:
        return 2 * length + 4

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / self.alphabet}

    def asking(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        blank = FIRST + self.alphabet
        return [mark(ASK, n_B), Piece((y_BN + FIRST).scatter(1, place_B1, blank), n_B), mark(blank + 1, n_B)]

    def reply(self, y_BN: Tensor, n_B: Tensor, place_B1: Tensor) -> list[Piece]:
        return [Piece(y_BN.gather(1, place_B1) + FIRST, torch.ones_like(n_B))]

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        at, end = (list(words).index(word) for word in ("<fill>", "<missing>"))
        left = list(self.main.answer(words[1:at]))
        for word in words[at + 1 : end]:
            if word != "<blank>":
                left.remove(word)
        return {self.name: tuple(left)}

    def reply_to(self, answer: Sequence[str], asked: str) -> tuple[str, ...]:
        return (asked,)
