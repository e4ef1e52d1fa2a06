"""The plain recurrent network.

Shapes: B samples, D width, G = D.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from lengthlab.models.recurrence.torch_cell import TorchCell


@dataclass(frozen=True)
class Rnn:
    """The plain recurrent network, `nn.RNN` as wide as the model: h = tanh(W·x + U·h + b) (Elman 1990).

    >>> Rnn().build(width=8)
    _Rnn(
      (cell): RNN(8, 8, batch_first=True)
    )
    """

    def build(self, width: int) -> nn.Module:
        return _Rnn(nn.RNN(width, width, batch_first=True))


class _Rnn(TorchCell):
    def step(self, by_input_BG: Tensor, by_state_BG: Tensor, h_BD: Tensor) -> Tensor:
        return (by_input_BG + by_state_BG).tanh()
