"""Noise with a few pieces hidden in it, which are asked for at the end: passkey, needles, variable tracking.

    <bos> x x x <piece> x x <piece> x ... x <tail>        of n tokens in all; the answers stand in the tail

A task says what its pieces and its tail are; where each token goes is said here. Every gap of the noise is as likely to have
a piece as every other, for each piece by itself, and pieces in one gap stand one after the other, so that a given order of
the pieces is kept. Noise is drawn evenly, and shares no word with the pieces.

A length n counts all tokens of a sequence, its answers too: a million is a million tokens. They are drawn where they stay, so
that nothing but tokens and targets grows with n, apart from a byte a token where lengths are mixed.

Shapes: B samples, K pieces of L tokens, Q tokens of the tail, A of them answers, T tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import letters_of
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.task import WORD_BYTES, Task

BOS, QUERY, PIECE, FIRST = 1, 2, 3, 4
"""Marks, of which PIECE begins a piece, and the first symbol; the letters of the noise come after the last symbol."""
MOST = 1000
"""Of anything that every sequence has in it, whatever its length."""
EVEN = 2**62
"""Of so many numbers, a remainder is as likely as every other, to any length that is drawn."""


@dataclass(frozen=True)
class Haystack(Task):
    """Derive a frozen dataclass from it, with `symbols`, `sizes`, `answered` and `hide`. `noise` is how many letters it has."""

    noise: int = 64

    opening: ClassVar[str] = "<key>"
    """The word of PIECE."""

    def __post_init__(self) -> None:
        require_whole(self.noise, "task.noise", 1)

    def check_words(self, field: str) -> None:
        """Refuse more words than memory holds; `field` is the one that sets the number of symbols."""
        named = max((field, "noise"), key=lambda name: int(getattr(self, name)))
        number = getattr(self, field) + self.noise
        require_memory(WORD_BYTES * number, f"the words of task.{named} = {getattr(self, named)}")

    @property
    @abstractmethod
    def symbols(self) -> tuple[str, ...]:
        """The words of the pieces, without the marks."""

    @property
    def filler(self) -> tuple[str, ...]:
        """The words of the noise."""
        return letters_of(self.noise)

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """K, L and Q: how many pieces, of how many tokens each, and how many tokens the tail has."""

    @property
    @abstractmethod
    def answered(self) -> Sequence[int]:
        """Which tokens of the tail are answers, counted from 0; the first is none."""

    @abstractmethod
    def hide(self, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """pieces_BKL in the order in which they are to stand, and tail_BQ."""

    @property
    def questions(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def words(self) -> tuple[str, ...]:
        return ("<pad>", "<bos>", "<query>", self.opening, *self.symbols, *self.filler)

    @property
    def state(self) -> tuple[str, ...]:
        """None: what is asked has to be found again, not carried along."""
        return ()

    @property
    def shortest(self) -> int:
        pieces, length, tail = self.sizes
        return 1 + pieces * length + tail

    @property
    def floor(self) -> str:
        pieces, length, tail = self.sizes
        return f"n counts all tokens: <bos>, {pieces} × {length} that are hidden, {tail} of the question and its answer"

    def tokens(self, length: int) -> int:
        return length

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is Haystack.draw  # whoever draws otherwise may ask otherwise

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        pieces_BKL, tail_BQ = self.hide(size, generator)
        first = FIRST + len(self.symbols)
        tokens_BT = torch.randint(first, first + self.noise, (size, longest), generator=generator, device=device)
        tokens_BT[:, 0] = BOS
        gap_BK = self.gaps(n_B - self.shortest, generator)
        tokens_BT.scatter_(1, _places(gap_BK, pieces_BKL.shape[2]), pieces_BKL.flatten(1))
        n_B1 = n_B.to(device)[:, None]
        at_BQ = n_B1 - tail_BQ.shape[1] + torch.arange(tail_BQ.shape[1], device=device)
        tokens_BT.scatter_(1, at_BQ, tail_BQ)
        if int(n_B.min()) < longest:
            tokens_BT.masked_fill_(torch.arange(longest, device=device) >= n_B1, self.pad)
        answered_A = torch.tensor(self.answered, device=device)
        target_BT = torch.full_like(tokens_BT, IGNORE)
        target_BT.scatter_(1, at_BQ[:, answered_A] - 1, tail_BQ[:, answered_A])
        return Batch(tokens_BT, {self.name: target_BT}, n_B1[:, 0])

    def gaps(self, free_B: Tensor, generator: Generator) -> Tensor:
        """gap_BK, ascending: how many tokens of noise stand before each piece, of so many in all; `free_B` is on the CPU."""
        shape = (len(free_B), self.sizes[0])
        drawn_BK = torch.randint(EVEN, shape, generator=generator, device=generator.device)
        return (drawn_BK % (free_B.to(generator.device)[:, None] + 1)).sort(dim=1).values


def _places(gap_BK: Tensor, length: int) -> Tensor:
    """at_BX, X = K × L: where each token of each piece goes; earlier pieces push it on."""
    before_K = torch.arange(gap_BK.shape[1], device=gap_BK.device) * length
    inside_L = torch.arange(length, device=gap_BK.device)
    return (1 + gap_BK[:, :, None] + before_K[:, None] + inside_L).flatten(1)
