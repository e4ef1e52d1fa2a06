"""A helper of group-recall: the product so far, as a label of every token.

    <bos> k1 g1 k2 g2 ... kn gn <product> p

At each key, each element and at <product> the product of the elements that have been read is asked; the sequence is that of
group-recall with its first question alone, and a model never reads the labels. A recurrence is told its state where it changes,
and not at the end alone.

Shapes: B samples, N elements, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.group import Group, group_of, products
from lengthlab.tasks.group_recall import FIRST, GroupRecall
from lengthlab.tasks.task import Task


@dataclass(frozen=True)
class RunningProduct(Task):
    """The product of the elements so far, asked at every token but `<bos>`.

    >>> task = RunningProduct(group="S3", keys=8)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> words = task.decode(batch.tokens_BT[0])
    >>> " ".join(words), " ".join(task.solve(words)["product"])
    ('<bos> k2 132 k3 231 <product> 213', '123 132 132 213 213')
    """

    group: str = "S3"
    keys: int = 128

    name = "running-product"
    questions = ("product",)
    labels = True

    def __post_init__(self) -> None:
        _ = self._main  # which refuses what it cannot have

    @property
    def _main(self) -> GroupRecall:
        return GroupRecall(self.group, self.keys, ("product",))

    @property
    def _group(self) -> Group:
        return group_of(self.group)

    @property
    def words(self) -> tuple[str, ...]:
        return self._main.words

    @property
    def longest(self) -> int:
        return self.keys

    @property
    def limit(self) -> str:
        return self._main.limit

    def chance(self, length: int) -> Mapping[str, float]:
        return {"product": (1 / len(self._group.words)) ** length}

    def tokens(self, length: int) -> int:
        return self._main.tokens(length)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = self._main.draw(n_B, generator)
        tokens_BT, table_GG = batch.tokens_BT, self._group.table_GG.to(generator.device)
        end_B1 = 1 + 2 * n_B.to(tokens_BT.device)[:, None]
        place_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        read_BT = (tokens_BT >= FIRST) & (tokens_BT < FIRST + len(table_GG)) & (place_T < end_B1)
        product_BT = products((tokens_BT - FIRST).where(read_BT, 0), table_GG) + FIRST  # element 0 changes nothing
        asked_BT = (place_T > 0) & (place_T <= end_B1)
        return Batch(tokens_BT, {"product": product_BT.where(asked_BT, IGNORE)}, batch.length_B)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        elements, then = self._group.words, self._group.then
        state, states = elements[0], []
        for word in words[1 : list(words).index("<product>") + 1]:
            state = then(state, word) if word in elements else state
            states.append(state)
        return {"product": tuple(states)}
