"""The samples that a diagnosis is made on, and where in them questions begin.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.models.layout import Layout
from lengthlab.tasks import IGNORE, Batch, Task
from lengthlab.tasks.batch import join, merged

SAMPLES = 200
TOKENS = 2**15
"""Of all samples of a length together, from where on there are fewer of them."""
LEAST = 24
LONGEST = 2**12
"""Tokens of a sequence: attention is written out, and that grows with their square."""
SEED = 2
"""Accuracy is counted on the samples of seed 0, temperatures are fitted on those of seed 1."""


@dataclass(frozen=True)
class Questions:
    """Samples of one length that are first asked at one position, `boundary`: all before it is what is to be remembered. Where
    a task asks all along, it is the last position that asks.
    """

    batch: Batch
    boundary: int

    def asked(self, question: str) -> tuple[Tensor, Tensor]:
        """at_B and wanted_B: the first position, from the boundary on, at which a question asks, and what it wants; IGNORE
        where it asks nothing.
        """
        target_BT = self.batch.target[question][:, self.boundary :]
        at_B = (target_BT != IGNORE).int().argmax(dim=1)
        return at_B + self.boundary, target_BT.gather(1, at_B[:, None])[:, 0]

    @property
    def read(self) -> Tensor:
        """tokens_BT, all but the last, which nobody reads."""
        return self.batch.tokens_BT[:, :-1]

    @property
    def layout(self) -> Layout:
        """Outputs wanted everywhere."""
        position_BT = self.batch.position_BT
        return Layout(None if position_BT is None else position_BT[:, :-1])


def questions_at(task: Task, length: int, samples: int = SAMPLES, seed: int = SEED, tokens: int = TOKENS) -> list[Questions]:
    """The fixed samples of a length, together by where they are first asked; such that nobody else shares that with are left
    out.

    >>> from lengthlab.tasks import ModuloRecall
    >>> [(len(each.batch.tokens_BT), each.boundary) for each in questions_at(ModuloRecall(keys=8), 4, samples=10)]
    [(10, 9)]
    """
    batch = join(list(evaluation_set(task, length, number_at(task, length, samples, tokens), seed)))
    return list(_together(batch))


def number_at(task: Task, length: int, samples: int = SAMPLES, tokens: int = TOKENS) -> int:
    """How many samples of a length are enough, and not too many to wait for."""
    return max(min(samples, LEAST), min(samples, tokens // tokens_at(task, length)))


def _together(batch: Batch) -> Iterator[Questions]:
    asked_BT = merged(batch.target) != IGNORE
    tokens = asked_BT.shape[1]
    place_T = torch.arange(tokens)
    first_B = place_T.where(asked_BT, tokens).amin(dim=1)
    last_B = place_T.where(asked_BT, -1).amax(dim=1)
    often = asked_BT.sum() > 0.5 * (last_B - first_B + 1).clamp(min=0).sum() and bool(
        (2 * first_B < last_B).float().mean() > 0.5
    )
    boundary_B = last_B if often else first_B
    for boundary in boundary_B.unique().tolist():  # type: ignore[no-untyped-call]
        rows = (boundary_B == boundary).nonzero()[:, 0]
        if len(rows) > 1 and 0 < boundary < tokens:
            yield Questions(batch.take(rows), int(boundary))


def too_long(task: Task, length: int) -> bool:
    """Whether a length is longer than attention is written out for."""
    return tokens_at(task, length) > LONGEST


def tokens_at(task: Task, length: int) -> int:
    """Of a sequence; where the task does not say, of the longest of a few."""
    known = task.tokens(length)
    return known if known is not None else join(list(evaluation_set(task, length, 4, SEED))).tokens_BT.shape[1]
