"""Copying: write the tokens down again, forward or backward.

    <bos> x1 x2 ... xn <sep> x1 x2 ... xn <eos>        copy
    <bos> x1 x2 ... xn <sep> xn ... x2 x1 <eos>        reverse

The four tasks of *Born a Transformer – Always a Transformer?* (arXiv 2505.21785), two of which Huang et al. (arXiv 2410.02140)
have too: the letters of a sequence are unique (UF, UB) or may be repeated (NF, NB). A length n counts x1 ... xn.

Samples: unique letters are any n of the alphabet in any order, repeated ones are drawn evenly, each by itself. The alphabets
are the paper's: 150 unique letters, which is as far as it measures, and 5 that may be repeated (Huang et al. have 2 of these).

Coupled (Cho et al. 2024, arXiv 2405.20671), a letter has the same id both times; here ids start at 6:

    <bos> a b c <sep> a b c <eos>        <bos> a b c <sep> c b a <eos>
      0   7 8 9   6   7 8 9   0            0   6 7 8   9   8 7 6   0

Shapes: B samples, N letters of the longest sequence, T tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import perm

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.coupling import Coupled
from lengthlab.tasks.task import WORD_BYTES
from lengthlab.tasks.transduction import Transduction, distinct

UNIQUE, REPEATED = "unique", "repeated"
ALPHABETS = {UNIQUE: 150, REPEATED: 5}


@dataclass(frozen=True)
class Copying(Coupled, Transduction):
    """What copy and reverse have in common. `alphabet` is 150 for unique letters and 5 for repeated ones, if not given."""

    letters: str = UNIQUE
    alphabet: int | None = None

    def __post_init__(self) -> None:
        require(self.letters in ALPHABETS, f"task.letters must be 'unique' or 'repeated', not {self.letters!r}")
        if self.alphabet is None:
            object.__setattr__(self, "alphabet", ALPHABETS[self.letters])  # a run says what it was
        require_whole(self.alphabet, "task.alphabet", 2)
        require_memory(WORD_BYTES * self.size, f"the words of task.alphabet = {self.alphabet}")
        super().__post_init__()

    @property
    def size(self) -> int:
        """How many letters there are."""
        return self.alphabet or ALPHABETS[self.letters]

    @property
    def symbols(self) -> tuple[str, ...]:
        return letters_of(self.size)

    @property
    def longest(self) -> int | None:
        return min(self._bounds, default=None)

    @property
    def limit(self) -> str:
        return self._bounds[min(self._bounds)]

    @property
    def _bounds(self) -> dict[int, str]:
        """How long a sequence may be, and why."""
        letters = {self.size: f"its letters are unique, and there are {self.size} of them: task.alphabet"}
        placed = super().longest
        return (letters if self.letters == UNIQUE else {}) | ({placed: super().limit} if placed is not None else {})

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / (perm(self.size, length) if self.letters == UNIQUE else self.size**length)}

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch, n_B = super().draw(n_B, generator), n_B.to(generator.device)
        if not self.placed:
            return batch
        n_B1, place_T = n_B[:, None], torch.arange(batch.tokens_BT.shape[1], device=n_B.device)
        id_BT = self.starts(n_B, generator)[:, None] + self.from_start(place_T, n_B1)
        return replace(batch, position_BT=id_BT.where((place_T > 0) & (place_T < 2 * n_B1 + 2), 0))

    @abstractmethod
    def from_start(self, place_T: Tensor, n_B1: Tensor) -> Tensor:
        """How far the id of a token is from the first, where ids are coupled."""

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        size, longest = len(n_B), int(n_B.max())
        if self.letters == UNIQUE:
            return distinct(size, self.size, longest, generator)
        return torch.randint(self.size, (size, longest), generator=generator, device=generator.device)


@dataclass(frozen=True)
class Copy(Copying):
    """The letters once more, in order (UF of Born a Transformer; with `letters = "repeated"`, NF).

    >>> task = Copy()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> f3 q3 u4 <sep> f3 q3 u4 <eos>'
    >>> task.longest, Copy(letters="repeated").longest
    (150, None)
    """

    name = "copy"

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return x_BN

    def from_start(self, place_T: Tensor, n_B1: Tensor) -> Tensor:
        return place_T.where(place_T <= n_B1, place_T - n_B1 - 1)

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return words


@dataclass(frozen=True)
class Reverse(Copying):
    """The letters once more, the last one first (UB; with `letters = "repeated"`, NB).

    >>> task = Reverse(letters="repeated")
    >>> batch = task.sample(1, (4, 4), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> e e d a <sep> a d e e <eos>'
    """

    name = "reverse"

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return reversed_letters(x_BN, n_B)

    def from_start(self, place_T: Tensor, n_B1: Tensor) -> Tensor:
        return (place_T - 1).where(place_T <= n_B1, 2 * n_B1 + 1 - place_T)

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return words[::-1]


def reversed_letters(x_BN: Tensor, n_B: Tensor) -> Tensor:
    """The first n letters of each sequence, the last of them first; what comes after them means nothing.

    >>> reversed_letters(torch.tensor([[5, 6, 7]]), torch.tensor([2]))[:, :2]
    tensor([[6, 5]])
    """
    from_end_BN = n_B[:, None] - 1 - torch.arange(x_BN.shape[1], device=x_BN.device)
    return x_BN.gather(1, from_end_BN.clamp(min=0))
