"""What a model must do to be trained on short sequences and measured on long ones, each thing tried by reading.

A trial gives whether it holds and what was seen; None where there is nothing to try. Positions count from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lengthlab.inspection.carry import disturb
from lengthlab.inspection.reading import draw, logits, other
from lengthlab.inspection.state import in_steps
from lengthlab.inspection.verdict import Seen
from lengthlab.switch.hooks import copied_to_look_at

Trial = Callable[[nn.Module, list[int]], Seen | None]
"""Of a network and the lengths to try it at."""

STEPS = 12
"""Tokens that are fed one by one."""
SAME = 1e-6
"""Of the largest logit: what the same shapes may differ by."""
ALIKE = 1e-4
"""The same where shapes differ, and with them the order in which numbers are added."""


def _causal(network: nn.Module, lengths: list[int]) -> Seen:
    network, worst, tried = _seen_through(network), 0.0, 0
    for length in lengths:
        tokens = draw(network, 1, length)
        before = logits(network, tokens)
        for place in _places(length):
            changed = tokens.clone()
            changed[:, place] = other(network, tokens)[:, place]
            apart = _apart_at(before[:, :place], logits(network, changed)[:, :place], SAME, before)
            if apart.at is not None:
                return False, f"of {length} tokens, another one at position {place} changes the output at {apart}"
            worst, tried = max(worst, apart.largest), tried + 1
    return True, f"{tried} later tokens changed, no earlier output did (largest difference {worst:.1g})"


def _seen_through(network: nn.Module) -> nn.Module:
    """A copy with disturbed weights: many models begin with maps of zeros, through which nothing is seen yet."""
    copied = copied_to_look_at(network)
    disturb(copied)
    return copied if logits(copied, draw(copied, 1, 2)).isfinite().all() else network


def _places(length: int) -> list[int]:
    """Some two or three dozen positions after the first, the last among them."""
    stride = max(1, length // 24)
    return sorted({*range(1, length, stride), length - 1})


def _beginning(network: nn.Module, lengths: list[int]) -> Seen:
    worst = 0.0
    for length in lengths:
        tokens = draw(network, 1, length)
        whole = logits(network, tokens)
        for short in sorted({1, length // 2, length - 1}):
            apart = _apart_at(logits(network, tokens[:, :short]), whole[:, :short], ALIKE, whole)
            if apart.at is not None:
                return False, f"{short} tokens alone and as the beginning of {length} differ at {apart}"
            worst = max(worst, apart.largest)
    return True, f"at {' and '.join(map(str, lengths))} tokens (largest difference {worst:.1g})"


def _apart(network: nn.Module, lengths: list[int]) -> Seen:
    tokens = draw(network, 3, lengths[0])
    together = logits(network, tokens)
    worst = 0.0
    for row in range(3):
        apart = _apart_at(logits(network, tokens[row : row + 1]), together[row : row + 1], ALIKE, together)
        if apart.at is not None:
            return False, f"sequence {row} of 3 alone and beside the others differs at {apart}"
        worst = max(worst, apart.largest)
    return True, f"3 sequences alone and together (largest difference {worst:.1g})"


def _stepwise(network: nn.Module, lengths: list[int]) -> Seen | None:
    tokens = draw(network, 1, min(STEPS, lengths[0]))
    stepped = in_steps(network, tokens)
    if stepped is None:
        return None
    whole = logits(network, tokens)
    apart = _apart_at(stepped[0], whole, ALIKE, whole)
    if apart.at is not None:
        return False, f"{tokens.shape[1]} tokens one by one and at once differ at {apart}"
    return True, f"{tokens.shape[1]} tokens one by one and at once (largest difference {apart.largest:.1g})"


def _twice(network: nn.Module, lengths: list[int]) -> Seen:
    tokens = draw(network, 2, lengths[0])
    first, second = logits(network, tokens), logits(network, tokens)
    apart = _apart_at(first, second, 0.0, first)
    return apart.at is None, "bit for bit" if apart.at is None else f"two forwards of the same tokens differ at {apart}"


@dataclass(frozen=True)
class _Apart:
    """How two outputs differ."""

    largest: float
    at: int | None
    """The first position at which they do; None: nowhere."""

    def __str__(self) -> str:
        return f"position {self.at} (largest difference {self.largest:.2g})"


def _apart_at(one: Tensor, two: Tensor, tolerance: float, scale: Tensor) -> _Apart:
    apart_T = (one.float() - two.float()).abs().amax(dim=(0, 2)).nan_to_num(nan=torch.inf)
    beyond = (apart_T > tolerance * float(scale.abs().max())).nonzero()
    return _Apart(float(apart_T.max()), int(beyond[0]) if len(beyond) else None)


TRIALS: dict[str, Trial] = {
    "is causal": _causal,
    "reads a beginning alone as in the whole": _beginning,
    "keeps the sequences of a batch apart": _apart,
    "gives the same step by step": _stepwise,
    "gives the same twice in eval mode": _twice,
}
