"""Majority: which symbol is there most often?

    <bos> c a b a <sep> a <eos>            majority, of 26 letters
    <bos> 1 0 1 <sep> 1 <eos>              binary-majority
    <bos> 1 0 0 1 1 0 <sep> 1 0 0 <eos>    binary-majority-interleave: of every third bit, from the first, second and third on

As Huang et al. (arXiv 2410.02140) have them. There is never a tie. A length n counts the symbols that are read.

Samples: letters are drawn evenly, given that one is there most often; that takes drawing again those in which none is. Bits
have any number of ones alike but the one that makes a tie, in any order. Interleaved are as many such sequences as the period
says, each of the same length: of a length n, period × ⌊n / period⌋ bits are read. (The paper rounds to the nearest multiple.)

Shapes: B samples, N symbols of the longest sequence, L letters, P interleaved sequences, C candidates for a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.bits import BITS, shuffled, up_to
from lengthlab.tasks.task import WORD_BYTES, Guess
from lengthlab.tasks.transduction import Transduction

CANDIDATES = 256
"""Drawn at once in the place of sequences with a tie, at least; of two letters out of 26, one in 26 has none."""


@dataclass(frozen=True)
class Majority(Transduction):
    """The letter that occurs most often.

    >>> task = Majority(alphabet=3)
    >>> batch = task.sample(1, (5, 5), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> a b b b a <sep> b <eos>'
    """

    alphabet: int = 26

    name = "majority"
    answered_in = 1

    def __post_init__(self) -> None:
        require_whole(self.alphabet, "task.alphabet", 2)
        require_memory(WORD_BYTES * self.alphabet, f"the words of task.alphabet = {self.alphabet}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return letters_of(self.alphabet)

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / self.alphabet}  # all letters are alike

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        size, n_B = len(n_B), n_B.to(generator.device)
        x_BN = self._letters((size, int(n_B.max())), generator)
        tied_R = (~self._clear(x_BN, n_B)).nonzero()[:, 0]
        while len(tied_R):
            # As many candidates in all as there are samples: the fewer are left, the more tries each has.
            tries = max(1, max(size, CANDIDATES) // len(tied_R))
            x_RCN = self._letters((len(tied_R), tries, x_BN.shape[1]), generator)
            clear_RC = self._clear(x_RCN.flatten(0, 1), n_B[tied_R].repeat_interleave(tries)).view(-1, tries)
            first_R = torch.arange(tries, device=generator.device).where(clear_RC, tries).amin(dim=1)
            found_R = first_R < tries
            x_BN[tied_R[found_R]] = x_RCN[found_R, first_R[found_R]]
            tied_R = tied_R[~found_R]
        return x_BN

    def _letters(self, shape: tuple[int, ...], generator: Generator) -> Tensor:
        return torch.randint(self.alphabet, shape, generator=generator, device=generator.device)

    def _clear(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        """Whether one letter is there most often."""
        first_B2 = self._counts(x_BN, n_B).topk(2, dim=1).values
        return first_B2[:, 0] > first_B2[:, 1]

    def _counts(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        """count_BL: how often each letter is there."""
        there_BN = (torch.arange(x_BN.shape[1], device=x_BN.device) < n_B[:, None]).long()
        return there_BN.new_zeros(len(x_BN), self.alphabet).scatter_add_(1, x_BN, there_BN)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return self._counts(x_BN, n_B).argmax(dim=1, keepdim=True)

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return (Counter(words).most_common(1)[0][0],)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the first letter": lambda words: {self.name: (words[1], "<eos>")}}


@dataclass(frozen=True)
class BinaryMajority(Transduction):
    """The bit that occurs most often.

    >>> task = BinaryMajority()
    >>> batch = task.sample(1, (5, 5), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 0 1 1 0 0 <sep> 0 <eos>'
    """

    name = "binary-majority"
    symbols = BITS
    answered_in = 1

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / 2}

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        return decided(n_B.to(generator.device), int(n_B.max()), generator)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return mostly_one(x_BN, n_B)[:, None]

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return ("1" if words.count("1") > words.count("0") else "0",)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the first bit": lambda words: {self.name: (words[1], "<eos>")}}


@dataclass(frozen=True)
class BinaryMajorityInterleave(Transduction):
    """The bit that occurs most often in each of several sequences that take turns.

    >>> task = BinaryMajorityInterleave(period=2)
    >>> batch = task.sample(1, (6, 6), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> 1 1 0 1 0 1 <sep> 0 1 <eos>'
    """

    period: int = 3

    name = "binary-majority-interleave"
    symbols = BITS

    def __post_init__(self) -> None:
        require_whole(self.period, "task.period", 1, 1000)

    @property
    def answered_in(self) -> int:
        return self.period

    @property
    def shortest(self) -> int:
        return self.period

    @property
    def floor(self) -> str:
        return f"a bit of each of {self.period} sequences: task.period"

    def reads(self, length: int) -> int:
        return length // self.period * self.period

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 2.0**-self.period}

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        each_B = (n_B // self.period).to(generator.device).repeat_interleave(self.period)
        bit_BPN = decided(each_B, int(n_B.max()) // self.period, generator).view(len(n_B), self.period, -1)
        return bit_BPN.transpose(1, 2).flatten(1)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        bit_BPN = x_BN.view(len(x_BN), -1, self.period).transpose(1, 2)
        each_B = (n_B // self.period).repeat_interleave(self.period)
        return mostly_one(bit_BPN.flatten(0, 1), each_B).view(-1, self.period)

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        turns = [words[start :: self.period] for start in range(self.period)]
        return tuple("1" if turn.count("1") > turn.count("0") else "0" for turn in turns)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the first bits": lambda words: {self.name: (*words[1 : 1 + self.period], "<eos>")}}


def decided(n_B: Tensor, longest: int, generator: Generator) -> Tensor:
    """bit_BN: any number of ones alike, but not half of the bits; beyond n all are 0.

    >>> decided(torch.tensor([2, 2, 2, 2]), 2, torch.Generator().manual_seed(0)).tolist()
    [[0, 0], [1, 1], [0, 0], [0, 0]]
    """
    even_B = 1 - n_B % 2
    ones_B = up_to(n_B - even_B, generator)
    ones_B = ones_B + even_B * (2 * ones_B >= n_B)  # half of the bits is left out
    return shuffled(ones_B, n_B, longest, generator)


def mostly_one(bit_BN: Tensor, n_B: Tensor) -> Tensor:
    """Whether more than half of the bits are 1, as 0 or 1."""
    return (2 * bit_BN.sum(dim=1) > n_B).long()
