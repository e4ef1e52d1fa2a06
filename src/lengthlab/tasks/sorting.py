"""Sorting: numbers in ascending order.

    <bos> 81 3 40 <sep> 3 40 81 <eos>

As Huang et al. (arXiv 2410.02140) have it: any n of 150 numbers in any order, a token each. A length n counts the numbers. With
`repeated` they are drawn evenly, each by itself, and may come again.

Shapes: B samples, N numbers of the longest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, exp, lgamma, log

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.task import WORD_BYTES, Guess
from lengthlab.tasks.transduction import Transduction, distinct


@dataclass(frozen=True)
class Sort(Transduction):
    """Numbers in ascending order; they differ, unless they may be `repeated`.

    >>> task = Sort()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 83 94 124 <sep> 83 94 124 <eos>'
    """

    numbers: int = 150
    repeated: bool = field(default=False, metadata={"added": "0.3"})

    name = "sort"

    def __post_init__(self) -> None:
        require_whole(self.numbers, "task.numbers", 2)
        require(isinstance(self.repeated, bool), f"task.repeated must be true or false, not {self.repeated!r}")
        require_memory(WORD_BYTES * self.numbers, f"the words of task.numbers = {self.numbers}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.numbers)))

    @property
    def longest(self) -> int | None:
        return None if self.repeated else self.numbers

    @property
    def limit(self) -> str:
        return f"its numbers differ, and there are {self.numbers} of them: task.numbers"

    def chance(self, length: int) -> Mapping[str, float]:
        if self.repeated:
            return {self.name: _likeliest(self.numbers, length)}
        return {self.name: 1 / comb(self.numbers, length)}  # 1 at the greatest length, where every number is there

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        if self.repeated:
            shape = (len(n_B), int(n_B.max()))
            return torch.randint(self.numbers, shape, generator=generator, device=generator.device)
        return distinct(len(n_B), self.numbers, int(n_B.max()), generator)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        beyond_BN = torch.arange(x_BN.shape[1], device=x_BN.device) >= n_B[:, None]
        return x_BN.masked_fill(beyond_BN, self.numbers).sort(dim=1).values

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return sorted(words, key=int)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"as they stand": lambda words: {self.name: (*words[1 : words.index("<sep>")], "<eos>")}}


def _likeliest(numbers: int, length: int) -> float:
    """How often the sorted sequence is the one that is likeliest: every number is there as often as any other, or once more.

    >>> round(_likeliest(2, 3), 3)  # 0 0 1 or 0 1 1
    0.375
    """
    each, more = divmod(length, numbers)
    orders = lgamma(length + 1) - more * lgamma(each + 2) - (numbers - more) * lgamma(each + 1)
    return exp(orders - length * log(numbers))
