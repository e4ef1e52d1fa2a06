"""Multiplication by a short number, with positions that may be coupled (Cho et al. 2024, arXiv 2405.20671).

    <bos> 6 5 3 × 4 9 = 7 9 9 1 3 <end>        653 · 49 = 31997; the product has its last digit first
      0   9 8 7 6 8 7 6 7 8 9 10 11 0          coupled: digits of one significance share an id; here ids start at 6

The length is that of the first factor in digits; the product is padded with zeros to as many digits as both factors have.

Shapes: B samples, N digits of the first factor, M of the second, C of the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import require_whole
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.coupling import Coupled
from lengthlab.tasks.digits import DIGITS, carry, draw_numbers, number
from lengthlab.tasks.pieces import mark, write

BOS, END, TIMES, EQUALS, ZERO = 1, 2, 3, 4, 5
MOST = 10
"""Digits of the second factor."""
COUNTED = 100_000
"""Pairs of factors of which the likeliest product is counted out."""


@dataclass(frozen=True)
class Multiplication(Coupled):
    """The product of a number of n digits and one of `digits` digits, neither of them with zeros in front.

    The product's last digit comes first, or its first with `reverse = false`.

    >>> Multiplication().solve("<bos> 6 5 3 × 4 9 = 7 9 9 1 3 <end>".split())
    {'product': ('7', '9', '9', '1', '3', '<end>')}
    """

    digits: int = 2
    reverse: bool = True

    name = "multiplication"
    questions = ("product",)
    words = ("<pad>", "<bos>", "<end>", "×", "=", *DIGITS)

    def __post_init__(self) -> None:
        require_whole(self.digits, "task.digits", 1, MOST)
        super().__post_init__()

    @property
    def beyond(self) -> int:
        return self.digits

    def chance(self, length: int) -> dict[str, float]:
        """Counted out for small factors; for others a bound, because the first alone is one of 9 · 10^(n-1) numbers."""
        few = 10 ** (length + self.digits) <= COUNTED
        return {"product": _likeliest(length, self.digits) if few else 10.0 ** (1 - length) / 9}

    def tokens(self, length: int) -> int:
        return 2 * (length + self.digits) + 4

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        longest, n_B = int(n_B.max()), n_B.to(generator.device)
        m_B = torch.full_like(n_B, self.digits)
        first_BN, second_BM = draw_numbers(n_B, longest, generator), draw_numbers(m_B, self.digits, generator)
        rows = [F.pad(first_BN * second_BM[:, place, None], (place, self.digits - place)) for place in range(self.digits)]
        product_BC = carry(torch.stack(rows).sum(dim=0), largest=81 * self.digits)
        start_B = self.starts(n_B, generator) if self.placed else torch.zeros_like(n_B)
        factors = (number(first_BN + ZERO, n_B, start_B), number(second_BM + ZERO, m_B, start_B))
        read = [mark(BOS, n_B), factors[0], mark(TIMES, n_B, start_B), factors[1], mark(EQUALS, n_B, start_B)]
        answer = [number(product_BC + ZERO, n_B + m_B, start_B, self.reverse), mark(END, n_B)]
        return write(read, answer, "product", self.placed)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        times, equals = words.index("×"), words.index("=")
        first, second = "".join(words[1:times]), "".join(words[times + 1 : equals])
        product = str(int(first) * int(second)).zfill(len(first) + len(second))
        return {"product": (*(reversed(product) if self.reverse else product), "<end>")}


@cache
def _likeliest(length: int, digits: int) -> float:
    """How often the product is the one that is likeliest.

    >>> _likeliest(1, 1)  # 0, by 19 of 100 pairs
    0.19
    """
    first, second = (range(10 ** (n - 1) if n > 1 else 0, 10**n) for n in (length, digits))
    products = Counter(a * b for a in first for b in second)
    return max(products.values()) / products.total()
