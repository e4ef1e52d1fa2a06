"""What is learned: a task draws sequences and says where the model must speak and what it must say.

Shapes: B samples, T tokens, N pairs (or steps) of a sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from lengthlab.errors import require
from lengthlab.tasks.lengths import spread

Guess = Callable[[Sequence[str]], Mapping[str, str]]
"""A trivial way to answer: the words of a sequence in, a word per question out."""


@dataclass(frozen=True)
class Answer:
    """Where the model must speak, and what it must say there: the token that comes next."""

    position_B: Tensor
    token_B: Tensor

    def to(self, device: torch.device | str) -> Answer:
        return Answer(self.position_B.to(device), self.token_B.to(device))


@dataclass(frozen=True)
class Batch:
    """Whole sequences, padded on the right, and for each question its answer.

    `tokens_BT[b, position_B[b] + 1] == token_B[b]` for every question, so nothing is ever asked at the last column.
    """

    tokens_BT: Tensor
    answers: Mapping[str, Answer]

    def to(self, device: torch.device | str) -> Batch:
        answers = {question: answer.to(device) for question, answer in self.answers.items()}
        return Batch(self.tokens_BT.to(device), answers)


class Task(ABC):
    """Subclass it as a frozen dataclass; its fields are the task's parameters. `examples/parity_task.py` is a whole one.

    A task samples on the device of the generator it is given, with tensor operations only: same seed, same batch. It also
    answers in plain Python (`solve`), slowly and obviously, and the tests hold one against the other.
    """

    pad: ClassVar[int] = 0
    """Token 0 of every task fills up short sequences; models never see past it, because they are causal."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As users type it, `modulo-recall`."""

    @property
    @abstractmethod
    def questions(self) -> tuple[str, ...]:
        """What the model is asked, in the order of the sequence."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """The vocabulary: token t is written `words[t]`."""

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """The greatest length that can be drawn, or None where there is no limit."""

    @property
    @abstractmethod
    def chance(self) -> Mapping[str, float]:
        """Accuracy of a blind guess, for each question and for `both` (all of them right)."""

    @abstractmethod
    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        """One sequence of each length of `n_B`, on the generator's device. `n_B` is on the CPU: reading it waits for nobody."""

    @abstractmethod
    def solve(self, words: Sequence[str]) -> Mapping[str, str]:
        """The right word for each question, read from the written sequence in plain Python."""

    def sample(self, size: int, lengths: tuple[int, int], generator: Generator) -> Batch:
        """`size` sequences with lengths spread evenly over a range, both ends included."""
        require(size >= 1, f"the size of a batch must be at least 1, not {size}")
        require(lengths[0] <= lengths[1], f"lengths must be (shortest, longest), not {lengths}")
        self.check_length(lengths[0])
        self.check_length(lengths[1])
        return self.draw(spread(size, lengths, generator), generator)

    def tokens(self, length: int) -> int | None:
        """How many tokens every sequence of a length has. A task that knows is trained without padding."""
        return None

    @property
    def guesses(self) -> Mapping[str, Guess]:
        """Trivial ways to answer that a model should beat, by name; shown on the task's card."""
        return {}

    @property
    def vocabulary(self) -> int:
        return len(self.words)

    def decode(self, tokens_T: Tensor) -> list[str]:
        """The words of one sequence, padding left out."""
        words = self.words
        return [words[token] for token in tokens_T.tolist() if token != self.pad]

    def check_length(self, length: int) -> None:
        """Refuse a length that cannot be drawn."""
        require(length >= 1, f"length {length}: a sequence of task '{self.name}' has at least 1 pair or step")
        if self.longest is not None:
            require(
                length <= self.longest,
                f"length {length}: task '{self.name}' reaches {self.longest} at most"
                f" ({self.limit}); give it more or ask for less",
            )

    @property
    def limit(self) -> str:
        """What sets `longest`, for the error text."""
        return f"longest = {self.longest}"
