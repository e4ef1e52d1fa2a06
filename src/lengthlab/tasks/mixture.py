"""Several tasks as one: every sample is of one of them, by weights that a phase of the schedule may change.

Shapes: B samples, T tokens, V words of a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import require, require_number
from lengthlab.tasks.batch import IGNORE, Batch, join, pad_tokens
from lengthlab.tasks.task import ALL, Task

GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Mixture(Task):
    """Tasks with one vocabulary, the union of theirs.

    `weights` are their shares of a batch, equal if not given. With `tag` a sequence begins with a word that names its task. A
    question is called `task/question`, and is counted over the samples that ask it.

    >>> from lengthlab.tasks import modulo, recall
    >>> mixed = Mixture((modulo(keys=8), recall(keys=8)), weights=(3, 1))
    >>> batch = mixed.sample(4, (2, 2), torch.Generator().manual_seed(0))
    >>> [mixed.decode(tokens_T)[0] for tokens_T in batch.tokens_BT]
    ['<task:recall>', '<task:modulo>', '<task:modulo>', '<task:modulo>']
    """

    tasks: tuple[Task, ...]
    weights: tuple[float, ...] = ()
    tag: bool = True

    def __post_init__(self) -> None:
        tasks = isinstance(self.tasks, (list, tuple)) and all(isinstance(task, Task) for task in self.tasks)
        require(tasks, f"a mixture is of a list of tasks, not of {self.tasks!r}")
        names = [task.name for task in self.tasks]
        require(len(names) >= 2, "a mixture is of two tasks or more")
        require(len(set(names)) == len(names), f"tasks of a mixture need names of their own, not {', '.join(names)}")
        for weight in self.weights:
            require_number(weight, "each of task.weights", least=0)
        weights = tuple(map(float, self.weights or [1.0] * len(names)))
        object.__setattr__(self, "weights", weights)
        fits = len(weights) == len(names) and all(weight >= 0 for weight in weights) and sum(weights) > 0
        alike = len({task.free_running for task in self.tasks}) == 1
        require(alike, "tasks that are evaluated on what the model says itself do not mix with others: evaluate them alone")
        require(fits, f"task.weights must be a share of at least 0 for each of {len(names)} tasks, not {list(weights)}")

    @property
    def as_measured(self) -> Mixture:
        return replace(self, tasks=tuple(task.as_measured for task in self.tasks))

    def weighted(self, weights: Sequence[float]) -> Mixture:
        """The same tasks in other shares."""
        return replace(self, weights=tuple(weights))

    @property
    def drawn(self) -> tuple[str, ...]:
        """The questions of tasks that have a share."""
        shares = zip(self.tasks, self.weights, strict=True)
        return tuple(f"{task.name}/{question}" for task, weight in shares if weight for question in task.questions)

    @property
    def name(self) -> str:
        return "+".join(task.name for task in self.tasks)

    @property
    def free_running(self) -> bool:  # type: ignore[override]  # that of its tasks
        return self.tasks[0].free_running

    @property
    def labels(self) -> bool:  # type: ignore[override]  # that of its tasks
        return any(task.labels for task in self.tasks)

    @property
    def questions(self) -> tuple[str, ...]:
        return tuple(f"{task.name}/{question}" for task in self.tasks for question in task.questions)

    @property
    def state(self) -> tuple[str, ...]:
        return tuple(f"{task.name}/{question}" for task in self.tasks for question in task.state)

    @property
    def words(self) -> tuple[str, ...]:
        """Padding, the tags, and every word of a task once."""
        tags = [_tag(task) for task in self.tasks] if self.tag else []
        pad = self.tasks[0].words[self.pad]
        return tuple(dict.fromkeys([pad, *tags, *(word for task in self.tasks for word in task.words[1:])]))

    @property
    def shortest(self) -> int:
        return max(task.shortest for task in self.tasks)

    @property
    def longest(self) -> int | None:
        return min((task.longest for task in self.tasks if task.longest is not None), default=None)

    def chance(self, length: int) -> Mapping[str, float]:
        each = {f"{task.name}/{question}": task.chance(length)[question] for task in self.tasks for question in task.questions}
        shares = [weight / sum(self.weights) for weight in self.weights]
        return each | {ALL: sum(share * task.chances(length)[ALL] for share, task in zip(shares, self.tasks, strict=True))}

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        start, turn = torch.rand(2, generator=generator, device=generator.device).tolist()
        task_B = _spread(len(n_B), self.weights, start, turn)
        pieces, order = [], []
        for number, task in enumerate(self.tasks):
            chosen = (task_B == number).nonzero()[:, 0]
            if len(chosen):
                pieces.append(self._translated(task, task.draw(n_B[chosen], generator)))
                order.append(chosen)
        inverse_B = torch.cat(order).argsort().to(generator.device)
        return join(pieces).take(inverse_B)

    def _translated(self, task: Task, batch: Batch) -> Batch:
        """A batch of a task in the words of the mixture, all questions there, its own asked."""
        words = {word: token for token, word in enumerate(self.words)}
        table_V = torch.tensor([self.pad, *(words[word] for word in task.words[1:])], device=batch.tokens_BT.device)
        tokens_BT = table_V[batch.tokens_BT]
        nothing_BT = torch.full_like(tokens_BT, IGNORE)
        target = dict.fromkeys(self.questions, nothing_BT) | {
            f"{task.name}/{question}": nothing_BT.where(target_BT == IGNORE, table_V[target_BT.clamp(min=0)])
            for question, target_BT in batch.target.items()
        }
        made = Batch(tokens_BT, target, batch.length_B, batch.position_BT)
        return self._tagged(made, words[_tag(task)]) if self.tag else made

    def _tagged(self, batch: Batch, tag: int) -> Batch:
        target = {question: F.pad(target_BT, (1, 0), value=IGNORE) for question, target_BT in batch.target.items()}
        position_BT = None if batch.position_BT is None else pad_tokens(batch.position_BT, 1, 0)
        return Batch(F.pad(batch.tokens_BT, (1, 0), value=tag), target, batch.length_B + 1, position_BT)

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The answers of the task that the tag names; without tags, of the first that knows all words and can answer."""
        tasks = [task for task in self.tasks if not self.tag or words[0] == _tag(task)]
        rest = list(words[1:]) if self.tag else list(words)
        for task in tasks:
            if set(rest) <= set(task.words):
                try:
                    answers = task.solve(rest)
                except (KeyError, ValueError, IndexError):
                    continue
                if set(answers) == set(task.questions):
                    return {f"{task.name}/{question}": answer for question, answer in answers.items()}
        return {}


def _tag(task: Task) -> str:
    return f"<task:{task.name}>"


def _spread(size: int, weights: tuple[float, ...], start: float, turn: float) -> Tensor:
    """task_B, on the CPU. A task gets its share of `size` evenly spaced points, the first of them at `start` of their distance;
    they come in the order of multiples of the golden ratio, the first at `turn`. So any stretch of a batch, where lengths
    ascend, has its shares. With both numbers, each from 0 to 1, drawn anew for every batch, even a task that is rarer than one
    sample in a batch has its share in the long run, at every length.

    >>> _spread(8, (3.0, 1.0), start=0.2, turn=0.0)
    tensor([0, 0, 0, 1, 0, 0, 1, 0])
    """
    order_B = ((turn + GOLDEN * torch.arange(size, dtype=torch.float64, device="cpu")) % 1).argsort().argsort()
    upto = torch.tensor(weights, dtype=torch.float64, device="cpu").cumsum(dim=0)
    return torch.searchsorted(upto[:-1] / upto[-1], (order_B + start) / size, right=True)
