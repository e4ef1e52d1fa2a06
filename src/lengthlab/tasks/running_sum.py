"""A helper of modulo-recall: the sum so far, as a label of every token.

    <bos> k1 v1 k2 v2 ... kn vn <modulo> m

At each key, each value and at <modulo> the sum of the values that have been read is asked, modulo `modulus`; the sequence is
that of `modulo`, and a model never reads the labels. A recurrence is told its state where it changes, and not at the end alone.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require_whole
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.modulo_recall import MARKS, modulo
from lengthlab.tasks.task import Task


@dataclass(frozen=True)
class RunningSum(Task):
    """The sum of the values so far, modulo `modulus`, asked at every token but `<bos>`.

    >>> task = RunningSum(modulus=2, keys=8)
    >>> batch = task.sample(1, (2, 2), torch.Generator().manual_seed(0))
    >>> words = task.decode(batch.tokens_BT[0])
    >>> " ".join(words), " ".join(task.solve(words)["modulo"])
    ('<bos> k2 7 k3 3 <modulo> 0', '0 1 1 0 0')
    """

    modulus: int = 10
    values: int = 10
    keys: int = 128

    name = "running-sum"
    questions = ("modulo",)
    labels = True

    def __post_init__(self) -> None:
        for name in ("modulus", "values", "keys"):
            require_whole(getattr(self, name), f"task.{name}", 1 if name == "keys" else 2)

    @property
    def words(self) -> tuple[str, ...]:
        return modulo(self.modulus, self.values, self.keys).words

    @property
    def longest(self) -> int:
        return self.keys

    @property
    def limit(self) -> str:
        return f"its keys are distinct, and there are {self.keys} of them: task.keys"

    def chance(self, length: int) -> Mapping[str, float]:
        return {"modulo": (-(-self.values // self.modulus) / self.values) ** length}  # the likeliest value, every time

    def tokens(self, length: int) -> int:
        return 2 * length + 3

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        batch = modulo(self.modulus, self.values, self.keys).draw(n_B, generator)
        token_BT, first = batch.tokens_BT, len(MARKS)
        digits = max(self.values, self.modulus)
        end_B1 = 1 + 2 * n_B.to(token_BT.device)[:, None]
        place_T = torch.arange(token_BT.shape[1], device=token_BT.device)
        value_BT = (token_BT >= first) & (token_BT < first + digits) & (place_T < end_B1)
        sum_BT = (token_BT - first).where(value_BT, 0).cumsum(dim=1) % self.modulus + first
        asked_BT = (place_T > 0) & (place_T <= end_B1)
        return Batch(token_BT, {"modulo": sum_BT.where(asked_BT, IGNORE)}, batch.length_B)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        total, sums = 0, []
        for word in words[1 : list(words).index("<modulo>") + 1]:
            total += int(word) if word.isdigit() else 0
            sums.append(str(total % self.modulus))
        return {"modulo": tuple(sums)}
