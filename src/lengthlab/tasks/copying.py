"""Copying: write the tokens down again, forward or backward.

    <bos> x1 x2 ... xn <sep> x1 x2 ... xn <eos>        copy
    <bos> x1 x2 ... xn <sep> xn ... x2 x1 <eos>        reverse

The four tasks of *Born a Transformer – Always a Transformer?* (arXiv 2505.21785), two of which Huang et al. (arXiv 2410.02140)
have too: the letters of a sequence are unique (UF, UB) or may be repeated (NF, NB). A length n counts x1 ... xn.

Samples: unique letters are any n of the alphabet in any order, repeated ones are drawn evenly, each by itself. The alphabets
are the paper's: 150 unique letters, which is as far as it measures, and 5 that may be repeated (Huang et al. have 2 of these).

Shapes: B samples, N letters of the longest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import perm

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.task import WORD_BYTES
from lengthlab.tasks.transduction import Transduction, distinct

UNIQUE, REPEATED = "unique", "repeated"
ALPHABETS = {UNIQUE: 150, REPEATED: 5}


@dataclass(frozen=True)
class Copying(Transduction):
    """What copy and reverse have in common. `alphabet` is 150 for unique letters and 5 for repeated ones, if not given."""

    letters: str = UNIQUE
    alphabet: int | None = None

    def __post_init__(self) -> None:
        require(self.letters in ALPHABETS, f"task.letters must be 'unique' or 'repeated', not {self.letters!r}")
        if self.alphabet is None:
            object.__setattr__(self, "alphabet", ALPHABETS[self.letters])  # a run says what it was
        require_whole(self.alphabet, "task.alphabet", 2)
        require_memory(WORD_BYTES * self.size, f"the words of task.alphabet = {self.alphabet}")

    @property
    def size(self) -> int:
        """How many letters there are."""
        return self.alphabet or ALPHABETS[self.letters]

    @property
    def symbols(self) -> tuple[str, ...]:
        return letters_of(self.size)

    @property
    def longest(self) -> int | None:
        return self.size if self.letters == UNIQUE else None

    @property
    def limit(self) -> str:
        return f"its letters are unique, and there are {self.size} of them: task.alphabet"

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / (perm(self.size, length) if self.letters == UNIQUE else self.size**length)}

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
        from_end_BN = n_B[:, None] - 1 - torch.arange(x_BN.shape[1], device=x_BN.device)
        return x_BN.gather(1, from_end_BN.clamp(min=0))

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        return words[::-1]
