"""Numbers as digits, units first, and what becomes of columns when one carries.

Shapes: B samples, N digits of the longest number, C columns of a sum.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.tasks.pieces import Piece

DIGITS = tuple("0123456789")


def draw_numbers(digits_B: Tensor, longest: int, generator: Generator) -> Tensor:
    """digit_BN: numbers with so many digits each, units first, zeros above. The first digit of a number is not 0, unless it is
    its only one.
    """
    place_N = torch.arange(longest, device=digits_B.device)
    share_BN = torch.rand(len(digits_B), longest, generator=generator, device=generator.device)
    leads_BN = (place_N == digits_B[:, None] - 1) & (place_N > 0)
    digit_BN = (share_BN * (10 - leads_BN.long())).long() + leads_BN
    return digit_BN.clamp(max=9) * (place_N < digits_B[:, None])


def carry(column_BC: Tensor, largest: int) -> Tensor:
    """digit_BC of columns that are at most `largest` each, units first; what is carried out of the last column is lost.

    >>> carry(torch.tensor([[15, 9, 9, 0]]), largest=18)
    tensor([[5, 0, 0, 1]])
    """
    while largest > 18:  # until nothing but 1 is carried
        column_BC = column_BC % 10 + F.pad(column_BC // 10, (1, -1))
        largest = 9 + largest // 10
    # A carry that comes in goes through a column of 9 and is decided anew by every other.
    place_C = torch.arange(column_BC.shape[1], device=column_BC.device)
    decides_BC = (place_C + 1).where(column_BC != 9, 0).cummax(dim=1).values
    carries_BC = F.pad((column_BC > 9).long(), (1, 0)).gather(1, decides_BC)
    return (column_BC + F.pad(carries_BC, (1, -1))) % 10


def number(token_BN: Tensor, count_B: Tensor, start_B: Tensor, reverse: bool = False) -> Piece:
    """Numbers of so many digits as they are written, from tokens with units first: units last, or first with `reverse`. The id
    of a digit is its significance, counted from one above the start.

    >>> number(torch.tensor([[7, 8, 9]]), torch.tensor([3]), torch.tensor([6])).position_BS
    tensor([[9, 8, 7]])
    """
    place_BN = torch.arange(token_BN.shape[1], device=token_BN.device).expand_as(token_BN)
    up_BN = place_BN if reverse else (count_B[:, None] - 1 - place_BN).clamp(min=0)
    return Piece(token_BN.gather(1, up_BN), count_B, start_B[:, None] + 1 + up_BN)
