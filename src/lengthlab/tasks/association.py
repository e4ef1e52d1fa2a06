"""Helpers of addition, after *Extrapolation by Association* (arXiv 2506.09251): its two halves, laid out as the sum is.

    <bos> 6 5 3 + 0 4 9 = 2 9 6 0 <end>        no-carry: every column by itself, modulo 10
    <bos> 6 5 3 + 0 4 9 = 0 1 1 0 <end>        carry-only: what is carried into each column

Column by column the two add up to the sum, modulo 10. All three have the same words and layout, so a mixture of them needs its
tag, by which the sequences of one are told from those of the others.

Shapes: B samples, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lengthlab.errors import require
from lengthlab.tasks.addition import Addition
from lengthlab.tasks.digits import carry


@dataclass(frozen=True)
class Half(Addition):
    """What both have in common: they are of two numbers."""

    def __post_init__(self) -> None:
        require(self.operands == 2, f"task.operands: '{self.name}' is of two numbers, not of {self.operands!r}")
        super().__post_init__()


@dataclass(frozen=True)
class NoCarry(Half):
    """The digits of two numbers added column by column, modulo 10, and nothing carried.

    >>> import torch
    >>> task = NoCarry()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(1))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 0 7 + 6 7 3 = 0 7 6 0 <end>'
    """

    name: ClassVar[str] = "no-carry"
    questions: ClassVar[tuple[str, ...]] = ("digits",)

    def chance(self, length: int) -> dict[str, float]:
        """Digits below the first are any; that is 0 in one case of nine where both numbers have it, else 1 to 9 alike."""
        if length == 1:
            return {"digits": 0.1}
        both = 1 / length if self.shorter else 1.0
        return {"digits": 0.1 ** (length - 1) * max(both / 9, (1 - both) / 9 + both * 8 / 81)}

    def total(self, column_BC: Tensor) -> Tensor:
        return column_BC % 10

    def total_of(self, terms: Sequence[str]) -> str:
        return "0" + "".join(str((int(a) + int(b)) % 10) for a, b in zip(*terms, strict=True))


@dataclass(frozen=True)
class CarryOnly(Half):
    """What is carried into each column when two numbers are added, 0 or 1.

    >>> import torch
    >>> task = CarryOnly()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(1))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 0 7 + 6 7 3 = 0 1 0 0 <end>'
    """

    name: ClassVar[str] = "carry-only"
    questions: ClassVar[tuple[str, ...]] = ("carries",)

    def chance(self, length: int) -> dict[str, float]:
        """Of two digits 0 to 9, 55 pairs of 100 carry nothing, and so do 45 where one is carried in; of 1 to 9, 36 of 81 do.
        Likeliest is that nothing is carried, but out of the first digits, where both numbers have them.
        """
        if length == 1:
            return {"carries": 0.55}
        if not self.shorter:
            return {"carries": 0.55 ** (length - 1) * 45 / 81}
        below = [0.55] + [0.55 ** (digits - 1) * 0.5 for digits in range(2, length)]  # the other number has fewer digits
        return {"carries": (sum(below) + 0.55 ** (length - 1) * 36 / 81) / length}

    def total(self, column_BC: Tensor) -> Tensor:
        return (carry(column_BC, largest=18) - column_BC) % 10

    def total_of(self, terms: Sequence[str]) -> str:
        carries = "0"
        for a, b in zip(*(term[::-1] for term in terms), strict=True):
            carries += str(int(int(a) + int(b) + int(carries[-1]) >= 10))
        return carries[::-1]
