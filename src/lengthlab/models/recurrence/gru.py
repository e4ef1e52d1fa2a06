"""The gated recurrent unit.

Shapes: B samples, D width, G = 3D.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from lengthlab.models.recurrence.torch_cell import TorchCell


@dataclass(frozen=True)
class Gru:
    """The gated recurrent unit (Cho et al. 2014, arXiv 1406.1078), `nn.GRU` as wide as the model.

    r = σ(W_r·x + U_r·h), z = σ(W_z·x + U_z·h), n = tanh(W_n·x + r ⊙ (U_n·h)), h = (1 − z) ⊙ n + z ⊙ h, each with biases.
    PyTorch, and so this, lets r act on U_n·h with its bias, where the paper has U_n·(r ⊙ h).

    >>> Gru().build(width=8)
    _Gru(
      (cell): GRU(8, 8, batch_first=True)
    )
    """

    def build(self, width: int) -> nn.Module:
        return _Gru(nn.GRU(width, width, batch_first=True))


class _Gru(TorchCell):
    def step(self, by_input_BG: Tensor, by_state_BG: Tensor, h_BD: Tensor) -> Tensor:
        r_in, z_in, n_in = by_input_BG.chunk(3, dim=-1)
        r_before, z_before, n_before = by_state_BG.chunk(3, dim=-1)
        r_BD, z_BD = (r_in + r_before).sigmoid(), (z_in + z_before).sigmoid()
        return (1 - z_BD) * (n_in + r_BD * n_before).tanh() + z_BD * h_BD
