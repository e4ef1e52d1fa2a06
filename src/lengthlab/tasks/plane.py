"""Sums of two numbers below 100, some pairs of which are never trained on: Leave-Square-Out (Hu et al. 2024, arXiv 2402.17709).

    <bos> 4 2 + 0 7 = 0 4 9 <end>        numbers = "digits"
    <bos> 42 + 7 = 49 <end>              numbers = "whole", as large language models split such text

Training draws from the pairs outside the square; what is measured is of both kinds, by a coin, and counted apart.

Shapes: B samples, P pairs, D digits of a number, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
import torch
from torch import Generator, Tensor

from lengthlab.errors import require
from lengthlab.rules.plane import SIDE, SUM_AB, Held, Split
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.digits import DIGITS
from lengthlab.tasks.task import ALL, Task

MARKS = ("<pad>", "<bos>", "<end>", "+", "=")
BOS, END, PLUS, EQUALS, ZERO = 1, 2, 3, 4, 5
TRAINED, HELD_OUT = "trained", "held-out"
Numbers = Literal["digits", "whole"]


@dataclass(frozen=True)
class AdditionPlane(Task):
    """All pairs in [0, 100)², a square of which is held out, or as many pairs at random. A length is that of a number, 2.

    >>> task = AdditionPlane(half=10)
    >>> batch = task.as_measured.sample(2, (2, 2), torch.Generator().manual_seed(1))
    >>> [" ".join(task.decode(tokens_T)) for tokens_T in batch.tokens_BT]
    ['<bos> 5 5 + 5 9 = 1 1 4 <end>', '<bos> 2 6 + 6 9 = 0 9 5 <end>']
    >>> (batch.target["held-out"] != -100).any(dim=1).tolist()
    [True, False]
    """

    held: Held = "square"
    half: int = 8
    centre: tuple[int, int] = (50, 50)
    numbers: Numbers = "digits"
    all_pairs: bool = False
    """Whether pairs that are held out are drawn, too, as often as others: when it is measured they are."""

    name = "addition-plane"
    questions = (TRAINED, HELD_OUT)
    asks_alike = True
    shortest = 2
    longest = 2
    limit = "its numbers have two digits"
    floor = "its numbers have two digits"

    def __post_init__(self) -> None:
        require(self.numbers in ("digits", "whole"), f"task.numbers must be 'digits' or 'whole', not {self.numbers!r}")
        object.__setattr__(self, "centre", self.split.centre)

    @cached_property
    def split(self) -> Split:
        return Split(self.held, self.half, self.centre)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *(DIGITS if self.numbers == "digits" else map(str, range(2 * SIDE - 1))))

    @property
    def as_measured(self) -> Self:
        return replace(self, all_pairs=True)

    def tokens(self, length: int) -> int:
        return 11 if self.numbers == "digits" else 7

    def chance(self, length: int) -> Mapping[str, float]:
        """Of the likeliest sum."""
        held_out, trained = (_likeliest(SUM_AB[self.split.held_out == held]) for held in (True, False))
        return {TRAINED: trained, HELD_OUT: held_out, ALL: (trained + held_out) / 2}

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        pair_2B, held_B = self._draw_pairs(len(n_B), generator)
        return self.write(pair_2B[0], pair_2B[1], held_B)

    def _draw_pairs(self, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """pair_2B, and which of them are held out."""
        share_B = torch.rand(size, generator=generator, device=generator.device)
        coin_B = torch.rand(size, generator=generator, device=generator.device)
        held_B = (coin_B < 0.5) & self.all_pairs
        drawn = [pairs_P2[(share_B * len(pairs_P2)).long()] for pairs_P2 in self._pairs(generator.device)]
        return drawn[0].where(held_B[:, None], drawn[1]).T, held_B

    def _pairs(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """pairs_P2 that are held out, and the others."""
        held_P2, trained_P2 = (torch.from_numpy(self.split.pairs(held)).to(device) for held in (True, False))
        return held_P2, trained_P2

    def write(self, a_B: Tensor, b_B: Tensor, held_B: Tensor) -> Batch:
        """The sequences of these pairs, each asked by the question of its kind."""
        width, sum_width = (2, 3) if self.numbers == "digits" else (1, 1)
        marks = [torch.full_like(a_B, mark)[:, None] for mark in (BOS, PLUS, EQUALS, END)]
        read = [marks[0], self._number(a_B, width), marks[1], self._number(b_B, width), marks[2]]
        tokens_BT = torch.cat([*read, self._number(a_B + b_B, sum_width), marks[3]], dim=1)
        place_T = torch.arange(tokens_BT.shape[1], device=a_B.device)
        asked_T = (place_T >= 2 * width + 2) & (place_T < tokens_BT.shape[1] - 1)
        asked = {TRAINED: asked_T & ~held_B[:, None], HELD_OUT: asked_T & held_B[:, None]}
        return Batch.asking(tokens_BT, asked, torch.full_like(a_B, tokens_BT.shape[1]))

    def _number(self, number_B: Tensor, digits: int) -> Tensor:
        """tokens_BD of numbers."""
        if self.numbers == "whole":
            return number_B[:, None] + ZERO
        power_D = torch.tensor([10**place for place in reversed(range(digits))], device=number_B.device)
        return number_B[:, None] // power_D % 10 + ZERO

    def said(self, tokens_BD: Tensor) -> list[int | None]:
        """The numbers that answers come to, without their end; None where one is no number."""
        words = self.words
        texts = ["".join(words[token] for token in tokens) for tokens in tokens_BD.tolist()]
        return [int(text) if text.isdecimal() else None for text in texts]

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        plus, equals = words.index("+"), words.index("=")
        a, b = int("".join(words[1:plus])), int("".join(words[plus + 1 : equals]))
        written = str(a + b)
        total = tuple(written.zfill(3)) if self.numbers == "digits" else (written,)
        return {HELD_OUT if self.split.held_out[a, b] else TRAINED: (*total, "<end>")}


def _likeliest(sums: np.typing.NDArray[np.int64]) -> float:
    return float(np.bincount(sums).max() / len(sums))
