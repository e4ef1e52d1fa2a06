"""Reverse, and every letter one further: what `reverse` does and one thing more, so that one may help the other.

    <bos> b a h <sep> a b c <eos>        of the letters a to h; after h comes a

For the string group of *Extrapolation by Association* (arXiv 2506.09251), in which reversing is the half of a task that also
changes letters. There it makes them capitals; here they stay letters of the same alphabet, so that what is said looks like what
`reverse` says, as sums look like their halves.

Shapes: B samples, N letters of the longest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.copying import reversed_letters
from lengthlab.tasks.task import WORD_BYTES
from lengthlab.tasks.transduction import Transduction


@dataclass(frozen=True)
class ShiftedReverse(Transduction):
    """The letters that come next in the alphabet, the last one first; letters are drawn evenly, each by itself.

    >>> task = ShiftedReverse()
    >>> batch = task.sample(1, (3, 3), torch.Generator().manual_seed(2))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> a h f <sep> g a b <eos>'
    """

    alphabet: int = 8

    name = "shifted-reverse"

    def __post_init__(self) -> None:
        require_whole(self.alphabet, "task.alphabet", 2)
        require_memory(WORD_BYTES * self.alphabet, f"the words of task.alphabet = {self.alphabet}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return letters_of(self.alphabet)

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: float(self.alphabet) ** -length}

    def read(self, n_B: Tensor, generator: Generator) -> Tensor:
        return torch.randint(self.alphabet, (len(n_B), int(n_B.max())), generator=generator, device=generator.device)

    def write(self, x_BN: Tensor, n_B: Tensor) -> Tensor:
        return (reversed_letters(x_BN, n_B) + 1) % self.alphabet

    def answer(self, words: Sequence[str]) -> Sequence[str]:
        after = dict(zip(self.symbols, (*self.symbols[1:], self.symbols[0]), strict=True))
        return [after[word] for word in reversed(words)]
