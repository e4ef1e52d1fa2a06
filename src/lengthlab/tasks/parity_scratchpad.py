"""Parity with a scratchpad: after the bits, the parity of every beginning (Cho et al. 2024, arXiv 2405.20671).

    <bos> 1 0 1 1 = 1 1 0 1 <end>        the last digit is the parity of all
      0   3 4 5 6 2 3 4 5 6   0          coupled: a bit and the parity up to it share an id; here ids start at 2

Shapes: B samples, N bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import xor

import torch
from torch import Generator, Tensor

from lengthlab.tasks.batch import Batch
from lengthlab.tasks.coupling import Coupled
from lengthlab.tasks.pieces import Piece, mark, write

BOS, END, EQUALS, ZERO = 1, 2, 3, 4


@dataclass(frozen=True)
class ParityScratchpad(Coupled):
    """Whether the number of ones is odd, for every beginning of n bits.

    >>> task = ParityScratchpad()
    >>> task.solve("<bos> 1 0 1 1 = 1 1 0 1 <end>".split())
    {'parity': ('1', '1', '0', '1', '<end>')}
    """

    name = "parity-scratchpad"
    questions = ("parity",)
    words = ("<pad>", "<bos>", "<end>", "=", "0", "1")

    def chance(self, length: int) -> dict[str, float]:
        return {"parity": 0.5**length}

    def tokens(self, length: int) -> int:
        return 2 * length + 3

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        longest, n_B = int(n_B.max()), n_B.to(generator.device)
        bit_BN = torch.randint(2, (len(n_B), longest), generator=generator, device=generator.device)
        start_B = self.starts(n_B, generator) if self.placed else torch.zeros_like(n_B)
        position_BN = start_B[:, None] + 1 + torch.arange(longest, device=n_B.device)
        read = [mark(BOS, n_B), Piece(bit_BN + ZERO, n_B, position_BN), mark(EQUALS, n_B, start_B)]
        answer = [Piece(bit_BN.cumsum(dim=1) % 2 + ZERO, n_B, position_BN), mark(END, n_B)]
        return write(read, answer, "parity", self.placed)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        bits = map(int, words[1 : words.index("=")])
        return {"parity": (*map(str, accumulate(bits, xor)), "<end>")}
