"""Who carries an answer: how many are still right with one of the two pathways cut where the questions begin.

Shapes: B samples, T tokens, Q positions of a sample at which something is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from lengthlab.evaluation.accuracy import layout_of
from lengthlab.inspection.why.cuts import attention_cut, state_cut
from lengthlab.inspection.why.parts import Parts
from lengthlab.inspection.why.samples import SAMPLES, Questions, questions_at
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.store.diagnosis import ANOTHER, ATTENTION, RESET, ZEROS, Pathways
from lengthlab.tasks import IGNORE, Task

AT_ONCE = 2**15
"""Tokens of a forward pass."""


@torch.no_grad()
def pathways_at(
    network: nn.Module, parts: Parts, task: Task, length: int, reset_at: int | None = None, samples: int = SAMPLES
) -> list[Pathways]:
    """For every question. `reset_at`: the longest training length; where that is less than the length, the state is also cut
    there. The network is in eval mode and looked at only.

    >>> from lengthlab.inspection.why.parts import parts_of
    >>> from lengthlab.models import lstm
    >>> from lengthlab.tasks import modulo
    >>> task = modulo(modulus=2, keys=8)
    >>> network = lstm(width=8).build(task.vocabulary).eval()
    >>> (found,) = pathways_at(network, parts_of(network), task, length=6, reset_at=3, samples=10)
    >>> sorted(found.cut), found.attention_share
    (['another', 'reset', 'zeros'], 0.0)
    """
    groups = questions_at(task, length, samples)
    early = _tokens_read(task, reset_at) if reset_at is not None and reset_at < length else None
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for group in groups:
        for name, cut in _cuts(parts, group, early).items():
            with cut:
                said_BQ, wanted = said(network, group, task)
            for question, target_BQ in wanted.items():
                right_B, asked_B = right_samples(said_BQ, target_BQ)
                right, asked = totals.get((question, name), (0, 0))
                totals[question, name] = (right + int(right_B.sum()), asked + int(asked_B.sum()))
    chance = task.chances(length)
    return [_row(length, question, chance.get(question, 0.0), totals) for question in _asked(task, totals)]


def _cuts(parts: Parts, group: Questions, early: int | None) -> Mapping[str, AbstractContextManager[None]]:
    found: dict[str, AbstractContextManager[None]] = {"": nullcontext()}
    if parts.weighed or parts.blocks or parts.foreign:
        found[ATTENTION] = attention_cut(parts, group.boundary, shared_first(group), group.read.shape[1])
    if parts.recurrences:
        found[ANOTHER] = state_cut(parts, group.boundary, another=True)
        found[ZEROS] = state_cut(parts, group.boundary, another=False)
        if early is not None and early < group.boundary:
            found[RESET] = state_cut(parts, early, another=False)
    return found


def shared_first(group: Questions) -> bool:
    """Whether all sequences begin with one token, which so tells nothing."""
    first_B = group.read[:, 0]
    return bool((first_B == first_B[0]).all())


def _tokens_read(task: Task, length: int) -> int | None:
    """How many tokens of a sequence of the longest training length come before its first question."""
    groups = questions_at(task, length, samples=8)
    return groups[0].boundary if groups else None


def said(network: nn.Module, group: Questions, task: Task) -> tuple[Tensor, dict[str, Tensor]]:
    """said_BQ where a sample is asked, and what each question wants there, on the CPU; some samples at a time."""
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    rows, tokens = group.read.shape
    pieces = -(-rows // max(2, AT_ONCE // tokens))
    layout, wanted = layout_of(group.batch, task.questions)
    index_BQ = layout.index(tokens, torch.device("cpu"))
    found = []
    for piece in torch.arange(rows).chunk(max(1, min(pieces, rows // 2))):  # one alone has no other to change places with
        some = Layout(_some(layout.position_BT, piece, device), _some(layout.query_BQ, piece, device))
        found.append(logits(network, group.read[piece].to(device), some).argmax(dim=-1).cpu())
    from_boundary = {name: target_BQ.where(index_BQ >= group.boundary, IGNORE) for name, target_BQ in wanted.items()}
    return torch.cat(found), from_boundary


def _some(x_BT: Tensor | None, rows: Tensor, device: torch.device) -> Tensor | None:
    return None if x_BT is None else x_BT[rows].to(device)


def right_samples(said_BQ: Tensor, target_BQ: Tensor) -> tuple[Tensor, Tensor]:
    """right_B and asked_B: whether every token of an answer is right, and whether there is one."""
    asked_BQ = target_BQ != IGNORE
    return ((said_BQ == target_BQ) | ~asked_BQ).all(dim=1) & asked_BQ.any(dim=1), asked_BQ.any(dim=1)


def _asked(task: Task, totals: Mapping[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    yield from (question for question in task.questions if totals.get((question, ""), (0, 0))[1])


def _row(length: int, question: str, chance: float, totals: Mapping[tuple[str, str], tuple[int, int]]) -> Pathways:
    shares = {name: right / asked for (each, name), (right, asked) in totals.items() if each == question and asked}
    whole = shares.pop("")
    return Pathways(length, question, totals[question, ""][1], chance, whole, shares)


def attention_share(rows: Sequence[Pathways], question: str, length: int) -> float | None:
    """At a length that was measured."""
    found = [row for row in rows if (row.question, row.length) == (question, length)]
    return found[0].attention_share if found else None
