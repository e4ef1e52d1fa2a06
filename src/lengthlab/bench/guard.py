"""What the guard on closed parameters costs: its work in a step, beside the step itself, in one go."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.optim import AdamW

from lengthlab.bench.measurement import GUARD, STEP, Measurement
from lengthlab.bench.stopwatch import Patience, Trainer, paces
from lengthlab.switch import delay_attention
from lengthlab.switch.guard import Guard

LAYERS, WIDTH, HEADS, BATCH, TOKENS = 12, 256, 4, 8, 64


class Steps:
    """A transformer encoder in training, its attention off and its optimizer watched."""

    turn = 1

    def __init__(self, layers: int, width: int) -> None:
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(width, HEADS, 4 * width, dropout=0.0, batch_first=True)
        self._model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self._optimizer = AdamW(self._model.parameters())
        self._x_BTD = torch.randn(BATCH, TOKENS, width)
        self.delay = delay_attention(self._model).watch(self._optimizer)

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self._optimizer.zero_grad()
            self._model(self._x_BTD).square().mean().backward()
            self._optimizer.step()


class Looks:
    """What the guard does in a step of that training, and nothing else."""

    turn = 1

    def __init__(self, steps: Steps) -> None:
        self._guard = Guard(list(steps.delay.parameters()))

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self._guard.with_gradient()
            self._guard.begin()
            self._guard.with_gradient()
            self._guard.moved()


def guard_costs(patience: Patience) -> Iterator[Measurement]:
    """Seconds of a step on the CPU, and those in it that are the guard's."""
    steps = Steps(LAYERS, WIDTH)
    ways: dict[str, Trainer] = {STEP: steps, GUARD: Looks(steps)}
    for way, trainer in ways.items():
        yield Measurement("guard", f"{LAYERS} layers of width {WIDTH}", way, 1, BATCH, 0.0, paces(trainer, patience), 0)
