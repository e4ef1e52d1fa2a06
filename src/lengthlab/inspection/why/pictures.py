"""What it looks like: the weights of every head in one sequence, and the way of its state, as rows of levels from 0 to 9.

Shapes: T tokens, H heads, D width, C answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from lengthlab.inspection.why.attention_aim import look
from lengthlab.inspection.why.parts import Parts
from lengthlab.inspection.why.pathways import right_samples, said
from lengthlab.inspection.why.samples import Questions, questions_at
from lengthlab.inspection.why.state_probe import Probe, outputs
from lengthlab.store.diagnosis import Picture
from lengthlab.tasks import Task

COLUMNS = 60
"""Of a row; where a sequence has more tokens, each stands for as many as fit, and shows the most of them."""
HEADS = 8
"""Rows of an attention at most: those heads that give the right place most."""
DRAWN = 40
"""Samples among which one that is right and one that is wrong are looked for."""
AXES = 3
"""Directions in which the way of a state is shown: those in which the means of answers differ most."""


def pictures_at(
    network: nn.Module, parts: Parts, task: Task, question: str, length: int, probe: Probe | None, recalls: bool
) -> list[Picture]:
    """At most four: attention where the question is one of recall, the state where there is a probe; right and wrong."""
    groups = questions_at(task, length, DRAWN)
    if not groups:
        return []
    group = max(groups, key=lambda each: len(each.batch.tokens_BT))
    said_BQ, wanted = said(network, group, task)
    right_B, asked_B = right_samples(said_BQ, wanted[question])
    found = []
    for right in (True, False):
        rows = (asked_B & (right_B == right)).nonzero()[:, 0].tolist()
        if not rows:
            continue
        if recalls and parts.weighed:
            found.append(_attention(network, parts, task, group, question, length, rows[0], right))
        if probe is not None:
            found.append(_state(network, parts, group, question, length, rows[0], right, probe))
    return found


def _attention(
    network: nn.Module, parts: Parts, task: Task, group: Questions, question: str, length: int, row: int, right: bool
) -> Picture:
    looked = look(network, parts, task, group, question)
    tokens = int(looked.at_B[row]) + 1
    place = int(looked.place_B[row])
    heads = [
        (f"{layer_name(layer)} head {head}", weights_BHT[row, head, :tokens])
        for layer, weights_BHT in looked.weights.items()
        for head in range(weights_BHT.shape[1])
    ]
    heads.sort(key=lambda each: -float(each[1][place]) if place >= 0 else 0.0)
    rows = tuple((name, levels(weights_T)) for name, weights_T in heads[:HEADS])
    return Picture("attention", question, length, right, tokens, rows, column_of(place, tokens) if place >= 0 else -1)


def layer_name(path: str) -> str:
    """The short name of an attention: the number of its block, where it has one.

    >>> layer_name("body.attention.0.residual.attend"), layer_name("body.reader")
    ('block 0', 'reader')
    """
    numbers = [piece for piece in path.split(".") if piece.isdigit()]
    return f"block {numbers[0]}" if numbers else path.rsplit(".", 1)[-1]


def _state(
    network: nn.Module, parts: Parts, group: Questions, question: str, length: int, row: int, right: bool, probe: Probe
) -> Picture:
    """Along the axes of the means, from the least mean to the greatest; what lies outside is drawn at the end."""
    tokens = int(group.asked(question)[0][row]) + 1
    one = Questions(group.batch.rows(slice(row, row + 1)), group.boundary)
    state_TD = probe.placed(outputs(network, parts, one)[0, :tokens])
    _, _, axes_KD = torch.linalg.svd(probe.mean_CD, full_matrices=False)
    rows = []
    for number, axis_D in enumerate(axes_KD[: min(AXES, len(probe.answer_C) - 1)]):
        mean_C = probe.mean_CD @ axis_D
        low, high = float(mean_C.min()), float(mean_C.max())
        share_T = ((state_TD @ axis_D - low) / max(high - low, 1e-9)).clamp(0, 1)
        rows.append((f"axis {number + 1}", levels(share_T, most=False)))
    return Picture("state", question, length, right, tokens, tuple(rows))


def levels(share_T: Tensor, most: bool = True) -> str:
    """Shares from 0 to 1 as digits; the greatest of those that stand together, or the last.

    >>> levels(torch.tensor([0.0, 0.05, 0.5, 1.0]))
    '0159'
    """
    tokens = len(share_T)
    if tokens > COLUMNS:
        edges = [round(tokens * column / COLUMNS) for column in range(COLUMNS + 1)]
        pieces: Sequence[Tensor] = [share_T[start:end] for start, end in pairwise(edges)]
        share_T = torch.stack([piece.max() if most else piece[-1] for piece in pieces])
    return "".join(str(min(9, int(share * 9 + 0.999) if most else round(share * 9))) for share in share_T.tolist())


def column_of(place: int, tokens: int) -> int:
    """Where a position stands in a row of levels.

    >>> column_of(5, 10), column_of(119, 120)
    (5, 59)
    """
    if tokens <= COLUMNS:
        return place
    edges = [round(tokens * column / COLUMNS) for column in range(COLUMNS + 1)]
    return next(column for column in range(COLUMNS) if edges[column] <= place < edges[column + 1])
