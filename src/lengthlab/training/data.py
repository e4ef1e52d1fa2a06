"""What a run reads, step by step: a function of its seed, the step and the phase, so there is no random state to keep.

Data is drawn for BLOCK steps at once, because drawing 50 batches costs a GPU hardly more than drawing one. Where the task
knows how many tokens its sequences have, each batch is one row of documents without padding.

Shapes: K steps of a block, B rows (one, if of documents), T tokens of a row, Q positions of a row at which something is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.layout import Documents, Layout
from lengthlab.models.model import Network, position_limit, require_position
from lengthlab.registry import is_ours
from lengthlab.spec.duration import BLOCK as BLOCK
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase
from lengthlab.spec.seeds import seed_for
from lengthlab.tasks import IGNORE, Batch, Mixture, Task
from lengthlab.tasks.batch import merged, pad_tokens
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

    def laid_out(self, layout: Layout) -> Layout:
        """What is the same for all steps, with positions and queries of this one."""
        return replace(layout, position_BT=self.position_BT, query_BQ=self.query_BQ)

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
    """Draws the blocks of one phase of a run, on the device it trains on, which it has to itself unless it is `shared`."""

    def __init__(
        self, run: Run, phase: Phase, network: nn.Module, device: torch.device, padded: bool = False, shared: bool = False
    ) -> None:
        self.run = run
        self.task = run.task_in(phase)
        self.lengths = phase.lengths or run.lengths
        self.asks = phase.asks or run.task.questions
        self.padded_because = "it was asked for" if padded else padding_reason(self.task, run.batch, self.lengths, network)
        documents = None if self.padded_because else documents_of(self.task, run.batch, self.lengths, device)
        self.layout = Layout(documents=documents, distractors=phase.distractors, shared=shared)
        self.generator = torch.Generator(device=device)
        self._most: int | None = None
        self._lengths_hold = False
        self._limit = position_limit(network)

    @property
    def documents(self) -> Documents | None:
        """In whose row a batch lies; None if it is padded."""
        return self.layout.documents

    def block(self, number: int) -> Block:
        """The data of steps BLOCK * number and the following."""
        run = self.run
        self.generator.manual_seed(seed_for("data", run.seed) + number)
        n_B = torch.cat([spread(run.batch, self.lengths, self.generator) for _ in range(BLOCK)])
        batch = self.task.draw_training(n_B, self.generator)
        self._check_positions(batch)
        return Block(self._padded(batch) if self.documents is None else self._row(batch, self.documents))

    def _padded(self, batch: Batch) -> StepData:
        # The last token is only ever an answer, so the model need not read it.
        read = batch.tokens_BT.shape[1] - 1
        wide = read if self.task.tokens(self.lengths[1]) is not None else -(-read // BUCKET) * BUCKET

        def steps(x_BT: Tensor, fill: int = 0) -> Tensor:
            wide_BT = pad_tokens(x_BT[:, :read], 0, wide - read, fill)
            return wide_BT.reshape(BLOCK, self.run.batch, *wide_BT.shape[1:])

        most = self._most_asked(batch)
        position_KBT = None if batch.position_BT is None else steps(batch.position_BT)
        if 2 * most >= read:  # asked at most of its tokens, a sequence is asked at all of them
            target_BT = merged({question: batch.target[question] for question in self.asks})
            return StepData(steps(batch.tokens_BT), None, steps(target_BT, IGNORE), position_KBT)
        query_BQ, wanted = batch.queries(self.asks, most)
        shape = (BLOCK, self.run.batch, most)
        return StepData(steps(batch.tokens_BT), query_BQ.view(shape), merged(wanted).view(shape), position_KBT)

    def _row(self, batch: Batch, documents: Documents) -> StepData:
        if not self._lengths_hold:
            self._check_lengths(batch, documents)

        def rows(x_BT: Tensor) -> Tensor:
            flat = x_BT[:, :-1].reshape(BLOCK, -1, *x_BT.shape[2:])
            return flat.index_select(1, documents.padded_N)[:, None]

        most = self._most_asked(batch)
        position_K1N = None if batch.position_BT is None else rows(batch.position_BT)
        if documents.number * most >= documents.tokens:
            target_BT = merged({question: batch.target[question] for question in self.asks})
            return StepData(rows(batch.tokens_BT), None, rows(target_BT), position_K1N)
        query_BQ, wanted = batch.queries(self.asks, most)
        query_KBQ = documents.outside(query_BQ.view(BLOCK, documents.number, -1))
        flat = (BLOCK, 1, -1)
        return StepData(rows(batch.tokens_BT), query_KBQ.view(flat), merged(wanted).view(flat), position_K1N)

    def _most_asked(self, batch: Batch) -> int:
        """At how many positions a sample is asked at most. Where that is the same in every block, as the task says, the host
        waits for the device only once.
        """
        if self._most is None or not self.task.asks_alike:
            self._most = max(1, batch.most_asked(self.asks))
        return self._most

    def _check_lengths(self, batch: Batch, documents: Documents) -> None:
        """Documents lie in a row by what the task says of their lengths: held once against what it draws, of a mixture in every
        block, because one may lack a task.
        """
        drawn_KB = batch.length_B.view(BLOCK, -1)
        known_KB = (documents.length_B + 1).expand_as(drawn_KB)
        wrong_KB = drawn_KB != known_KB
        drawn, known = batch.tokens_BT.shape[1], documents.longest + 1
        if wrong_KB.any():
            drawn, known = int(drawn_KB[wrong_KB][0]), int(known_KB[wrong_KB][0])
        require(
            drawn == known,
            f"task '{self.run.task.name}' drew {drawn} tokens where its `tokens` says {known}: correct one of them",
        )
        self._lengths_hold = not isinstance(self.task, Mixture)

    def _check_positions(self, batch: Batch) -> None:
        if batch.position_BT is not None and self._limit is not None:
            require_position(int(batch.position_BT.max()), self._limit)


def padding_reason(task: Task, batch: int, lengths: tuple[int, int], network: nn.Module) -> str:
    """Why batches cannot lie in rows of documents that are the same at every step; empty where they can."""
    shortest, longest = lengths
    if not isinstance(network, Network):
        return f"{type(network).__name__} is not composed of parts"
    if batch < longest - shortest + 1:
        return f"a batch of {batch} has not every length from {shortest} to {longest}"
    tokens = _tokens(task, batch, lengths)
    if None in tokens and is_ours(type(task)):
        return f"sequences of task '{task.name}' that are as long have unequally many tokens"
    if None in tokens:
        return f"task '{task.name}' does not say how many tokens its sequences have (Task.tokens)"
    ascending = tokens == sorted(tokens)  # type: ignore[type-var]
    return "" if ascending else f"longer sequences of task '{task.name}' have fewer tokens than shorter ones"


def documents_of(task: Task, batch: int, lengths: tuple[int, int], device: torch.device) -> Documents:
    """How every batch lies in a row."""
    return Documents([tokens - 1 for tokens in _tokens(task, batch, lengths) if tokens is not None], device)


def _tokens(task: Task, batch: int, lengths: tuple[int, int]) -> list[int | None]:
    return [task.tokens(n) for n in spread(batch, lengths, torch.Generator()).tolist()]
