"""Sequences that are read and then answered by another, of one token or of many:

    <bos> x1 ... xn <sep> y1 ... ym <eos>        asked is everything after <sep>, <eos> too

A task says which symbols are read and which answer they have; where each token goes is said here. Of a sequence that reads n
symbols, x_i stands at i, <sep> at n + 1, y_j at n + 1 + j and <eos> at n + m + 2, counted from 0.

Shapes: B samples, N symbols of the longest input, M of the longest answer, T tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import BOS, EOS, FIRST, MARKS, SEP
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.task import SHUFFLED_BYTES, Task


class Transduction(Task):
    """Derive a frozen dataclass from it, with `symbols`, `read`, `write` and `answer`. Symbols are numbered from 0 here."""

    @property
    @abstractmethod
    def symbols(self) -> tuple[str, ...]:
        """The words besides the marks."""

    @abstractmethod
    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        """x_BN, what is read; whatever stands beyond a sequence's end is left out."""

    @abstractmethod
    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        """y_BM, what is to be said; `n_B` is on the device of x."""

    @abstractmethod
    def answer(self, words: Sequence[str]) -> Sequence[str]:
        """The same in plain Python: the words of an answer to the words that were read."""

    @property
    def answered_in(self) -> int | None:
        """How many symbols every answer has; as many as were read, if None."""
        return None

    def reads(self, length: int) -> int:
        """How many symbols a sequence of a length reads, if that is another number."""
        return length

    @property
    def questions(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *self.symbols)

    def says(self, length: int) -> int:
        """How many symbols the answer of a sequence of a length has."""
        return self.reads(length) if self.answered_in is None else self.answered_in

    def tokens(self, length: int) -> int:
        return self.reads(length) + self.says(length) + 3

    @property
    def asks_alike(self) -> bool:
        return self.answered_in is not None and type(self).draw is Transduction.draw

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        read_B = torch.tensor([self.reads(n) for n in range(longest + 1)], device="cpu")[n_B]
        x_BN = self.read(read_B, generator)
        read_B1 = read_B.to(device)[:, None]
        y_BM = self.write(x_BN, read_B1[:, 0])
        said_B1 = read_B1 if self.answered_in is None else torch.full_like(read_B1, self.answered_in)
        place_T = torch.arange(self.tokens(longest), device=device)
        most_read, most_said = self.reads(longest), self.says(longest)
        sep_B1 = 1 + read_B1
        end_B1 = sep_B1 + 1 + said_B1

        tokens_BT = torch.full((size, len(place_T)), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : most_read + 1] = (x_BN[:, :most_read] + FIRST).where(place_T[:most_read] < read_B1, self.pad)
        said_BM = (y_BM[:, :most_said] + FIRST).where(place_T[:most_said] < said_B1, self.pad)
        tokens_BT.scatter_(1, sep_B1 + 1 + place_T[:most_said], said_BM)
        tokens_BT.scatter_(1, sep_B1, SEP).scatter_(1, end_B1, EOS)
        asked_BT = (place_T >= sep_B1) & (place_T < end_B1)
        return Batch.asking(tokens_BT, {self.name: asked_BT}, length_B=end_B1[:, 0] + 1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {self.name: (*self.answer(words[1 : list(words).index("<sep>")]), "<eos>")}


def distinct(size: int, number: int, chosen: int, generator: Generator) -> Tensor:
    """For each of `size` samples so many `chosen` of a number of symbols, none twice, in any order.

    >>> sorted(distinct(1, 4, 4, torch.Generator().manual_seed(0))[0].tolist())
    [0, 1, 2, 3]
    """
    device = generator.device
    require_memory(SHUFFLED_BYTES * size * number, f"to shuffle {number} symbols for {size} sequences", str(device))
    return torch.rand(size, number, generator=generator, device=device).argsort(dim=1)[:, :chosen]
