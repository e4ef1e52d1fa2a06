"""PyTorch's own recurrent cells as recurrences, with the walk that they are held against.

Shapes: B samples, T tokens, D width, G gates times width.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.models.recurrence.recurrence import Recurrence, State

LONGEST = 2**15
"""Tokens in one call: cuDNN refuses 65,536."""


def read_in_calls(cell: nn.RNNBase, x_BTD: Tensor, state: object) -> tuple[Tensor, object]:
    """What the cell says of a sequence of any length, and the state after it, in PyTorch's form."""
    out = []
    for some_BTD in torch.split(x_BTD, LONGEST, dim=1):
        some_BTD, state = cell(some_BTD, state)
        out.append(some_BTD)
    return (out[0] if len(out) == 1 else torch.cat(out, dim=1)), state


class TorchCell(Recurrence):
    """A one-layer `nn.RNN` or `nn.GRU`. Subclasses say how its state goes from token to token."""

    def __init__(self, cell: nn.RNN | nn.GRU) -> None:
        super().__init__()
        self.cell = cell

    def step(self, by_input_BG: Tensor, by_state_BG: Tensor, h_BD: Tensor) -> Tensor:
        """The state after a token, of W·x + b and U·h + c for all gates in PyTorch's order."""
        raise NotImplementedError(f"{type(self).__name__} is a TorchCell without the method 'step'")

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        weight_ih, weight_hh, bias_ih, bias_hh = self.cell.parameters()
        h_BD = torch.zeros_like(x_BTD[:, 0]) if state is None else state[0]
        out = []
        for x_BD in x_BTD.unbind(1):
            h_BD = self.step(F.linear(x_BD, weight_ih, bias_ih), F.linear(h_BD, weight_hh, bias_hh), h_BD)
            out.append(h_BD)
        return torch.stack(out, dim=1), (h_BD,)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        before_1BD = None if state is None else state[0][None].contiguous()
        out_BTD, after_1BD = read_in_calls(self.cell, x_BTD, before_1BD)
        return out_BTD, (cast(Tensor, after_1BD)[0],)
