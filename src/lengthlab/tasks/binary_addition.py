"""Binary addition, as Huang et al. (arXiv 2410.02140) have it: no padding, the highest digit first.

    <bos> 1 0 1 + 1 1 = 1 0 0 0 <eos>        5 + 3 = 8; asked is everything after =

A length n counts both operands, + and =, so it is at least 4. Samples: the n - 2 digits are divided between the two operands
evenly, at least one each; an operand of several digits begins with 1, and all other digits are drawn evenly. Nothing is
aligned, and the sum has as many digits as it happens to have.

Shapes: B samples, N digits of the longest operand or sum, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.tasks.alphabet import BOS, EOS
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.bits import up_to
from lengthlab.tasks.task import Task

PLUS, EQUALS, ZERO = 2, 4, 5


@dataclass(frozen=True)
class BinaryAddition(Task):
    """The sum of two binary numbers of any number of digits, in the usual order.

    >>> task = BinaryAddition()
    >>> batch = task.sample(1, (7, 7), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 1 1 + 1 1 1 = 1 0 1 0 <eos>'
    """

    name = "binary-addition"
    questions = ("binary-addition",)
    words = ("<pad>", "<bos>", "+", "<eos>", "=", "0", "1")
    shortest = 4
    floor = "two operands of a digit each, + and ="

    def chance(self, length: int) -> Mapping[str, float]:
        """Of the commonest sum. How often a sum comes up, over all ways to divide the digits, rises and falls in straight
        lines; the highest point is one of their ends, and belongs to operands that are about as long as each other.
        """
        digits = length - 2
        corners = {v for one in range(max(1, digits // 2 - 1), digits // 2 + 1) for v in _corners(one, digits - one)}
        ways = range(1, digits)
        return {self.name: max(sum(_share(v, one, digits - one) for one in ways) / len(ways) for v in corners)}

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        n_B = n_B.to(device)
        one_B = 1 + up_to(n_B - 4, generator)
        other_B = n_B - 2 - one_B
        place_N = torch.arange(longest - 2, device=device)  # by significance: units first
        digit_2BN = torch.randint(2, (2, size, len(place_N)), generator=generator, device=device)
        digits_2B1 = torch.stack([one_B, other_B])[:, :, None]
        first_2BN = (place_N == digits_2B1 - 1) & (digits_2B1 > 1)
        digit_2BN = digit_2BN.masked_fill(first_2BN, 1) * (place_N < digits_2B1)
        sum_BN = _added(digit_2BN.sum(dim=0))
        said_B = (place_N * sum_BN).amax(dim=1) + 1  # the highest 1, or the units if there is none

        tokens_BT = torch.full((size, longest + len(place_N) + 2), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        ends = (one_B, n_B - 1, n_B + said_B)  # where the units of each number stand
        numbers = zip((*digit_2BN, sum_BN), (one_B, other_B, said_B), ends, strict=True)
        for number_BN, count_B, end_B in numbers:
            there_BN = place_N < count_B[:, None]
            at_BN = (end_B[:, None] - place_N).where(there_BN, 0)
            tokens_BT.scatter_(1, at_BN, (number_BN + ZERO).where(there_BN, BOS))
        end_B1 = (n_B + said_B + 1)[:, None]
        tokens_BT.scatter_(1, 1 + one_B[:, None], PLUS).scatter_(1, n_B[:, None], EQUALS).scatter_(1, end_B1, EOS)
        place_T = torch.arange(tokens_BT.shape[1], device=device)
        asked_BT = (place_T >= n_B[:, None]) & (place_T < end_B1)
        return Batch.asking(tokens_BT, {self.name: asked_BT}, length_B=end_B1[:, 0] + 1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        plus, equals = words.index("+"), words.index("=")
        one, other = "".join(words[1:plus]), "".join(words[plus + 1 : equals])
        return {self.name: (*f"{int(one, 2) + int(other, 2):b}", "<eos>")}


def _added(column_BN: Tensor) -> Tensor:
    """The digits of a sum, units first, from what stands in each column: 0, 1 or 2 ones. A column of one 1 hands the carry on
    that it is given; so the carry is that of the last column before it that has none or two.

    >>> _added(torch.tensor([[2, 1, 0, 0]])).tolist()  # 01 + 11, units first
    [[0, 0, 1, 0]]
    """
    place_N = torch.arange(column_BN.shape[1], device=column_BN.device)
    decides_BN = place_N.where(column_BN != 1, -1).cummax(dim=1).values
    carry_BN = (column_BN.gather(1, decides_BN.clamp(min=0)) == 2) & (decides_BN >= 0)
    return (column_BN + F.pad(carry_BN[:, :-1], (1, 0)).long()) % 2


def _ends(digits: int) -> tuple[int, int]:
    """The least number of so many digits, and how many there are of them."""
    return (0, 2) if digits == 1 else (2 ** (digits - 1), 2 ** (digits - 1))


def _corners(one: int, other: int) -> Iterator[int]:
    """The sums at which their frequency begins to rise, to stay, to fall and to be none."""
    (low, wide), (base, more) = _ends(one), _ends(other)
    for edge in (0, wide - 1, more - 1, wide + more - 2):
        yield low + base + edge


def _share(value: int, one: int, other: int) -> float:
    """How often two operands of so many digits have that sum."""
    (low, wide), (base, more) = _ends(one), _ends(other)
    pairs = min(low + wide - 1, value - base) - max(low, value - base - more + 1) + 1
    return max(0, pairs) / (wide * more)
