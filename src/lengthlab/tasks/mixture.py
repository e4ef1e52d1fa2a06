"""Several tasks as one: every sample is of one of them, by weights and at lengths that a phase of the schedule may change.

Shapes: B samples, C of them of one task, T tokens, V words of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import nearest, require, require_number, require_whole
from lengthlab.tasks.batch import IGNORE, Batch, join, pad_tokens
from lengthlab.tasks.task import ALL, Task

GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Mixture(Task):
    """Tasks with one vocabulary, the union of theirs.

    `weights` are their shares of a batch, equal if not given. With `tag` a sequence begins with a word that names its task. A
    question is called `task/question`, and is counted over the samples that ask it.

    `lengths`: for each task the shortest and the longest length that it is trained on, those of the run where that is empty: a
    main task may be short and its helpers long. `measured`: the shares when measured, where they are not those of training;
    (1, 0) measures the first task alone, in all samples, at lengths that the second need not have.

    >>> from lengthlab.tasks import modulo, recall
    >>> mixed = Mixture((modulo(keys=8), recall(keys=8)), weights=(3, 1))
    >>> batch = mixed.sample(4, (2, 2), torch.Generator().manual_seed(0))
    >>> [mixed.decode(tokens_T)[0] for tokens_T in batch.tokens_BT]
    ['<task:recall>', '<task:modulo>', '<task:modulo>', '<task:modulo>']
    """

    tasks: tuple[Task, ...]
    weights: tuple[float, ...] = ()
    tag: bool = True
    lengths: tuple[tuple[int, ...], ...] = field(default=(), metadata={"added": "0.3"})
    measured: tuple[float, ...] = field(default=(), metadata={"added": "0.3"})

    def __post_init__(self) -> None:
        tasks = isinstance(self.tasks, (list, tuple)) and all(isinstance(task, Task) for task in self.tasks)
        require(tasks, f"a mixture is of a list of tasks, not of {self.tasks!r}")
        names = [task.name for task in self.tasks]
        require(len(names) >= 2, "a mixture is of two tasks or more")
        require(len(set(names)) == len(names), f"tasks of a mixture need names of their own, not {', '.join(names)}")
        object.__setattr__(self, "weights", self._shares(self.weights or [1.0] * len(names), "weights"))
        object.__setattr__(self, "measured", self._shares(self.measured, "measured") if self.measured else ())
        object.__setattr__(self, "lengths", self._own_lengths())
        alike = len({task.free_running for task in self.tasks}) == 1
        require(alike, "tasks that are evaluated on what the model says itself do not mix with others: evaluate them alone")

    def _shares(self, given: Sequence[float], name: str) -> tuple[float, ...]:
        """One for each task, none below 0 and not all 0."""
        for share in given:
            require_number(share, f"each of task.{name}", least=0)
        shares = tuple(map(float, given))
        fits = len(shares) == len(self.tasks) and sum(shares) > 0
        require(fits, f"task.{name} must be a share of at least 0 for each of {len(self.tasks)} tasks, not {list(shares)}")
        return shares

    def _own_lengths(self) -> tuple[tuple[int, ...], ...]:
        """One pair for each task, or an empty one where it has those of the run."""
        own = self.lengths
        pairs = isinstance(own, (list, tuple)) and all(isinstance(each, (list, tuple)) and len(each) in (0, 2) for each in own)
        form = f"[shortest, longest] or [] for each of {len(self.tasks)} tasks"
        require(pairs and len(own) in (0, len(self.tasks)), f"task.lengths must be {form}, not {own!r}")
        for task, pair in zip(self.tasks, own, strict=False):
            for length in pair:
                require_whole(length, f"each of task.lengths of '{task.name}'", 1)
                task.check_length(length)
            ascending = not pair or pair[0] <= pair[1]
            require(ascending, f"task.lengths of '{task.name}' must be [shortest, longest], not {list(pair)}")
        return tuple(map(tuple, own)) if any(own) else ()

    @property
    def as_measured(self) -> Mixture:
        return replace(self, tasks=tuple(task.as_measured for task in self.tasks), weights=self.measured or self.weights)

    def weighted(self, weights: Sequence[float] = (), lengths: Sequence[Sequence[int]] = ()) -> Mixture:
        """The same tasks in other shares and at other lengths, where some are given; measured as they are drawn."""
        own, shares = tuple(tuple(pair) for pair in lengths) or self.lengths, tuple(weights) or self.weights
        return replace(self, weights=shares, lengths=own, measured=shares if self.measured else ())

    def alone(self, name: str) -> Mixture:
        """One task in the words of the mixture, with its tag: what a model of the mixture is asked to measure that task.

        >>> from lengthlab.tasks import modulo, recall
        >>> Mixture((modulo(), recall())).alone("recall").weights
        (0.0, 1.0)
        """
        names = [task.name for task in self.tasks]
        require(name in names, f"no task of the mixture is called '{name}'; {nearest(name, names)}")
        shares = tuple(float(name == each) for each in names)
        return replace(self, weights=shares, measured=shares)

    def ranges(self, usual: tuple[int, int]) -> dict[str, tuple[int, int]]:
        """Of every task that has a share the lengths that it is trained on, where a run or a phase has these."""
        own = self.lengths or [()] * len(self.tasks)
        pairs = {task.name: pair or usual for task, pair, share in zip(self.tasks, own, self.weights, strict=True) if share}
        return {name: (pair[0], pair[1]) for name, pair in pairs.items()}

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
    def outcomes(self) -> tuple[str, ...]:
        """Those of tasks that are measured; where ids follow from the words of one task, nobody knows them in those of all."""
        tasks = [task for task in self.asked_tasks if not task.ids_follow]
        return tuple(f"{task.name}/{outcome}" for task in tasks for outcome in task.outcomes)

    def outcome_of(self, right: Sequence[str], said: Sequence[str]) -> Mapping[str, bool]:
        for task, rest in self._tasks_of(right, self.asked_tasks):
            return {f"{task.name}/{outcome}": holds for outcome, holds in task.outcome_of(rest, said).items()}
        return {}

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
    def asked_tasks(self) -> tuple[Task, ...]:
        """Those that are measured: all of them, where `measured` says nothing."""
        shares = self.measured or [1.0] * len(self.tasks)
        return tuple(task for task, share in zip(self.tasks, shares, strict=True) if share)

    @property
    def shortest(self) -> int:
        return max(task.shortest for task in self.asked_tasks)

    @property
    def longest(self) -> int | None:
        return min((task.longest for task in self.asked_tasks if task.longest is not None), default=None)

    @property
    def limit(self) -> str:
        """Of the task that reaches least far."""
        least = min((task for task in self.asked_tasks if task.longest is not None), key=lambda task: task.longest or 0)
        return f"as '{least.name}' in it: {least.limit}"

    @property
    def floor(self) -> str:
        """Of the task that begins last."""
        last = max(self.asked_tasks, key=lambda task: task.shortest)
        return f"as '{last.name}' in it: {last.floor}"

    def tokens(self, length: int) -> int | None:
        """Known where all of its tasks have as many, at the same lengths.

        >>> from lengthlab.tasks import ModuloRecall, RunningSum, modulo
        >>> [Mixture((main, RunningSum()), tag=False).tokens(4) for main in (modulo(), ModuloRecall())]
        [11, None]
        """
        reached = ((task, max(length, task.shortest)) for task in self.tasks)  # as they are drawn
        known = {task.tokens(min(each, task.longest or each)) for task, each in reached}
        one = known.pop()
        return None if known or one is None or self.lengths else one + self.tag

    def chance(self, length: int) -> Mapping[str, float]:
        each = {f"{task.name}/{question}": task.chance(length)[question] for task in self.tasks for question in task.questions}
        shares = self.measured or self.weights
        asked = [(share / sum(shares), task) for share, task in zip(shares, self.tasks, strict=True) if share]
        return each | {ALL: sum(share * task.chances(length)[ALL] for share, task in asked)}

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        return self._drawn(n_B, generator, ())

    def draw_training(self, n_B: Tensor, generator: Generator) -> Batch:
        """The same; a task that has lengths of its own is drawn at these, evenly and by chance."""
        return self._drawn(n_B, generator, self.lengths)

    def _drawn(self, n_B: Tensor, generator: Generator, lengths: tuple[tuple[int, ...], ...]) -> Batch:
        start, turn = torch.rand(2, generator=generator, device=generator.device).tolist()
        task_B = _spread(len(n_B), self.weights, start, turn)
        pieces, order = [], []
        for number, task in enumerate(self.tasks):
            chosen = (task_B == number).nonzero()[:, 0]
            if len(chosen):
                own = lengths[number] if lengths else ()
                # What is not measured need not have the lengths of what is, and is then drawn at the nearest that it has.
                n_C = _between(len(chosen), own, generator) if own else n_B[chosen].clamp(task.shortest, task.longest)
                pieces.append(self._translated(task, task.draw(n_C, generator)))
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
        for task, rest in self._tasks_of(words, self.tasks):
            return {f"{task.name}/{question}": answer for question, answer in task.solve(rest).items()}
        return {}

    def _tasks_of(self, words: Sequence[str], tasks: Sequence[Task]) -> Iterator[tuple[Task, list[str]]]:
        """Those of whom a written sequence may be, the likeliest first, and the sequence without its tag."""
        rest = list(words[1:]) if self.tag else list(words)
        for task in tasks:
            if (not self.tag or words[0] == _tag(task)) and set(rest) <= set(task.words):
                try:
                    answers = task.solve(rest)
                except (KeyError, ValueError, IndexError):
                    continue
                if set(answers) == set(task.questions):
                    yield task, rest


def _between(size: int, lengths: Sequence[int], generator: Generator) -> Tensor:
    """n_C, on the CPU: so many lengths of a range with both ends included, each drawn by itself."""
    span = lengths[1] - lengths[0] + 1
    share_C = torch.rand(size, generator=generator, device=generator.device).cpu()
    return (lengths[0] + (share_C * span).long()).clamp(max=lengths[1])


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
