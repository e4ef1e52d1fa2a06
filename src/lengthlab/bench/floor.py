"""The arithmetic floor: how many floating-point operations a training step cannot do without.

Counted are the matrix products of forward and backward pass, for the tokens that some answer depends on. What is left out
(norms, softmax, gates, the optimizer) costs memory traffic rather than arithmetic, so the floor is a bound from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lengthlab.bench.case import Case, Shape
from lengthlab.spec.schedule import Covers

PASSES = 3
"""A product forward is two backward: one for its input and one for its weight."""


@dataclass(frozen=True)
class Reading:
    """What is read in a step. `pairs` are of a query and a key that it may look at: in any attention, and in the last one,
    where only the positions asked for have a query.
    """

    sequences: float
    tokens: float
    asked: float
    pairs: float
    asked_pairs: float


def padded(batch: int, tokens: int) -> Reading:
    """As the textbook loop reads: all positions of all samples to the end, with every pair of them computed."""
    return Reading(batch, batch * tokens, batch * tokens, batch * tokens**2, batch * tokens**2)


def needed(case: Case) -> Reading:
    """On average over lengths: each sequence to the last position asked for, and nothing ahead of a query.

    >>> import lengthlab as ll
    >>> from lengthlab.bench.case import joint
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=32), ll.models.lstm(8), ll.end_to_end(5), lengths=(1, 3), batch=6)
    >>> needed(joint(run)).tokens  # 7, 9 and 11 tokens, two of each
    54.0
    """
    shortest, longest = case.run.lengths
    n_N = torch.arange(shortest, longest + 1)
    batch = case.task.draw(n_N, torch.Generator())
    seen_NQ = batch.queries(case.asks, most=len(case.asks))[0] + 1
    tokens_N = seen_NQ.amax(dim=1)
    each = case.run.batch / len(n_N)
    return Reading(
        sequences=case.run.batch,
        tokens=each * int(tokens_N.sum()),
        asked=each * seen_NQ.numel(),
        pairs=each * int((tokens_N * (tokens_N + 1)).sum()) / 2,
        asked_pairs=each * int(seen_NQ.sum()),
    )


def flops(shape: Shape, vocabulary: int, reading: Reading, off: Covers | None = None) -> float:
    """Floating-point operations of a step, forward and backward.

    >>> lstm = Shape("lstm", width=4)
    >>> flops(lstm, vocabulary=10, reading=padded(batch=1, tokens=1))  # four gates read the input, ten logits are spoken
    624
    """
    lstms = {"transformer": 0, "sandwich": 2}.get(shape.kind, 1)
    forward = lstms * _recurrence(shape.width, reading) + 2 * shape.width * vocabulary * reading.asked
    if off is None and shape.blocks:
        on_top = shape.kind not in ("lstm-on-attention", "sandwich")
        forward += (shape.blocks - on_top) * _block(shape, reading) + on_top * _last_block(shape, reading)
    return PASSES * forward


def flops_of(case: Case) -> float:
    """What one step of a case cannot do without."""
    return flops(case.shape, case.task.vocabulary, needed(case), case.off)


def _recurrence(width: int, reading: Reading) -> float:
    """Four gates read the input, and the state, where there is one before."""
    return 8 * width**2 * (2 * reading.tokens - reading.sequences)


def _block(shape: Shape, reading: Reading) -> float:
    """Queries, keys, values and output; the MLP; scores, and what they weigh."""
    maps = (8 + 4 * shape.mlp) * shape.width**2 * reading.tokens
    return maps + 4 * shape.width * reading.pairs


def _last_block(shape: Shape, reading: Reading) -> float:
    """The same where only keys and values are needed of every token."""
    maps = 4 * shape.width**2 * reading.tokens + (4 + 4 * shape.mlp) * shape.width**2 * reading.asked
    return maps + 4 * shape.width * reading.asked_pairs
