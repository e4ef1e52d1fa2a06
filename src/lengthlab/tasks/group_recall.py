"""State tracking in a group and associative recall over one sequence: modulo-recall with a harder state.

    <bos> k1 g1 k2 g2 ... kn gn <product> p <recall> kj gj

The keys of a sequence are distinct; the values are elements of a group, drawn evenly; p is their product, the first element
first; kj is one of the keys, gj the element beside it. Z_n is modulo-recall with modulus and values n. S3 and S4 are soluble,
A5 and S5 are not: their word problem is complete for NC¹ (Barrington 1989), which no fixed number of attention layers is
believed to have (Merrill, Petty & Sabharwal, arXiv 2404.08819).

Shapes: B samples, N pairs of the longest sequence, Q tokens of the questions, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import cut, require, require_whole
from lengthlab.memory import require_memory
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.group import Group, group_of, product, sign
from lengthlab.tasks.task import ALL, WORD_BYTES, Guess, Task
from lengthlab.tasks.transduction import distinct

MARKS = ("<pad>", "<bos>", "<product>", "<recall>")
BOS, PRODUCT, RECALL, FIRST = 1, 2, 3, 4
BOTH = ("product", "recall")


@dataclass(frozen=True)
class GroupRecall(Task):
    """The product of n elements of a group, and the element beside one of n keys; n counts the pairs.

    `group` is Z2 to Z1000, S2 to S6 or A3 to A6; `questions` says which of the two a sequence asks.

    >>> task = GroupRecall(group="S3", keys=64)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> k12 132 k35 213 <product> 231 <recall> k35 213'
    """

    group: str = "S3"
    keys: int = 128
    questions: tuple[str, ...] = BOTH  # serves the abstract property

    name = "group-recall"

    def __post_init__(self) -> None:
        group_of(self.group)
        require_whole(self.keys, "task.keys", 1)
        allowed = self.questions in (BOTH, *((each,) for each in BOTH))
        require(allowed, f"task.questions must be ('product', 'recall') or one of the two, not {cut(repr(self.questions))}")
        require_memory(WORD_BYTES * self.keys, f"the words of task.keys = {self.keys}")

    @property
    def _group(self) -> Group:
        return group_of(self.group)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *self._group.words, *(f"k{k}" for k in range(self.keys)))

    @property
    def longest(self) -> int:
        return self.keys

    @property
    def limit(self) -> str:
        return f"its keys are distinct, and there are {self.keys} of them: task.keys"

    @property
    def state(self) -> tuple[str, ...]:
        return tuple(question for question in self.questions if question == "product")

    def chance(self, length: int) -> Mapping[str, float]:
        share = 1 / len(self._group.words)
        together = {ALL: share} if length == 1 and self.questions == BOTH else {}  # of one pair, both have the same answer
        return dict.fromkeys(self.questions, share) | together

    def tokens(self, length: int) -> int:
        return 1 + 2 * length + len(self._tail)

    @property
    def asks_alike(self) -> bool:
        return type(self).draw is GroupRecall.draw  # whoever draws otherwise may ask otherwise

    @property
    def _tail(self) -> tuple[str, ...]:
        """What stands after the pairs: marks, the key that is asked for, and answers by the name of their question."""
        asked = {"product": ("<product>", "product"), "recall": ("<recall>", "key", "recall")}
        return tuple(each for question in self.questions for each in asked[question])

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        table_GG, n_B1 = self._group.table_GG.to(device), n_B.to(device)[:, None]
        key_BN = distinct(size, self.keys, longest, generator)
        element_BN = torch.randint(len(table_GG), (size, longest), generator=generator, device=device)
        pick_B1 = (torch.rand(size, 1, generator=generator, device=device) * n_B1).long().minimum(n_B1 - 1)
        present_BN = torch.arange(longest, device=device) < n_B1

        first_key = FIRST + len(table_GG)
        written = {
            "<product>": torch.full_like(n_B1, PRODUCT),
            "product": FIRST + product(element_BN * present_BN, table_GG)[:, None],  # element 0 changes nothing
            "<recall>": torch.full_like(n_B1, RECALL),
            "key": first_key + key_BN.gather(1, pick_B1),
            "recall": FIRST + element_BN.gather(1, pick_B1),
        }
        tail_BQ = torch.cat([written[each] for each in self._tail], dim=1)
        at_BQ = 1 + 2 * n_B1 + torch.arange(tail_BQ.shape[1], device=device)
        tokens_BT = torch.full((size, self.tokens(longest)), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1 : 1 + 2 * longest : 2] = (key_BN + first_key).where(present_BN, self.pad)
        tokens_BT[:, 2 : 2 + 2 * longest : 2] = (element_BN + FIRST).where(present_BN, self.pad)
        tokens_BT.scatter_(1, at_BQ, tail_BQ)
        target = {}
        for question in self.questions:
            place = self._tail.index(question)
            nothing_BT = torch.full_like(tokens_BT, IGNORE)
            target[question] = nothing_BT.scatter_(1, at_BQ[:, place : place + 1] - 1, written[question])
        return Batch(tokens_BT, target, at_BQ[:, -1] + 1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        pairs = self._pairs(words)
        answers: dict[str, tuple[str, ...]] = {}
        if "product" in self.questions:
            state = self._group.words[0]
            for element in pairs.values():
                state = self._group.then(state, element)
            answers["product"] = (state,)
        if "recall" in self.questions:
            answers["recall"] = (pairs[words[list(words).index("<recall>") + 1]],)
        return answers

    def _pairs(self, words: Sequence[str]) -> dict[str, str]:
        end = min(at for at, word in enumerate(words) if word in MARKS[PRODUCT:])
        return dict(zip(words[1:end:2], words[2:end:2], strict=True))

    @property
    def guesses(self) -> Mapping[str, Guess]:
        signed = {"the last element, and the sign of the product alone": self._sign_alone} if self.group.startswith("S") else {}
        return {"the last element": self._last_element, **signed}

    def _last_element(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(self.questions, (list(self._pairs(words).values())[-1],))

    def _sign_alone(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """What is left of a symmetric group when order does not count: the first even element, or the first odd one."""
        odd = sum(sign(tuple(map(int, element))) < 0 for element in self._pairs(words).values()) % 2
        said = self._last_element(words) | {"product": (self._group.words[odd],)}
        return {question: said[question] for question in self.questions}
