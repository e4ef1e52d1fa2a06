"""Addition, with positions that may be coupled (Cho et al. 2024, arXiv 2405.20671).

    <bos> 6 5 3 + 0 4 9 = 2 0 7 0 <end>        653 + 49 = 702; the sum has its last digit first
      0   9 8 7 6 9 8 7 6 7 8 9 10  0          coupled: digits of one significance share an id; here ids start at 6

The length n is that of the longest operand in digits. The others are padded to it with zeros, the sum to n + 1 digits, or n + 2
if there are more than 10 operands.

Shapes: B samples, N digits of an operand, C of the sum, S tokens of a number, R operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.coupling import Coupled
from lengthlab.tasks.digits import DIGITS, carry, draw_numbers, number
from lengthlab.tasks.pieces import Piece, mark, write

MARKS = ("<pad>", "<bos>", "<end>", "+", "=")
BOS, END, PLUS, EQUALS, ZERO = 1, 2, 3, 4, 5
HINT = ZERO + 10
MOST = 100
"""Operands."""


@dataclass(frozen=True)
class Addition(Coupled):
    """The sum of numbers, each padded with zeros to the longest, which has n digits; the sum's last digit comes first.

    One of them, by chance, has n digits. In training each of the others has any number of digits from 1 to n (all n with
    `shorter = false`); when measured all have n. `reverse = false` writes the sum with its first digit first. `hints` puts a
    word for its significance before each digit, counted from a start that is drawn as that of ids is: the rival of coupling.

    >>> task = Addition(positions="coupled", ids=12)
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(1))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 0 7 + 6 7 3 = 0 8 6 0 <end>'
    >>> batch.position_BT.tolist()
    [[0, 7, 6, 5, 4, 7, 6, 5, 4, 5, 6, 7, 8, 0]]
    """

    operands: int = 2
    reverse: bool = True
    shorter: bool = True
    hints: bool = False

    questions: ClassVar[tuple[str, ...]] = ("sum",)

    def __post_init__(self) -> None:
        require_whole(self.operands, "task.operands", 2, MOST)
        super().__post_init__()
        require(not (self.hints and self.placed), 'task.hints stand in for ids: take them with positions = "plain"')

    @property
    def name(self) -> str:
        return "addition" if self.operands == 2 else "multi-addition"

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *DIGITS, *(f"i{place}" for place in range(1, self.ids) if self.hints))

    @property
    def as_measured(self) -> Self:
        return replace(self, random_start=False, shorter=False)

    @property
    def beyond(self) -> int:
        """So many digits more than an operand the sum has."""
        return len(str(self.operands - 1))

    @property
    def longest(self) -> int | None:
        return self.ids - 1 - max(1, self.start) - self.beyond if self.placed or self.hints else None

    def chance(self, length: int) -> dict[str, float]:
        """Whatever the others are, the longest operand is one of 9 · 10^(n-1) numbers: no sum is likelier than they."""
        return {"sum": _likeliest(self.operands) if length == 1 else 10.0 ** (1 - length) / 9}

    def tokens(self, length: int) -> int:
        digits = self.operands * length + length + self.beyond
        return digits * (2 if self.hints else 1) + self.operands + 2

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        longest, n_B = int(n_B.max()), n_B.to(generator.device)
        digits_BR = self._digits(n_B, generator)
        number_RBN = [draw_numbers(digits_B, longest, generator) for digits_B in digits_BR.unbind(dim=1)]
        column_BC = F.pad(torch.stack(number_RBN).sum(dim=0), (0, self.beyond))
        sum_BC = self.total(column_BC)
        start_B = self.starts(n_B, generator) if self.placed or self.hints else torch.zeros_like(n_B)

        read = [mark(BOS, n_B)]
        for number_BN, sign in zip(number_RBN, [*[PLUS] * (self.operands - 1), EQUALS], strict=True):
            read += [self._number(number_BN, n_B, start_B), mark(sign, n_B, start_B)]
        answer = [self._number(sum_BC, n_B + self.beyond, start_B, self.reverse), mark(END, n_B)]
        return write(read, answer, self.questions[0], self.placed)

    def total(self, column_BC: Tensor) -> Tensor:
        """digit_BC of what is to be said, units first, where the digits of all operands add up to these in each column."""
        return carry(column_BC, largest=9 * self.operands)

    def total_of(self, terms: Sequence[str]) -> str:
        """The same in plain Python, units last, from the operands as they are written."""
        return str(sum(map(int, terms))).zfill(len(terms[0]) + self.beyond)

    def _digits(self, n_B: Tensor, generator: Generator) -> Tensor:
        """digits_BR: how many digits each operand has before it is padded."""
        if not self.shorter:
            return n_B[:, None].expand(-1, self.operands)
        share_BR = torch.rand(len(n_B), self.operands + 1, generator=generator, device=generator.device)
        digits_BR = (1 + (share_BR[:, 1:] * n_B[:, None]).long()).minimum(n_B[:, None])
        full_B1 = (share_BR[:, :1] * self.operands).long().clamp(max=self.operands - 1)
        return digits_BR.scatter(1, full_B1, n_B[:, None])

    def _number(self, digit_BN: Tensor, count_B: Tensor, start_B: Tensor, reverse: bool = False) -> Piece:
        """A number of so many digits, as it is written; hints count as ids would."""
        written = number(digit_BN + ZERO, count_B, start_B, reverse)
        if not self.hints:
            return written
        assert written.position_BS is not None
        hinted_BNK = torch.stack((HINT - 1 + written.position_BS, written.tokens_BS), dim=2)
        return Piece(hinted_BNK.flatten(1), 2 * count_B)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        equals = words.index("=")
        numbers = " ".join(words[1:equals]).split("+")
        terms = ["".join(word for word in number.split() if word in DIGITS) for number in numbers]
        total, question = self.total_of(terms), self.questions[0]
        written = total[::-1] if self.reverse else total
        if not self.hints:
            return {question: (*written, "<end>")}
        units = int(words[equals - 2].removeprefix("i"))  # the hint before the last digit of the last operand
        hints = [f"i{units + place}" for place in range(len(total))]
        hints = hints if self.reverse else hints[::-1]
        return {question: (*(word for pair in zip(hints, written, strict=True) for word in pair), "<end>")}


def multi_addition(
    operands: int = 3,
    positions: str = "plain",
    ids: int = 203,
    start: int = 1,
    random_start: bool = True,
    reverse: bool = True,
    shorter: bool = True,
    hints: bool = False,
) -> Addition:
    """Addition of several numbers."""
    return Addition(positions, ids, start, random_start, operands, reverse, shorter, hints)  # type: ignore[arg-type]


@cache
def _likeliest(operands: int) -> float:
    """How often the sum of so many digits is the one that is likeliest.

    >>> _likeliest(2)
    0.1
    """
    ways = [1]
    for _ in range(operands):
        ways = [sum(ways[max(0, total - 9) : total + 1]) for total in range(len(ways) + 9)]
    return max(ways) / float(10**operands)
