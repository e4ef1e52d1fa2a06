"""What a run reads, step by step: a function of its seed and the step alone, so there is no random state to keep.

Data is drawn for BLOCK steps at once, because drawing 50 batches costs a GPU hardly more than drawing one. Where the task
knows how many tokens its sequences have, each batch is one row of documents without padding.

Shapes: K steps of a block, B rows (one, if of documents), T tokens of a row, Q positions asked for in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.models.documents import Documents, reads_documents
from lengthlab.models.model import Network
from lengthlab.run import Run
from lengthlab.schedule import BLOCK as BLOCK
from lengthlab.seeds import seed_for
from lengthlab.tasks import Batch
from lengthlab.tasks.lengths import spread


@dataclass(frozen=True)
class Lesson:
    """The data of a step: what is read, where the model must speak, and what it must say there, by question."""

    tokens_BT: Tensor
    at_BQ: dict[str, Tensor]
    say_BQ: dict[str, Tensor]

    def asked(self, questions: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Positions and answers of these questions, document by document."""
        at = torch.stack([self.at_BQ[question] for question in questions], dim=2)
        say = torch.stack([self.say_BQ[question] for question in questions], dim=2)
        return at.flatten(1), say.flatten(1)


@dataclass(frozen=True)
class Block:
    """The lessons of K steps, each tensor with a leading K."""

    lessons: Lesson

    def lesson(self, k_1: Tensor) -> Lesson:
        """One of them; k is a tensor so that a captured step can count for itself."""

        def chosen(x: Tensor) -> Tensor:
            return x.index_select(0, k_1)[0]

        at, say = self.lessons.at_BQ, self.lessons.say_BQ
        return Lesson(chosen(self.lessons.tokens_BT), *({q: chosen(x) for q, x in part.items()} for part in (at, say)))

    def copy_(self, other: Block) -> None:
        """Take over another block's data, in place."""
        self.lessons.tokens_BT.copy_(other.lessons.tokens_BT)
        for question, at in other.lessons.at_BQ.items():
            self.lessons.at_BQ[question].copy_(at)
            self.lessons.say_BQ[question].copy_(other.lessons.say_BQ[question])


class Feed:
    """Draws the blocks of a run, on the device it trains on."""

    def __init__(self, run: Run, device: torch.device, documents: Documents | None) -> None:
        self.run = run
        self.documents = documents
        self.generator = torch.Generator(device=device)

    def block(self, number: int) -> Block:
        """The data of steps BLOCK * number and the following."""
        run = self.run
        self.generator.manual_seed(seed_for("data", run.seed) + number)
        n_B = torch.cat([spread(run.batch, run.lengths, self.generator) for _ in range(BLOCK)])
        batch = run.task.draw(n_B, self.generator)
        return Block(self._padded(batch) if self.documents is None else self._row(batch, self.documents))

    def _padded(self, batch: Batch) -> Lesson:
        # The last token is only ever an answer, so the model need not read it.
        tokens = batch.tokens_BT[:, :-1].reshape(BLOCK, self.run.batch, -1)
        at = {question: answer.position_B.view(BLOCK, -1, 1) for question, answer in batch.answers.items()}
        return Lesson(tokens, at, _said(batch, (BLOCK, -1, 1)))

    def _row(self, batch: Batch, documents: Documents) -> Lesson:
        drawn, said = batch.tokens_BT.shape[1], documents.longest + 1
        require(
            drawn == said,
            f"task '{self.run.task.name}' drew {drawn} tokens where its `tokens` says {said}: correct one of them",
        )
        tokens = batch.tokens_BT[:, :-1].reshape(BLOCK, -1).index_select(1, documents.place_N)[:, None]
        at = {
            question: (answer.position_B.view(BLOCK, -1) + documents.start_B)[:, None]
            for question, answer in batch.answers.items()
        }
        return Lesson(tokens, at, _said(batch, (BLOCK, 1, -1)))


def _said(batch: Batch, shape: tuple[int, ...]) -> dict[str, Tensor]:
    return {question: answer.token_B.view(shape) for question, answer in batch.answers.items()}


def documents_of(run: Run, network: nn.Module, device: torch.device) -> Documents | None:
    """How every batch of a run lies in a row, or None where that is not the same at every step or not for this network."""
    shortest, longest = run.lengths
    if run.batch < longest - shortest + 1 or run.task.tokens(longest) is None:
        return None
    if not isinstance(network, Network) or not reads_documents(network.body):
        return None
    said = [run.task.tokens(n) for n in spread(run.batch, run.lengths, torch.Generator()).tolist()]
    lengths = [tokens - 1 for tokens in said if tokens is not None]
    if len(lengths) < len(said) or lengths != sorted(lengths):
        return None
    return Documents(lengths, device)
