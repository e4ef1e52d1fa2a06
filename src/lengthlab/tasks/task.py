"""What is learned: a task draws sequences, says where the model is asked, and can answer in plain Python.

Shapes: B samples, T tokens, N pairs (or steps) of a sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import ClassVar

from torch import Generator, Tensor

from lengthlab.errors import LabError, a_kind, require, require_number
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.lengths import spread

Guess = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""A trivial way to answer: the words of a sequence in, the words of each answer out."""

WORD_BYTES = 60
"""Of a word and its place in a tuple, at least."""
SHUFFLED_BYTES = 12
"""Of a symbol that is drawn without repetition: the random number it is ordered by, and its place."""

ALL = "all"
"""Stands for every question of a sample: it is right if all of them are. No question may have this name."""


class Task(ABC):
    """Subclass it as a frozen dataclass; its fields are the task's parameters. `examples/parity_task.py` is a whole one.

    A task samples on the device of the generator it is given, with tensor operations only: same seed, same batch. It also
    answers in plain Python (`solve`), slowly and obviously, and the tests hold one against the other.
    """

    pad: ClassVar[int] = 0
    """Token 0 of every task fills up short sequences; models never see past it, because they are causal."""
    free_running: ClassVar[bool] = False
    """Whether it is evaluated on what the model says when it reads its own answers, instead of the right ones."""

    labels: ClassVar[bool] = False
    """Whether what is to be said are labels of what was read, beside the sequence, and not the tokens that come next in it. The
    model never reads labels."""

    ids_follow: ClassVar[bool] = False
    """Whether position ids follow from the words of the answer, so that a model's own words have other ids: see `ids_of`."""

    @property
    def asks_alike(self) -> bool:
        """Whether every sample is asked at as many positions in each draw, so that nobody has to count them. True only where
        that is so whatever is drawn: positions beyond the count of the first draw would not be trained on.
        """
        return False

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
    def shortest(self) -> int:
        """The least length that can be drawn."""
        return 1

    @property
    def longest(self) -> int | None:
        """The greatest length that can be drawn, or None where there is no limit."""
        return None

    @abstractmethod
    def chance(self, length: int) -> Mapping[str, float]:
        """Accuracy of a blind guess at a length, for each question, and for outcomes where it is known; for `all` questions,
        too, if it is not their product.
        """

    @abstractmethod
    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        """One sequence of each length of `n_B`, on the generator's device. `n_B` is on the CPU: reading it waits for nobody."""

    @abstractmethod
    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The right words for each question, read from the written sequence in plain Python."""

    @property
    def state(self) -> tuple[str, ...]:
        """The questions that need a state carried along the sequence: what the first phase of a delayed training asks, and
        waits for. The only question there is, if not said otherwise; none, if there are several.
        """
        return self.questions if len(self.questions) == 1 else ()

    def sample(self, size: int, lengths: tuple[int, int], generator: Generator) -> Batch:
        """`size` sequences with lengths spread evenly over a range, both ends included."""
        require(size >= 1, f"the size of a batch must be at least 1, not {size}")
        require(lengths[0] <= lengths[1], f"lengths must be (shortest, longest), not {lengths}")
        self.check_length(lengths[0])
        self.check_length(lengths[1])
        batch: object = self.draw(spread(size, lengths, generator), generator)
        if not isinstance(batch, Batch):
            raise LabError(f"task '{self.name}': draw gave {a_kind(batch)}, and has to give a Batch")
        silent = [question for question in self.questions if question not in batch.target]
        require(not silent, f"task '{self.name}': draw gave no target for {', '.join(map(repr, silent))}")
        return batch

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What an answer may come to, counted beside the questions where the model reads its own words instead of the right
        ones: whether a scratchpad ends with the right result, say, whatever stands before it. For tasks that are asked to the
        end of the sequence; none, if not said otherwise.
        """
        return ()

    def outcome_of(self, right: Sequence[str], said: Sequence[str]) -> Mapping[str, bool]:
        """For each of `outcomes`, whether it holds of what was `said` in the place of the answer of the written sequence
        `right`. Both end with the last word of that sequence, unless what was said never came to its end.
        """
        return {}

    def ids_of(self, batch: Batch, tokens_BT: Tensor) -> Tensor | None:
        """position_BT of sequences that begin as those of the batch and go on as a model wrote them: those of the batch, if not
        said otherwise.
        """
        return None if batch.position_BT is None else batch.position_BT[:, : tokens_BT.shape[1]]

    @property
    def as_measured(self) -> Task:
        """The task that evaluation draws from: itself, unless something that training draws stands still there."""
        return self

    def draw_training(self, n_B: Tensor, generator: Generator) -> Batch:
        """What training draws: `draw`, unless something has lengths of its own there."""
        return self.draw(n_B, generator)

    def tokens(self, length: int) -> int | None:
        """How many tokens every sequence of a length has, if that is known: then it is trained without padding."""
        return None

    def chances(self, length: int) -> dict[str, float]:
        """`chance`, with `all` of the questions."""
        each: object = self.chance(length)
        if not isinstance(each, Mapping):
            raise LabError(f"task '{self.name}': chance gave {a_kind(each)}, and has to give a share by question")
        for question, share in each.items():
            require_number(share, f"task '{self.name}': the chance of '{question}'", least=0, most=1)
        asked = [share for question, share in each.items() if question not in self.outcomes]
        return dict(each) if ALL in each else {**each, ALL: prod(asked)}

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
        begins = f"length {length}: task '{self.name}' begins at {self.shortest} ({self.floor})"
        require(length >= self.shortest, begins)
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

    @property
    def floor(self) -> str:
        """What sets `shortest`, for the error text."""
        return f"shortest = {self.shortest}"
