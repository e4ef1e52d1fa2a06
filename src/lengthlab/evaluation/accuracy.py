"""Accuracy at a length: the same fixed samples for every model, counted question by question.

Shapes: B samples, T tokens, Q questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.evaluation.interval import wilson
from lengthlab.models.model import speak
from lengthlab.seeds import seed_for
from lengthlab.tasks import Answer, Batch, Task

SAMPLES = 1000
DRAWN = 50
"""Samples are drawn so many at a time, each draw with a seed of its own: the set does not depend on the memory at hand."""
TOKENS = {"cpu": 2**16, "cuda": 2**18}
"""Tokens in one forward pass at the most, so that memory does not grow with the number of samples. A GPU walks many sequences
as fast as few; at width 256 so many tokens take about 1.6 GB, and where that is too much, half as many are tried.
"""


@dataclass(frozen=True)
class Count:
    """How many of `total` samples of a length had `question` right; `both` means every question of the sample."""

    length: int
    question: str
    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.correct, self.total)

    def to_json(self) -> dict[str, int | str]:
        return asdict(self)


def accuracy(network: nn.Module, task: Task, lengths: Iterable[int], samples: int = SAMPLES, seed: int = 0) -> list[Count]:
    """Counts for each length, each question and both.

    >>> from lengthlab import models, tasks
    >>> task = tasks.ModuloRecall(modulus=2, keys=8)
    >>> counts = accuracy(models.lstm(width=8).build(task.vocabulary), task, [4], samples=10)
    >>> [(count.length, count.question, count.total) for count in counts]
    [(4, 'modulo', 10), (4, 'recall', 10), (4, 'both', 10)]
    """
    counts: list[Count] = []
    training = network.training
    network.eval()
    try:
        for length in lengths:
            counts += _at(network, task, length, samples, seed)
    finally:
        network.train(training)
    return counts


@torch.no_grad()
def _at(network: nn.Module, task: Task, length: int, samples: int, seed: int) -> list[Count]:
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    right = dict.fromkeys((*task.questions, "both"), 0)
    for batch in together(evaluation_set(task, length, samples, seed), device):
        right_BQ = _answered(network, task, batch)
        for question, number in zip(task.questions, right_BQ.sum(dim=0).tolist(), strict=True):
            right[question] += number
        right["both"] += int(right_BQ.all(dim=1).sum())
    return [Count(length, question, number, samples) for question, number in right.items()]


def _answered(network: nn.Module, task: Task, batch: Batch) -> Tensor:
    """right_BQ: which questions of which samples; in halves where a GPU has no room for all at once."""
    at_BQ = torch.stack([batch.answers[question].position_B for question in task.questions], dim=1)
    say_BQ = torch.stack([batch.answers[question].token_B for question in task.questions], dim=1)
    try:
        return speak(network, batch.tokens_BT[:, :-1], at_BQ).argmax(dim=-1) == say_BQ
    except torch.OutOfMemoryError:
        half = len(batch.tokens_BT) // 2
        if half == 0:
            raise
    return torch.cat([_answered(network, task, _rows(batch, rows)) for rows in (slice(half), slice(half, None))])


def evaluation_set(task: Task, length: int, samples: int, seed: int = 0) -> Iterator[Batch]:
    """The fixed samples of a length. Drawn on the CPU whatever the model runs on, so that all models meet the same."""
    for start in range(0, samples, DRAWN):
        generator = torch.Generator().manual_seed(seed_for("evaluation", seed, length, start))
        yield task.sample(min(DRAWN, samples - start), (length, length), generator)


def together(draws: Iterable[Batch], device: torch.device) -> Iterator[Batch]:
    """The same samples on a device, in batches as large as one forward pass takes there."""
    tokens = TOKENS.get(device.type, TOKENS["cpu"])
    waiting: list[Batch] = []
    for draw in draws:
        rows = max(1, tokens // draw.tokens_BT.shape[1])
        for start in range(0, len(draw.tokens_BT), rows):
            piece = _rows(draw, slice(start, start + rows))
            if waiting and sum(len(batch.tokens_BT) for batch in (*waiting, piece)) > rows:
                yield _joined(waiting).to(device)
                waiting = []
            waiting.append(piece)
    if waiting:
        yield _joined(waiting).to(device)


def _rows(batch: Batch, chosen: slice) -> Batch:
    answers = {
        question: Answer(answer.position_B[chosen], answer.token_B[chosen]) for question, answer in batch.answers.items()
    }
    return Batch(batch.tokens_BT[chosen], answers)


def _joined(batches: Sequence[Batch]) -> Batch:
    """Sequences of a length may differ in tokens: the shorter are padded."""
    widest = max(batch.tokens_BT.shape[1] for batch in batches)
    tokens = [F.pad(batch.tokens_BT, (0, widest - batch.tokens_BT.shape[1])) for batch in batches]
    answers = {
        question: Answer(
            torch.cat([batch.answers[question].position_B for batch in batches]),
            torch.cat([batch.answers[question].token_B for batch in batches]),
        )
        for question in batches[0].answers
    }
    return Batch(torch.cat(tokens), answers)
