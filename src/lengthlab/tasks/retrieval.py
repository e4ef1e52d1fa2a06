"""Retrieval: which token stands beside the one that is asked for?

    <bos> x1 x2 ... xn <sep> q y <eos>        y is the token left or right of q in x1 ... xn

Six tasks of *Born a Transformer – Always a Transformer?* (arXiv 2505.21785): q occurs once (its UL, UR), or at least twice, and
its first (NLFirst, NRFirst) or its last occurrence counts (NLLast, NRLast). Only y is asked for. A length n counts x1 ... xn;
the paper counts q too, so that its bin "up to 50" ends at n = 49.

Samples: q is any letter. Where it occurs once, its place is drawn evenly from those that have the neighbour, and all other
tokens evenly from the other letters. Where it occurs twice or more, all tokens are drawn evenly and q is the token at a place
drawn evenly, as in the paper, *given* that q occurs again and that the occurrence that counts has its neighbour. (The paper's
own generator takes the last token for the left neighbour of the first one; here q is not the first token of `first-left`. And
it never puts q last in NLLast, where a left neighbour is there all the same; here q may stand there.) With `within =
"first-half"` all that holds of the first half of the context, the middle place included, and q does not occur after it.

Shapes: B samples, N tokens of the longest context, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import log1p
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.alphabet import BOS, EOS, FIRST, MARKS, SEP, letters_of
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.task import WORD_BYTES, Guess, Task

WITHIN = ("anywhere", "first-half")
TAIL = 5
"""Tokens besides the context: <bos>, <sep>, q, y, <eos>."""


@dataclass(frozen=True)
class Retrieval(Task):
    """What the six tasks have in common. `alphabet` letters, q among them; `within` says where q may occur."""

    alphabet: int = 5
    within: str = "anywhere"

    which: ClassVar[str]
    """The occurrence of q that counts: the `unique`, the `first` or the `last` one."""
    side: ClassVar[str]

    def __post_init__(self) -> None:
        require_whole(self.alphabet, "task.alphabet", 2)
        require(self.within in WITHIN, f"task.within must be 'anywhere' or 'first-half', not {self.within!r}")
        require_memory(WORD_BYTES * self.alphabet, f"the words of task.alphabet = {self.alphabet}")

    @property
    def name(self) -> str:
        return f"{self.which}-{self.side}"

    @property
    def questions(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *letters_of(self.alphabet))

    @property
    def shortest(self) -> int:
        return next(n for n in count(1) if len(self.places(n)) >= (1 if self.which == "unique" else 2))

    @property
    def floor(self) -> str:
        return f"where q occurs {'once' if self.which == 'unique' else 'twice'} and has a token to its {self.side}"

    def places(self, length: int) -> range:
        """Where q may occur in a context of that length, so that the occurrence that counts has its neighbour."""
        stop = length if self.within == "anywhere" else (length + 1) // 2
        start = int(self.side == "left" and self.which != "last")  # of two occurrences, the last one has a left neighbour
        return range(start, stop if self.side == "left" or self.which == "first" else min(stop, length - 1))

    def chance(self, length: int) -> Mapping[str, float]:
        # All letters are alike. Whoever has read q alone, and q is unique, is right in 1 / (alphabet - 1).
        return {self.name: 1 / self.alphabet}

    def tokens(self, length: int) -> int:
        return length + TAIL

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is Retrieval.draw  # whoever draws otherwise may ask otherwise

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        asked_B = torch.randint(self.alphabet, (size,), generator=generator, device=device)
        other_BN = torch.randint(self.alphabet - 1, (size, longest), generator=generator, device=device)
        other_BN += other_BN >= asked_B[:, None]  # any letter but q
        here_BN = self._occurrences(n_B, generator)
        context_BN = asked_B[:, None].where(here_BN, other_BN)

        place_N = torch.arange(longest, device=device)
        first = self.which != "last"
        found_B = place_N.where(here_BN, longest).amin(1) if first else place_N.where(here_BN, -1).amax(1)
        beside_B1 = found_B[:, None] + (1 if self.side == "right" else -1)

        n_B1 = n_B.to(device)[:, None]
        tokens_BT = torch.full((size, longest + TAIL), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : longest + 1] = (context_BN + FIRST).where(place_N < n_B1, self.pad)
        tokens_BT.scatter_(1, n_B1 + 1, SEP).scatter_(1, n_B1 + 4, EOS)
        tokens_BT.scatter_(1, n_B1 + 2, asked_B[:, None] + FIRST)
        tokens_BT.scatter_(1, n_B1 + 3, context_BN.gather(1, beside_B1) + FIRST)
        asks_BT = torch.zeros_like(tokens_BT, dtype=torch.bool).scatter_(1, n_B1 + 2, True)  # after reading q
        return Batch.asking(tokens_BT, {self.name: asks_BT}, length_B=n_B1[:, 0] + TAIL)

    def _occurrences(self, n_B: Tensor, generator: Generator) -> Tensor:
        """here_BN: whether q stands at a place of the context."""
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        start = self.places(longest).start
        number = torch.tensor([len(self.places(n)) for n in range(longest + 1)], device="cpu")
        free_B1 = number[n_B][:, None].to(device)
        place_N = torch.arange(longest, device=device) - start  # among those where q may occur
        chosen_B1 = (torch.rand(size, 1, generator=generator, device=device) * free_B1).long().minimum(free_B1 - 1)
        here_BN = place_N == chosen_B1
        if self.which == "unique":
            return here_BN
        # The other free places, in a row, have q with probability 1 / alphabet each, given that one has: so q is at the one
        # numbered `again`, a geometric number below their count, at none before it, and at those after it by chance.
        row_BN = place_N - (place_N > chosen_B1).long()
        again_B1 = self._geometric(free_B1 - 1, generator)
        by_chance_BN = torch.rand(size, longest, generator=generator, device=device) < 1 / self.alphabet
        more_BN = (row_BN == again_B1) | ((row_BN > again_B1) & by_chance_BN)
        return here_BN | (more_BN & (place_N >= 0) & (place_N < free_B1))

    def _geometric(self, below_B1: Tensor, generator: Generator) -> Tensor:
        """How many letters are drawn before the first q, given that it is less than `below`."""
        uniform_B1 = torch.rand(below_B1.shape, generator=generator, device=generator.device)
        log_miss = log1p(-1 / self.alphabet)
        reached_B1 = -torch.expm1(log_miss * below_B1)  # the probability of what is given
        return (torch.log1p(-uniform_B1 * reached_B1) / log_miss).long().minimum(below_B1 - 1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        end = list(words).index("<sep>")
        context, asked = words[1:end], words[end + 1]
        places = [place for place, word in enumerate(context) if word == asked]
        place = places[-1] if self.which == "last" else places[0]
        return {self.name: (context[place + (1 if self.side == "right" else -1)],)}

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the last letter that is not asked for": self._last_other}

    def _last_other(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        end = list(words).index("<sep>")
        others = [word for word in words[1:end] if word != words[end + 1]]
        return {self.name: (others[-1] if others else words[end + 1],)}


@dataclass(frozen=True)
class UniqueLeft(Retrieval):
    """The token left of the one place where q stands (UL of Born a Transformer).

    >>> task = UniqueLeft()
    >>> batch = task.sample(1, (6, 6), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> d b a d d e <sep> e d <eos>'
    """

    which, side = "unique", "left"


@dataclass(frozen=True)
class UniqueRight(Retrieval):
    """The token right of the one place where q stands: the induction head's task (UR)."""

    which, side = "unique", "right"


@dataclass(frozen=True)
class FirstLeft(Retrieval):
    """The token left of the first of several q (NLFirst)."""

    which, side = "first", "left"


@dataclass(frozen=True)
class FirstRight(Retrieval):
    """The token right of the first of several q (NRFirst)."""

    which, side = "first", "right"


@dataclass(frozen=True)
class LastLeft(Retrieval):
    """The token left of the last of several q (NLLast)."""

    which, side = "last", "left"


@dataclass(frozen=True)
class LastRight(Retrieval):
    """The token right of the last of several q: the flip-flop task (NRLast)."""

    which, side = "last", "right"
