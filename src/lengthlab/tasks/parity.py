"""Parity: is the number of ones even or odd?

    <bos> 1 0 1 1 <sep> odd <eos>

As Huang et al. (arXiv 2410.02140) have it. A length n counts the bits. Samples: any number of ones from 0 to n alike, in any
order, as in the paper; even numbers are a little more frequent then where n is even.

Shapes: B samples, N bits of the longest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Generator, Tensor

from lengthlab.tasks.bits import BITS, shuffled, up_to
from lengthlab.tasks.task import Guess
from lengthlab.tasks.transduction import Transduction

EVEN, ODD = "even", "odd"


@dataclass(frozen=True)
class Parity(Transduction):
    """Whether the number of ones is even or odd.

    >>> import torch
    >>> task = Parity()
    >>> batch = task.sample(1, (5, 5), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 1 1 0 0 <sep> even <eos>'
    """

    name = "parity"
    symbols = (*BITS, EVEN, ODD)
    answered_in = 1

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: (length // 2 + 1) / (length + 1)}  # of the numbers from 0 to n, so many are even

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        longest, n_B = int(n_B.max()), n_B.to(generator.device)
        return shuffled(up_to(n_B, generator), n_B, longest, generator)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return len(BITS) + x_BN.sum(dim=1, keepdim=True) % 2

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return (ODD if words.count("1") % 2 else EVEN,)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"odd if the last bit is 1": lambda words: {self.name: (ODD if words[-4] == "1" else EVEN, "<eos>")}}
