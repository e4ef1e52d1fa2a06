"""How sharp a trained network's attention is at a length, and how sharp it should be: entropies, and the β that suits it.

Shapes: B samples, T tokens, V vocabulary, H heads, Q queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.errors import nearest, require, require_whole
from lengthlab.evaluation.accuracy import evaluation_set, together
from lengthlab.models.attention.sharpening import sharpened
from lengthlab.models.attention.temperature import AdaptiveTemperature, entropy
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.tasks import IGNORE, Batch, Task

LARGEST = 16.0
"""β is searched from 1 to here."""
POINTS, ROUNDS = 9, 3
"""So many β at a time, even steps of their logarithm, each time between the neighbours of the best: 2 % apart in the end."""


@dataclass(frozen=True)
class Pair:
    """The mean entropy of a head's weights at a length, and the β that suits the network there."""

    length: int
    attention: str
    head: int
    entropy: float
    beta: float


@dataclass(frozen=True)
class Probe:
    """A trained network at one question of a task, on samples other than those that accuracy is counted on.

    The network is copied for every probe: its weights, its mode and the random state stay as they are.

    >>> from lengthlab.models import transformer
    >>> from lengthlab.tasks import ModuloRecall
    >>> task = ModuloRecall(modulus=2, keys=8)
    >>> network = transformer(width=8, blocks=1, heads=2).build(task.vocabulary)
    >>> [pair.head for pair in Probe(network, task, "recall", samples=10).pairs(length=4)]
    [0, 1]
    """

    network: nn.Module
    task: Task
    question: str
    samples: int
    seed: int = 1

    def __post_init__(self) -> None:
        asked = self.task.questions
        known = self.question in asked
        require(known, f"task '{self.task.name}' has no question '{self.question}'; {nearest(self.question, asked)}")
        require_whole(self.samples, "samples", 1)
        require(self.seed != 0, "accuracy is counted on the samples of seed 0: take another one here")

    def pairs(self, length: int) -> list[Pair]:
        """One for every head of every attention that is at work."""
        beta = search(lambda beta: self.loss(length, beta))
        return [Pair(length, *head, h, beta) for head, h in self.entropies(length).items()]

    @torch.no_grad()
    def loss(self, length: int, beta: float) -> float:
        """Mean over the tokens of the answers, with one β everywhere, which is a temperature that does not adapt."""
        network = sharpened(self.network, AdaptiveTemperature((beta,), flat=0.0)).eval()
        total, tokens = 0.0, 0
        for batch in self._batches(length):
            query_BQ, target_BQ = self._asked(batch)
            logits_BQV = logits(network, batch.tokens_BT[:, :-1], Layout(_read(batch), query_BQ))
            asked = {"ignore_index": IGNORE, "reduction": "sum"}
            total += float(F.cross_entropy(logits_BQV.flatten(0, 1).float(), target_BQ.flatten(), **asked))  # type: ignore[arg-type]
            tokens += int((target_BQ != IGNORE).sum())
        self._require_asked(tokens, length)
        return total / tokens

    @torch.no_grad()
    def entropies(self, length: int) -> dict[tuple[str, int], float]:
        """Mean over the positions that answer, by attention and head."""
        network = sharpened(self.network, _Probing()).eval()
        probes = {name: module for name, module in network.named_modules() if isinstance(module, _Probe)}
        tokens = 0
        for batch in self._batches(length):
            query_BQ, target_BQ = self._asked(batch)
            for probe in probes.values():
                probe.query_BQ = query_BQ.masked_fill(target_BQ == IGNORE, -1)
            logits(network, batch.tokens_BT[:, :-1], Layout(_read(batch), query_BQ))
            tokens += int((target_BQ != IGNORE).sum())
        self._require_asked(tokens, length)
        heads = {name.removesuffix(".scores.weights"): probe.total_H for name, probe in probes.items() if probe.asked}
        return {(name, head): h / tokens for name, total_H in heads.items() for head, h in enumerate(total_H.tolist())}

    def _require_asked(self, tokens: int, length: int) -> None:
        asked = f"none of {self.samples} samples of length {length} asks '{self.question}'"
        require(tokens > 0, f"{asked}, so no temperature can be fitted to it")

    def _asked(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Where the question is asked, and what it wants there."""
        query_BQ, wanted = batch.queries([self.question], max(1, batch.most_asked([self.question])))
        return query_BQ, wanted[self.question]

    def _batches(self, length: int) -> Iterator[Batch]:
        device = next(self.network.parameters()).device
        yield from together(evaluation_set(self.task, length, self.samples, self.seed), device)


@dataclass(frozen=True)
class _Probing:
    def build(self, heads: int, width: int) -> nn.Module:
        return _Probe(heads)


class _Probe(nn.Module):
    """Softmax that adds up the entropies of its weights at the positions that answer."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.query_BQ = torch.empty(0)
        self.total_H = torch.zeros(heads, dtype=torch.float64)
        self.asked = False  # stays so where attention is off

    def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
        weights_BHQT = scores_BHQT.float().masked_fill(~seen_BHQT, -torch.inf).softmax(dim=-1)
        # All attentions but the last have a query at every position, a few at a time: how many tokens it sees tells which.
        here_BHQ = (seen_BHQT.sum(dim=-1)[..., None] == self.query_BQ[:, None, None] + 1).any(dim=-1)
        self.total_H += (entropy(weights_BHQT)[..., 0] * here_BHQ).sum(dim=(0, 2)).cpu().double()
        self.asked = True
        return weights_BHQT.to(scores_BHQT.dtype)


def _read(batch: Batch) -> Tensor | None:
    """The position ids of what is read, where the task has its own."""
    return None if batch.position_BT is None else batch.position_BT[:, :-1]


def search(loss: Callable[[float], float]) -> float:
    """The β from 1 to `LARGEST` with the least loss, and the smaller of two that are alike.

    >>> round(search(lambda beta: (beta - 3) ** 2), 1), search(lambda beta: beta), search(lambda beta: 0)
    (3.0, 1.0, 1.0)
    """
    low, high, found = 1.0, LARGEST, 1.0
    for _ in range(ROUNDS):
        betas = [low * math.pow(high / low, point / (POINTS - 1)) for point in range(POINTS)]
        losses = list(map(loss, betas))
        best = losses.index(min(losses))
        low, high, found = betas[max(best - 1, 0)], betas[min(best + 1, POINTS - 1)], betas[best]
    return found
