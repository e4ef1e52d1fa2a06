"""The paper's task: state tracking and associative recall over one sequence of key-value pairs.

    <bos> k1 v1 k2 v2 ... kn vn <modulo> m <recall> kj vj

The keys of a sequence are distinct; m is the sum of its values modulo `modulus`; kj is one of its keys, vj the value beside it.

Shapes: B samples, N pairs of the longest sequence, K keys of the alphabet, Q tokens of the questions, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.task import SHUFFLED_BYTES, WORD_BYTES, Guess, Task

MARKS = ("<pad>", "<bos>", "<modulo>", "<recall>")
BOS, MODULO, RECALL = 1, 2, 3


@dataclass(frozen=True)
class ModuloRecall(Task):
    """Sum of the values modulo `modulus`, and the value of one key. `questions` says which of the two a sequence asks.

    >>> task = ModuloRecall(modulus=2, values=10, keys=64)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> k12 5 k35 0 <modulo> 1 <recall> k35 0'
    >>> task.solve(task.decode(batch.tokens_BT[0]))
    {'modulo': ('1',), 'recall': ('0',)}
    """

    modulus: int = 10
    values: int = 10
    keys: int = 128
    questions: tuple[str, ...] = ("modulo", "recall")  # serves the abstract property

    def __post_init__(self) -> None:
        require_whole(self.modulus, "task.modulus", 2)
        require_whole(self.values, "task.values", 2)
        require_whole(self.keys, "task.keys", 1)
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
        return self.keys

    @property
    def limit(self) -> str:
        return f"its keys are distinct, and there are {self.keys} of them: task.keys"

    @property
    def state(self) -> tuple[str, ...]:
        return tuple(question for question in self.questions if question == "modulo")

    def chance(self, length: int) -> Mapping[str, float]:
        each = {"modulo": 1 / self.modulus, "recall": 1 / self.values}
        return {question: each[question] for question in self.questions}

    def tokens(self, length: int) -> int:
        return 1 + 2 * length + sum({"modulo": 2, "recall": 3}[question] for question in self.questions)

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is ModuloRecall.draw  # whoever draws otherwise may ask otherwise

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        require_memory(SHUFFLED_BYTES * size * self.keys, f"to shuffle {self.keys} keys for {size} sequences", str(device))
        n_B = n_B.to(device)
        key_BN = torch.rand(size, self.keys, generator=generator, device=device).argsort(dim=1)[:, :longest]
        value_BN = torch.randint(self.values, (size, longest), generator=generator, device=device)
        pick_B = (torch.rand(size, generator=generator, device=device) * n_B).long().clamp(max=longest - 1)
        present_BN = torch.arange(longest, device=device) < n_B[:, None]

        first_key = len(MARKS) + self.digits
        written = {
            "modulo": (value_BN * present_BN).sum(dim=1) % self.modulus + len(MARKS),
            "key": key_BN.gather(1, pick_B[:, None])[:, 0] + first_key,
            "recall": value_BN.gather(1, pick_B[:, None])[:, 0] + len(MARKS),
        }
        tail_BQ = self._tail(written)
        tokens_BT = torch.full((size, 1 + 2 * longest + tail_BQ.shape[1]), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : 1 + 2 * longest : 2] = torch.where(present_BN, key_BN + first_key, self.pad)
        tokens_BT[:, 2 : 2 + 2 * longest : 2] = torch.where(present_BN, value_BN + len(MARKS), self.pad)
        end_B = 1 + 2 * n_B
        tokens_BT.scatter_(1, end_B[:, None] + torch.arange(tail_BQ.shape[1], device=device), tail_BQ)
        return Batch(tokens_BT, self._target(tokens_BT, written, end_B), end_B + tail_BQ.shape[1])

    def _tail(self, written: Mapping[str, Tensor]) -> Tensor:
        """`<modulo> m`, `<recall> kj vj`, or one after the other."""
        mark = torch.ones_like(written["modulo"])
        columns: list[Tensor] = []
        if "modulo" in self.questions:
            columns += [MODULO * mark, written["modulo"]]
        if "recall" in self.questions:
            columns += [RECALL * mark, written["key"], written["recall"]]
        return torch.stack(columns, dim=1)

    def _target(self, tokens_BT: Tensor, written: Mapping[str, Tensor], end_B: Tensor) -> dict[str, Tensor]:
        """Asked are `<modulo>`, the first token of the tail, and the key, the last but one."""
        last = {"modulo": 1, "recall": 4 if "modulo" in self.questions else 2}  # where the answers stand in the tail
        nothing_BT = torch.full_like(tokens_BT, IGNORE)
        return {
            question: nothing_BT.scatter(1, end_B[:, None] + last[question] - 1, written[question][:, None])
            for question in self.questions
        }

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        pairs: dict[str, int] = {}
        answers: dict[str, tuple[str, ...]] = {}
        words = list(words)
        at = 1
        while at < len(words) and words[at].startswith("k"):
            pairs[words[at]] = int(words[at + 1])
            at += 2
        if "<modulo>" in words:
            answers["modulo"] = (str(sum(pairs.values()) % self.modulus),)
        if "<recall>" in words:
            answers["recall"] = (str(pairs[words[words.index("<recall>") + 1]]),)
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
