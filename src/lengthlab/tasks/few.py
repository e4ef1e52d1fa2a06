"""A task of which training has few samples: so many of each length, drawn once and always the same.

Shapes: B samples, C of them of one length, S samples of a training set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Generator, Tensor

from lengthlab.errors import a_kind, require, require_whole
from lengthlab.tasks.batch import Batch, join
from lengthlab.tasks.task import Guess, Task

FRESH = 0
"""So many samples stand for as many as are asked for, each drawn anew."""


@dataclass(frozen=True)
class Few(Task):
    """`samples` of each length are all that training ever sees; when measured, sequences are drawn anew. `seed`: another one
    gives another training set, which is then the same for every seed of a run.

    >>> from lengthlab.tasks import Copy
    >>> few = Few(Copy(), samples=2)
    >>> batch = few.sample(50, (5, 5), torch.Generator().manual_seed(0))
    >>> len({few.decode(tokens_T)[1] for tokens_T in batch.tokens_BT})
    2
    """

    task: Task
    samples: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            isinstance(self.task, Task), f"task.task must be the task of which there are few samples, not {a_kind(self.task)}"
        )
        require_whole(self.samples, "task.samples", FRESH, 1_000_000)
        require_whole(self.seed, "task.seed", 0)

    @property
    def name(self) -> str:
        return f"few-{self.task.name}"

    @property
    def as_measured(self) -> Few:
        return replace(self, task=self.task.as_measured, samples=FRESH)

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        if self.samples == FRESH:
            return self.task.draw(n_B, generator)
        share_B = torch.rand(len(n_B), generator=generator, device=generator.device)
        chosen_B = (share_B * self.samples).long().clamp(max=self.samples - 1)
        pieces, order = [], []
        for n in sorted(set(n_B.tolist())):
            of_n_C = (n_B == n).nonzero()[:, 0]
            order.append(of_n_C)
            pieces.append(_training_set(self, n).to(generator.device).take(chosen_B[of_n_C.to(generator.device)]))
        return join(pieces).take(torch.cat(order).argsort().to(generator.device))

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return self.task.solve(words)

    def chance(self, length: int) -> Mapping[str, float]:
        return self.task.chances(length)

    def tokens(self, length: int) -> int | None:
        return self.task.tokens(length)

    @property
    def questions(self) -> tuple[str, ...]:
        return self.task.questions

    @property
    def words(self) -> tuple[str, ...]:
        return self.task.words

    @property
    def state(self) -> tuple[str, ...]:
        return self.task.state

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return self.task.guesses

    @property
    def asks_alike(self) -> bool:
        return self.task.asks_alike

    @property
    def free_running(self) -> bool:  # type: ignore[override]  # that of the task
        return self.task.free_running

    @property
    def ids_follow(self) -> bool:  # type: ignore[override]  # that of the task
        return self.task.ids_follow

    @property
    def outcomes(self) -> tuple[str, ...]:
        return self.task.outcomes

    def outcome_of(self, right: Sequence[str], said: Sequence[str]) -> Mapping[str, bool]:
        return self.task.outcome_of(right, said)

    def ids_of(self, batch: Batch, tokens_BT: Tensor) -> Tensor | None:
        return self.task.ids_of(batch, tokens_BT)

    @property
    def labels(self) -> bool:  # type: ignore[override]  # that of the task
        return self.task.labels

    @property
    def shortest(self) -> int:
        return self.task.shortest

    @property
    def longest(self) -> int | None:
        return self.task.longest

    @property
    def limit(self) -> str:
        return self.task.limit

    @property
    def floor(self) -> str:
        return self.task.floor


@lru_cache(maxsize=512)
def _training_set(few: Few, n: int) -> Batch:
    """The samples of a length, S of them, on the CPU: the same on every device."""
    seeds = torch.Generator().manual_seed(few.seed)
    seed_of_n = int(torch.randint(2**62, (n,), generator=seeds)[-1])
    return few.task.draw(torch.full((few.samples,), n), torch.Generator().manual_seed(seed_of_n))
