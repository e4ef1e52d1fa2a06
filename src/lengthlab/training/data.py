"""What a run reads, step by step: a function of its seed, the step and the phase, so there is no random state to keep.

Data is drawn for BLOCK steps at once, because drawing 50 batches costs a GPU hardly more than drawing one. Where the task
knows how many tokens its sequences have, each batch is one row of documents without padding.

Shapes: K steps of a block, B rows (one, if of documents), T tokens of a row, Q positions of a row at which something is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import RunFailed, require
from lengthlab.models.layout import Documents, Layout
from lengthlab.models.model import Network, position_limit
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import BLOCK as BLOCK
from lengthlab.spec.schedule import Phase
from lengthlab.spec.seeds import seed_for
from lengthlab.tasks import IGNORE, Batch, Mixture
from lengthlab.tasks.batch import merged
from lengthlab.tasks.lengths import spread

BUCKET = 32
"""Padded batches of a task that draws sequences of any number of tokens are as wide as the next multiple of this: a step that
is captured for one width serves for the others."""


@dataclass(frozen=True)
class StepData:
    """The data of a step: what is read, at which positions the model is asked (everywhere, if None), and the target there."""

    tokens_BT: Tensor
    query_BQ: Tensor | None
    target_BQ: Tensor
    position_BT: Tensor | None = None

    def layout(self, documents: Documents | None) -> Layout:
        return Layout(self.position_BT, self.query_BQ, documents)

    def map(self, change: Callable[[Tensor], Tensor]) -> StepData:
        """Every tensor changed."""
        query_BQ, position_BT = (None if x is None else change(x) for x in (self.query_BQ, self.position_BT))
        return StepData(change(self.tokens_BT), query_BQ, change(self.target_BQ), position_BT)

    @property
    def tensors(self) -> list[Tensor]:
        return [x for x in (self.tokens_BT, self.query_BQ, self.target_BQ, self.position_BT) if x is not None]


@dataclass(frozen=True)
class Block:
    """The data of K steps, each tensor with a leading K."""

    steps: StepData

    def step(self, k_1: Tensor) -> StepData:
        """One of them; k is a tensor so that a captured step can count for itself."""
        return self.steps.map(lambda x: x.index_select(0, k_1)[0])

    def fits(self, other: Block) -> bool:
        """Whether the other's data has the same shapes."""
        return [x.shape for x in self.steps.tensors] == [x.shape for x in other.steps.tensors]

    def copy_(self, other: Block) -> None:
        """Take over another block's data, in place."""
        for mine, theirs in zip(self.steps.tensors, other.steps.tensors, strict=True):
            mine.copy_(theirs)


class Data:
    """Draws the blocks of one phase of a run, on the device it trains on."""

    def __init__(self, run: Run, phase: Phase, network: nn.Module, device: torch.device, padded: bool = False) -> None:
        self.run = run
        self.task = run.task.weighted(phase.mixture) if isinstance(run.task, Mixture) and phase.mixture else run.task
        self.lengths = phase.lengths or run.lengths
        self.asks = phase.asks or run.task.questions
        self.documents = None if padded else documents_of(run, self.lengths, network, device)
        self.generator = torch.Generator(device=device)
        self._most: int | None = None
        self._asked_alike = False
        self._limit = position_limit(network)

    def block(self, number: int) -> Block:
        """The data of steps BLOCK * number and the following."""
        run = self.run
        self.generator.manual_seed(seed_for("data", run.seed) + number)
        n_B = torch.cat([spread(run.batch, self.lengths, self.generator) for _ in range(BLOCK)])
        batch = self.task.draw(n_B, self.generator)
        self._check_positions(batch)
        return Block(self._padded(batch) if self.documents is None else self._row(batch, self.documents))

    def _padded(self, batch: Batch) -> StepData:
        # The last token is only ever an answer, so the model need not read it.
        read = batch.tokens_BT.shape[1] - 1
        wide = read if self.run.task.tokens(self.lengths[1]) is not None else -(-read // BUCKET) * BUCKET

        def steps(x_BT: Tensor, fill: int = 0) -> Tensor:
            return F.pad(x_BT[:, :read], (0, wide - read), value=fill).reshape(BLOCK, self.run.batch, -1)

        most = self._most_asked(batch)
        position_KBT = None if batch.position_BT is None else steps(batch.position_BT)
        if 2 * most >= read:  # asked at most of its tokens, a sequence is asked at all of them
            target_BT = merged({question: batch.target[question] for question in self.asks})
            return StepData(steps(batch.tokens_BT), None, steps(target_BT, IGNORE), position_KBT)
        query_BQ, wanted = batch.queries(self.asks, most)
        shape = (BLOCK, self.run.batch, most)
        return StepData(steps(batch.tokens_BT), query_BQ.view(shape), merged(wanted).view(shape), position_KBT)

    def _row(self, batch: Batch, documents: Documents) -> StepData:
        drawn, known = batch.tokens_BT.shape[1], documents.longest + 1
        require(
            drawn == known,
            f"task '{self.run.task.name}' drew {drawn} tokens where its `tokens` says {known}: correct one of them",
        )

        def rows(x_BT: Tensor) -> Tensor:
            return x_BT[:, :-1].reshape(BLOCK, -1).index_select(1, documents.padded_N)[:, None]

        most = self._most_asked(batch)
        position_K1N = None if batch.position_BT is None else rows(batch.position_BT)
        if documents.number * most >= documents.tokens:
            target_BT = merged({question: batch.target[question] for question in self.asks})
            return StepData(rows(batch.tokens_BT), None, rows(target_BT), position_K1N)
        query_BQ, wanted = batch.queries(self.asks, most)
        query_KBQ = query_BQ.view(BLOCK, documents.number, -1) + documents.start_B[:, None]
        flat = (BLOCK, 1, -1)
        return StepData(rows(batch.tokens_BT), query_KBQ.view(flat), merged(wanted).view(flat), position_K1N)

    def _most_asked(self, batch: Batch) -> int:
        """At how many positions a sample is asked at most. Where the task knows its tokens, and the first block is asked alike
        at every step, so are the others, and the host waits for the device only once.
        """
        if self._most is None:
            asked_KB = batch.asked(self.asks).view(BLOCK, -1)
            alike = bool((asked_KB == asked_KB[:1]).all())
            self._asked_alike = alike and self.run.task.tokens(self.lengths[1]) is not None
        if self._most is None or not self._asked_alike:
            self._most = max(1, batch.most_asked(self.asks))
        return self._most

    def _check_positions(self, batch: Batch) -> None:
        """A table that is too short would end in an error that takes the GPU down, and other runs with it."""
        if batch.position_BT is not None and self._limit is not None:
            largest = int(batch.position_BT.max())
            if largest >= self._limit:
                raise RunFailed(f"position id {largest} is too large for a table of {self._limit}: raise the model's limit")


def documents_of(run: Run, lengths: tuple[int, int], network: nn.Module, device: torch.device) -> Documents | None:
    """How every batch lies in a row, or None where that is not the same at every step or the network is not of our parts."""
    shortest, longest = lengths
    if run.batch < longest - shortest + 1 or not isinstance(network, Network):
        return None
    tokens = [run.task.tokens(n) for n in spread(run.batch, lengths, torch.Generator()).tolist()]
    read = [each - 1 for each in tokens if each is not None]
    return Documents(read, device) if len(read) == len(tokens) and read == sorted(read) else None
