"""Is the state right: a linear probe of what recurrences say where a question is asked, fitted on short sequences.

The probe is linear discriminant analysis: states are whitened by how they scatter around the mean of their answer, and belong
to the nearest mean. q is measured in the same space. How far a state has gone from its mean towards the border to another
answer is 1 at the border; q at a length is what a tenth of the samples exceed, so the probe is right in less than 0.90 where q
is above 1.

Shapes: N samples, D width of all recurrences together, C answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.inspection.why.parts import Parts
from lengthlab.inspection.why.pathways import AT_ONCE
from lengthlab.inspection.why.samples import TOKENS, Questions, questions_at
from lengthlab.models.model import logits
from lengthlab.spec.seeds import seed_for
from lengthlab.store.diagnosis import StateAt
from lengthlab.tasks import IGNORE, Task

SHRINKAGE = 0.1
"""The scatter is taken to be so much alike in all directions: what hardly varies within the range may vary beyond it."""
EXCEEDED = 0.9
"""Of the samples are nearer than q."""
MOST_ANSWERS = 64
FITTED, TESTED = 3000, 500
"""Samples that a probe is fitted to, over all lengths of the training range, and those it is tested on at each length."""
SHORT_TESTED, SHORT_TOKENS = 2000, 2**17
"""At lengths of the training range, from which much is foretold, more samples."""


@dataclass(frozen=True)
class Probe:
    """Answers, the map that whitens states, and the mean of each answer behind it."""

    answer_C: Tensor
    centre_D: Tensor
    whiten_DD: Tensor
    mean_CD: Tensor

    @classmethod
    def fitted(cls, state_ND: Tensor, wanted_N: Tensor) -> Probe:
        """
        >>> probe = Probe.fitted(torch.tensor([[0.0], [0.2], [1.0], [1.2]]), torch.tensor([7, 7, 8, 8]))
        >>> probe.says(torch.tensor([[0.3], [0.9]])).tolist()
        [7, 8]
        """
        state_ND = state_ND.double()
        answer_C, number_N = wanted_N.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        mean_CD = torch.stack([state_ND[number_N == number].mean(dim=0) for number in range(len(answer_C))])
        inside_ND = state_ND - mean_CD[number_N]
        scatter_DD = inside_ND.T @ inside_ND / len(inside_ND)
        width = scatter_DD.shape[0]
        alike = scatter_DD.diagonal().mean().clamp(min=1e-12)
        scatter_DD = (1 - SHRINKAGE) * scatter_DD + SHRINKAGE * alike * torch.eye(width, dtype=torch.float64)
        lower_DD = torch.linalg.cholesky(scatter_DD)
        whiten_DD = torch.linalg.solve_triangular(lower_DD, torch.eye(width, dtype=torch.float64), upper=False).T
        centre_D = mean_CD.mean(dim=0)
        return cls(answer_C, centre_D, whiten_DD, (mean_CD - centre_D) @ whiten_DD)

    def placed(self, state_ND: Tensor) -> Tensor:
        """States in the space of the means."""
        return (state_ND.double() - self.centre_D) @ self.whiten_DD

    def says(self, state_ND: Tensor) -> Tensor:
        """wanted_N, as the probe would have it."""
        return self.answer_C[torch.cdist(self.placed(state_ND), self.mean_CD).argmin(dim=1)]

    def way(self, state_ND: Tensor, wanted_N: Tensor) -> Tensor:
        """How far each state has gone from the mean of its answer to the nearest border: 0 at the mean, 1 at the border."""
        number_N = (wanted_N[:, None] == self.answer_C).int().argmax(dim=1)
        far_NC = torch.cdist(self.placed(state_ND), self.mean_CD) ** 2
        apart_NC = torch.cdist(self.mean_CD, self.mean_CD)[number_N] ** 2
        gone_NC = 1 - (far_NC - far_NC.gather(1, number_N[:, None])) / apart_NC.clamp(min=1e-12)
        own_NC = torch.arange(len(self.answer_C)) == number_N[:, None]
        return gone_NC.masked_fill(own_NC, -torch.inf).amax(dim=1)

    def q(self, state_ND: Tensor, wanted_N: Tensor) -> float:
        """What a tenth of the samples exceed on their way."""
        known_N = (wanted_N[:, None] == self.answer_C).any(dim=1)
        way_N = self.way(state_ND, wanted_N).where(known_N, 2.0)  # an answer that the probe never met is none it could give
        return float(way_N.quantile(EXCEEDED))


def states_at(network: nn.Module, parts: Parts, groups: Sequence[Questions], question: str) -> tuple[Tensor, Tensor]:
    """state_ND and wanted_N where a question is asked: outputs of all recurrences, side by side."""
    states, wanted = [], []
    for group in groups:
        for part in _pieces(group):
            at_B, wanted_B = part.asked(question)
            state_BD = outputs_at(network, parts, part, at_B)
            states.append(state_BD[wanted_B != IGNORE])
            wanted.append(wanted_B[wanted_B != IGNORE])
    return torch.cat(states), torch.cat(wanted)


def outputs_at(network: nn.Module, parts: Parts, part: Questions, at_B: Tensor) -> Tensor:
    """state_BD at one position of each sample, on the CPU. What comes after recurrences is computed there alone."""
    heard = _heard(network, parts, part, at_B[:, None])
    at_B11 = at_B[:, None, None]
    picked = [out.gather(1, at_B11.expand(-1, 1, out.shape[2])) if out.shape[1] > 1 else out for out in heard]
    return torch.cat(picked, dim=-1)[:, 0]


def outputs(network: nn.Module, parts: Parts, part: Questions) -> Tensor:
    """state_BTD: what all recurrences say at every position, on the CPU."""
    return torch.cat(_heard(network, parts, part, None), dim=-1)


@torch.no_grad()
def _heard(network: nn.Module, parts: Parts, part: Questions, query_BQ: Tensor | None) -> list[Tensor]:
    """Of every recurrence everywhere, or, of one that nothing mixes tokens after, where it is asked."""
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    layout = Questions(part.batch.to(device), part.boundary).layout
    with _listening(parts) as heard:
        wanted = layout if query_BQ is None else replace(layout, query_BQ=query_BQ.to(device))
        logits(network, part.read.to(device), wanted)
    return [heard[name].float().cpu() for name in parts.recurrences]


@contextmanager
def _listening(parts: Parts) -> Iterator[dict[str, Tensor]]:
    """The last outputs of every recurrence, samples first."""
    heard: dict[str, Tensor] = {}

    def listener(name: str) -> Any:
        def listen(module: nn.Module, inputs: Any, given: Any) -> None:
            out = given[0] if isinstance(given, tuple) else given
            time_first = isinstance(module, nn.RNNBase) and not module.batch_first
            heard[name] = out.transpose(0, 1) if time_first else out

        return listen

    handles = [module.register_forward_hook(listener(name)) for name, module in parts.recurrences.items()]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def _pieces(group: Questions) -> Iterator[Questions]:
    rows, tokens = group.read.shape
    for piece in torch.split(torch.arange(rows), max(1, AT_ONCE // tokens)):
        yield Questions(group.batch.take(piece), group.boundary)


def fit_probe(network: nn.Module, parts: Parts, task: Task, question: str, trained: tuple[int, int]) -> Probe | None:
    """On lengths of the training range alone; None where there is no recurrence, or the answers are too many for a probe."""
    if not parts.recurrences:
        return None
    lengths = spread_lengths(max(trained[0], task.shortest), trained[1], most=12)
    groups = [
        group for length in lengths for group in questions_at(task, length, FITTED // len(lengths), _seed("fit"), SHORT_TOKENS)
    ]
    if not groups:
        return None
    state_ND, wanted_N = states_at(network, parts, groups, question)
    answers = len(wanted_N.unique())  # type: ignore[no-untyped-call]
    return Probe.fitted(state_ND, wanted_N) if 2 <= answers <= MOST_ANSWERS else None


def state_at(
    network: nn.Module,
    parts: Parts,
    task: Task,
    question: str,
    probe: Probe,
    length: int,
    samples: int = TESTED,
    tokens: int = TOKENS,
) -> StateAt:
    """The probe at a length, on samples that it was not fitted to."""
    groups = questions_at(task, length, samples, _seed("test"), tokens)
    state_ND, wanted_N = states_at(network, parts, groups, question)
    right = float((probe.says(state_ND) == wanted_N).double().mean())
    return StateAt(length, question, len(wanted_N), right, probe.q(state_ND, wanted_N))


def spread_lengths(first: int, last: int, most: int) -> list[int]:
    """So many lengths at most, evenly spread over a range, both ends included.

    >>> spread_lengths(1, 25, 4), spread_lengths(3, 4, 12)
    ([1, 9, 17, 25], [3, 4])
    """
    number = min(most, last - first + 1)
    steps = max(1, number - 1)
    return list(dict.fromkeys(round(first + (last - first) * place / steps) for place in range(number)))


def _seed(purpose: str) -> int:
    return seed_for("why", purpose)
