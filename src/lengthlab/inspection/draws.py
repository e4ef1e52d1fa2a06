"""Samples of anyone's task to try it on, drawn without leaving a trace in the process.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from lengthlab.tasks import IGNORE, Batch, Task

SHOWN = 24
"""Words of a sequence that a sentence has room for."""


@dataclass(frozen=True)
class Draws:
    """`each` samples of every length, in one batch, the same whenever they are drawn.

    >>> from lengthlab.tasks import ModuloRecall
    >>> draws = Draws(ModuloRecall(modulus=2, keys=8), lengths=(1, 2), each=1)
    >>> draws.n_B.tolist(), draws.answers["modulo"]
    ([1, 2], [('0',), ('1',)])
    """

    task: Task
    lengths: tuple[int, ...]
    each: int

    @cached_property
    def n_B(self) -> Tensor:  # noqa: N802  # tensors carry their shape
        return torch.tensor(self.lengths).repeat_interleave(self.each)

    @cached_property
    def batch(self) -> Batch:
        return self.draw(seed=0)

    def draw(self, seed: int) -> Batch:
        with untouched():
            return self.task.draw(self.n_B.clone(), Generator().manual_seed(seed))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(self.task.words)  # made anew at every look at the task

    @cached_property
    def words(self) -> list[list[str]]:
        """Of every sample, as `solve` reads them."""
        return [self.task.decode(tokens_T) for tokens_T in self.batch.tokens_BT]

    @cached_property
    def answers(self) -> Mapping[str, list[tuple[str, ...]]]:
        """What `draw` wants said, by question, of every sample."""
        return {question: [self._answer(row) for row in target.tolist()] for question, target in self.batch.target.items()}

    def _answer(self, target: list[int]) -> tuple[str, ...]:
        return tuple(self.vocabulary[token] for token in target if token != IGNORE)

    def show(self, row: int) -> str:
        """One sequence in words, its middle left out where it is long."""
        words = self.words[row]
        return " ".join(words if len(words) <= SHOWN else [*words[: SHOWN // 2], "…", *words[-SHOWN // 2 :]])


@contextmanager
def untouched() -> Iterator[None]:
    """The random numbers that a process shares are afterwards as they were, whatever a user's code drew of them."""
    python, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numbers)


def shared_states() -> dict[str, object]:
    """Of the generators that a process shares, by whose they are: to see whether somebody drew from one."""
    _, keys, *place = np.random.get_state()
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "Python's random": random.getstate(),
        "numpy": (np.asarray(keys).tobytes(), place),
    }


def tokens_of(task: Task, length: int) -> int:
    """How many a sequence has; as many as its length says, where the task does not tell."""
    try:
        return task.tokens(length) or length
    except Exception:  # a user's own; what is wrong with it is told where the task is tried
        return length
