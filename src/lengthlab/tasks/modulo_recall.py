"""The paper's task: state tracking and associative recall over one sequence of key-value pairs.

    <bos> k1 v1 k2 v2 ... kn vn <modulo> m <recall> kj vj

The keys of a sequence are distinct; m is the sum of its values modulo `modulus`; kj is one of its keys, vj the value beside it.
A key may be of several tokens (`key_tokens`), so that a small alphabet has keys for very many pairs.

Shapes: B samples, N pairs of the longest sequence, L tokens of a key, W = L + 1 of a pair, Q of the questions, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.task import SHUFFLED_BYTES, WORD_BYTES, Guess, Task

MARKS = ("<pad>", "<bos>", "<modulo>", "<recall>")
BOS, MODULO, RECALL = 1, 2, 3
MOST, COUNTED = 8, 2**62
"""Tokens of a key, and keys."""
SHUFFLED = 2**16
"""Keys of one token, from which on not all of them are shuffled to draw some."""
NUMBERED_BYTES = 32
"""Of a key that is drawn by its number: what is drawn, the number, what it is ordered by and its place, all at once there."""


@dataclass(frozen=True)
class ModuloRecall(Task):
    """Sum of the values modulo `modulus`, and the value of one key. `questions` says which of the two a sequence asks. A key is
    one of an alphabet of `keys`, or of all pairs of these where `key_tokens` is 2.

    >>> task = ModuloRecall(modulus=2, values=10, keys=64)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> k12 5 k35 0 <modulo> 1 <recall> k35 0'
    >>> task.solve(task.decode(batch.tokens_BT[0]))
    {'modulo': ('1',), 'recall': ('0',)}
    >>> ModuloRecall(keys=512, key_tokens=2).longest
    262144
    """

    modulus: int = 10
    values: int = 10
    keys: int = 128
    questions: tuple[str, ...] = ("modulo", "recall")  # serves the abstract property
    key_tokens: int = field(default=1, metadata={"added": "0.3"})

    def __post_init__(self) -> None:
        require_whole(self.modulus, "task.modulus", 2)
        require_whole(self.values, "task.values", 2)
        require_whole(self.keys, "task.keys", 1)
        require_whole(self.key_tokens, "task.key_tokens", 1, MOST)
        many = f"task.keys = {self.keys} with task.key_tokens = {self.key_tokens} is more than can be counted: take fewer"
        require(self.keys**self.key_tokens <= COUNTED, many)
        allowed = (("modulo", "recall"), ("modulo",), ("recall",))
        require(
            self.questions in allowed,
            f"task.questions must be ('modulo', 'recall') or one of the two, not {self.questions}",
        )
        largest = max(("modulus", "values", "keys"), key=lambda name: int(getattr(self, name)))
        words = f"the words of task.{largest} = {getattr(self, largest)}"
        require_memory(WORD_BYTES * (self.digits + self.keys), words)

    @property
    def name(self) -> str:
        return "-".join(self.questions)

    @property
    def digits(self) -> int:
        """Values and answers share the digit tokens."""
        return max(self.values, self.modulus)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *(str(d) for d in range(self.digits)), *(f"k{k}" for k in range(self.keys)))

    @property
    def longest(self) -> int:
        return int(self.keys**self.key_tokens)

    @property
    def limit(self) -> str:
        return f"its keys are distinct, and there are {self.longest} of them: task.keys"

    @property
    def state(self) -> tuple[str, ...]:
        return tuple(question for question in self.questions if question == "modulo")

    def chance(self, length: int) -> Mapping[str, float]:
        each = {"modulo": 1 / self.modulus, "recall": 1 / self.values}
        return {question: each[question] for question in self.questions}

    def tokens(self, length: int) -> int:
        asked = {"modulo": 2, "recall": 2 + self.key_tokens}
        return 1 + (1 + self.key_tokens) * length + sum(asked[question] for question in self.questions)

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is ModuloRecall.draw  # whoever draws otherwise may ask otherwise

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        n_B = n_B.to(device)
        key_BNL = self._keys(size, longest, generator)
        value_BN = torch.randint(self.values, (size, longest), generator=generator, device=device)
        pick_B = (torch.rand(size, generator=generator, device=device) * n_B).long().clamp(max=longest - 1)
        present_BN = torch.arange(longest, device=device) < n_B[:, None]

        written = {
            "modulo": (value_BN * present_BN).sum(dim=1) % self.modulus + len(MARKS),
            "recall": value_BN.gather(1, pick_B[:, None])[:, 0] + len(MARKS),
        }
        asked_BL = key_BNL[torch.arange(size, device=device), pick_B]
        tail_BQ = self._tail(written, asked_BL)
        pair_BNW = torch.cat([key_BNL, value_BN[:, :, None] + len(MARKS)], dim=2)
        wide = pair_BNW.shape[2]
        tokens_BT = torch.full((size, 1 + wide * longest + tail_BQ.shape[1]), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : 1 + wide * longest] = torch.where(present_BN[:, :, None], pair_BNW, self.pad).flatten(1)
        end_B = 1 + wide * n_B
        tokens_BT.scatter_(1, end_B[:, None] + torch.arange(tail_BQ.shape[1], device=device), tail_BQ)
        return Batch(tokens_BT, self._target(tokens_BT, written, end_B), end_B + tail_BQ.shape[1])

    def _keys(self, size: int, longest: int, generator: Generator) -> Tensor:
        """key_BNL, the tokens of distinct keys. A small alphabet of single tokens is shuffled."""
        device, first = generator.device, len(MARKS) + self.digits
        if self.key_tokens == 1 and self.keys < SHUFFLED:
            require_memory(SHUFFLED_BYTES * size * self.keys, f"to shuffle {self.keys} keys for {size} sequences", str(device))
            key_BN = torch.rand(size, self.keys, generator=generator, device=device).argsort(dim=1)[:, :longest]
            return key_BN[:, :, None] + first
        number_BN1 = self._numbers(size, longest, generator)[:, :, None]
        place_L = self.keys ** torch.arange(self.key_tokens - 1, -1, -1, device=device)
        return number_BN1 // place_L % self.keys + first

    def _numbers(self, size: int, longest: int, generator: Generator) -> Tensor:
        """number_BN of distinct keys, where there are far more of them than pairs, as a rule: as many numbers are drawn evenly,
        and each is moved on by those below it, so that no two are alike. Of single tokens most may be taken, and then the first
        and the last would be met more often than others: all are moved on together, around the end.
        """
        device = generator.device
        require_memory(NUMBERED_BYTES * size * longest, f"to draw {longest} keys for {size} sequences", str(device))
        gaps_BN = torch.randint(self.longest - longest + 1, (size, longest), generator=generator, device=device)
        number_BN = gaps_BN.sort(dim=1).values + torch.arange(longest, device=device)
        order_BN = torch.rand(size, longest, generator=generator, device=device).argsort(dim=1)
        number_BN = number_BN.gather(1, order_BN)
        if self.key_tokens > 1:
            return number_BN
        return (number_BN + torch.randint(self.longest, (size, 1), generator=generator, device=device)) % self.longest

    def _tail(self, written: Mapping[str, Tensor], asked_BL: Tensor) -> Tensor:
        """`<modulo> m`, `<recall> kj vj`, or one after the other."""
        mark = torch.ones_like(written["modulo"])
        columns: list[Tensor] = []
        if "modulo" in self.questions:
            columns += [MODULO * mark, written["modulo"]]
        if "recall" in self.questions:
            columns += [RECALL * mark, *asked_BL.unbind(dim=1), written["recall"]]
        return torch.stack(columns, dim=1)

    def _target(self, tokens_BT: Tensor, written: Mapping[str, Tensor], end_B: Tensor) -> dict[str, Tensor]:
        """Asked are `<modulo>`, the first token of the tail, and the end of the key, the last but one."""
        both = "modulo" in self.questions
        last = {"modulo": 1, "recall": self.key_tokens + (3 if both else 1)}  # where the answers stand in the tail
        nothing_BT = torch.full_like(tokens_BT, IGNORE)
        return {
            question: nothing_BT.scatter(1, end_B[:, None] + last[question] - 1, written[question][:, None])
            for question in self.questions
        }

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        pairs: dict[tuple[str, ...], int] = {}
        answers: dict[str, tuple[str, ...]] = {}
        words, long = list(words), self.key_tokens
        at = 1
        while at < len(words) and words[at].startswith("k"):
            pairs[tuple(words[at : at + long])] = int(words[at + long])
            at += long + 1
        if "<modulo>" in words:
            answers["modulo"] = (str(sum(pairs.values()) % self.modulus),)
        if "<recall>" in words:
            asked = words.index("<recall>") + 1
            answers["recall"] = (str(pairs[tuple(words[asked : asked + long])]),)
        return answers

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"last value seen": self._last_value}

    def _last_value(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        ends = [at for at, word in enumerate(words) if word in ("<modulo>", "<recall>")]
        last = int(words[min(ends) - 1])
        guessed = {"modulo": last % self.modulus, "recall": last}
        return {question: (str(guessed[question]),) for question in self.questions}


def modulo(modulus: int = 10, values: int = 10, keys: int = 128) -> ModuloRecall:
    """The same sequences with the state-tracking question alone (the paper's Table 2)."""
    return ModuloRecall(modulus, values, keys, questions=("modulo",))


def recall(values: int = 10, keys: int = 128) -> ModuloRecall:
    """The same sequences with the recall question alone (the paper's Table 1); nothing is summed, so there is no modulus."""
    return ModuloRecall(values, values, keys, questions=("recall",))
