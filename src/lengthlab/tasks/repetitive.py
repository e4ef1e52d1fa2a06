"""The main task itself on repetitive sequences: a helper of tasks in which it counts how often a symbol comes.

    <bos> 7 7 3 7 <sep> 3 7 7 7 <eos>        of sort, with repeated numbers

How often symbols come again grows with the length. Of 100 symbols drawn evenly, the one that comes most often comes twice
among 20 and four times among 100, most often, so that who was trained on 20 has hardly seen what 100 ask for. Here, for a
sequence of n, a number k is drawn evenly from 1 to n, then k symbols, some of which may be the same, and each place has one of
these. The helper is ours.

Shapes: B samples, N symbols of the longest input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

import torch
from torch import Generator, Tensor

from lengthlab.tasks.copying import Copying
from lengthlab.tasks.helper import main_of
from lengthlab.tasks.sorting import Sort
from lengthlab.tasks.task import Task
from lengthlab.tasks.transduction import Transduction


@dataclass(frozen=True)
class Repetitive(Transduction):
    """Sort, copy or reverse, whose symbols may be repeated, where they are repeated more.

    >>> task = Repetitive()
    >>> batch = task.sample(1, (6, 6), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 83 39 39 39 39 44 <sep> 39 39 39 39 44 83 <eos>'
    """

    of: Task = Sort(repeated=True)

    name = "repetitive"

    def __post_init__(self) -> None:
        main_of(self.name, self.of, again=True)

    @property
    def main(self) -> Sort | Copying:
        return main_of(self.name, self.of, again=True)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.main.symbols

    def chance(self, length: int) -> Mapping[str, float]:
        """Of the likeliest answer: one symbol at every place or, where two numbers are sorted, either that or half of each."""
        halves = isinstance(self.of, Sort) and len(self.symbols) == 2
        return {self.name: max(self._often(length, each) for each in (length, *([length // 2] if halves else ())))}

    def _often(self, n: int, count: int) -> float:
        """How often so many of n symbols are a certain one. If c of the k that are drawn first are, each place is in c/k."""
        share = 1 / len(self.symbols)

        def among(k: int) -> float:
            return sum(
                comb(k, c) * share**c * (1 - share) ** (k - c) * comb(n, count) * (c / k) ** count * (1 - c / k) ** (n - count)
                for c in range(k + 1)
            )

        return fmean(among(k) for k in range(1, n + 1))

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        kind_BN, n_B1 = self.main.read(n_B, generator), n_B.to(generator.device)[:, None]
        share_B1 = torch.rand(n_B1.shape, generator=generator, device=generator.device)
        kinds_B1 = 1 + (share_B1 * n_B1).long().clamp(max=n_B1 - 1)
        share_BN = torch.rand(kind_BN.shape, generator=generator, device=generator.device)
        return kind_BN.gather(1, (share_BN * kinds_B1).long().clamp(max=kinds_B1 - 1))

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return self.main.write(x_BN, n_B)

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return self.main.answer(words)
