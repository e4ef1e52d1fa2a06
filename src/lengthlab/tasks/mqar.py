"""Multi-query associative recall: many keys asked for again, each by itself, after all pairs.

    <bos> k1 v1 k2 v2 ... kn vn . . k2 . . . . . k1 . ...        to be said at each key that comes again: its value

Of Zoology (Arora, Eyuboglu et al., arXiv 2312.04927), in the format of its code: keys and values of a sequence are distinct,
the rest of the sequence is slots of two tokens, each key comes again in a slot of its own, and all other tokens of the slots
are random. What is to be said is a label of what was read: the token after the key is random, too. The first slots are
likelier: the pairs choose in order, slot s = 1, 2, … in proportion to s^(power - 1) among those that are free. 0.01 is
theirs, 1 has all alike.

Two things differ. Random tokens are values here, so that a key that comes again is always asked; there they are any tokens.
And `slots` tells how many slots there are for each pair, so that a sequence has 1 + 2n + 2n × slots tokens; there the length
is given by itself: 3 is their 8 pairs in 64 tokens, 1 their 256 in 1,024.

Shapes: B samples, N pairs of the longest sequence, S slots of it, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_number, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.task import WORD_BYTES, Guess, Task
from lengthlab.tasks.transduction import distinct

BOS, FIRST = 1, 2


@dataclass(frozen=True)
class Mqar(Task):
    """n pairs, and then each of their n keys again, in any order, among random values; n counts the pairs.

    >>> task = Mqar(keys=9, values=9, slots=2)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> words = task.decode(batch.tokens_BT[0])
    >>> " ".join(words), task.solve(words)
    ('<bos> k2 3 k3 4 2 8 k2 7 8 6 k3 1', {'mqar': ('3', '4')})
    """

    keys: int = 128
    values: int = 128
    slots: int = 3
    power: float = 0.01

    name = "mqar"
    questions = ("mqar",)
    labels = True
    state = ()

    def __post_init__(self) -> None:
        require_whole(self.keys, "task.keys", 1)
        require_whole(self.values, "task.values", 2)
        require_whole(self.slots, "task.slots", 1, 1000)
        require_number(self.power, "task.power", least=0, most=1)
        most = max(("keys", "values"), key=lambda name: int(getattr(self, name)))
        require_memory(WORD_BYTES * (self.keys + self.values), f"the words of task.{most} = {getattr(self, most)}")

    @property
    def words(self) -> tuple[str, ...]:
        return ("<pad>", "<bos>", *map(str, range(self.values)), *(f"k{key}" for key in range(self.keys)))

    @property
    def longest(self) -> int:
        return min(self.keys, self.values)

    @property
    def limit(self) -> str:
        return f"its keys and its values are distinct, and there are {self.keys} and {self.values}: task.keys, task.values"

    def chance(self, length: int) -> Mapping[str, float]:
        """One of values × (values - 1) × … rows of distinct values."""
        return {"mqar": exp(lgamma(self.values - length + 1) - lgamma(self.values + 1))}

    def tokens(self, length: int) -> int:
        return 1 + 2 * length * (1 + self.slots)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        n_B1, first_key = n_B.to(device)[:, None], FIRST + self.values
        key_BN = first_key + distinct(size, self.keys, longest, generator)
        value_BN = FIRST + distinct(size, self.values, longest, generator)
        width = self.tokens(longest)
        tokens_BT = torch.randint(FIRST, first_key, (size, width), generator=generator, device=device)
        tokens_BT[:, 0] = BOS
        present_BN = torch.arange(longest, device=device) < n_B1
        for start, x_BN in ((1, key_BN), (2, value_BN)):
            place = slice(start, start + 2 * longest, 2)
            tokens_BT[:, place] = x_BN.where(present_BN, tokens_BT[:, place])
        # What a shorter sequence does not have is written behind its end, where all is padding.
        at_BN = 1 + 2 * n_B1 + 2 * self._slots(n_B1, longest, generator).where(present_BN, self.slots * n_B1)
        beyond_BT = torch.arange(width, device=device) >= 1 + 2 * n_B1 * (1 + self.slots)
        target_BT = torch.full_like(tokens_BT, IGNORE).scatter_(1, at_BN, value_BN).masked_fill_(beyond_BT, IGNORE)
        tokens_BT.scatter_(1, at_BN, key_BN).masked_fill_(beyond_BT, self.pad)
        return Batch(tokens_BT, {"mqar": target_BT}, 1 + 2 * n_B1[:, 0] * (1 + self.slots))

    def _slots(self, n_B1: Tensor, longest: int, generator: Generator) -> Tensor:
        """slot_BN: of each pair. Chosen one after the other in proportion to weights, slots come in the order of a race in
        which each has an exponential time over its weight (Efraimidis & Spirakis 2006).
        """
        place_S = torch.arange(self.slots * longest, device=n_B1.device)
        time_BS = torch.rand(len(n_B1), len(place_S), generator=generator, device=n_B1.device)
        time_BS = time_BS.neg_().log1p_().neg_().mul_((1.0 + place_S) ** (1 - self.power))
        return time_BS.masked_fill_(place_S >= self.slots * n_B1, torch.inf).argsort(dim=1, stable=True)[:, :longest]

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        pairs: dict[str, str] = {}
        said: list[str] = []
        for at, word in enumerate(words):
            if word in pairs:
                said.append(pairs[word])
            elif word.startswith("k"):
                pairs[word] = words[at + 1]
        return {"mqar": tuple(said)}

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the values in the order of their pairs": lambda words: {"mqar": self._in_order(words)}}

    def _in_order(self, words: Sequence[str]) -> tuple[str, ...]:
        pairs = (len(words) - 1) // (2 + 2 * self.slots)
        return tuple(words[2 : 2 + 2 * pairs : 2])
