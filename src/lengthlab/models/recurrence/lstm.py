"""The recurrence: a state that is carried from token to token.

Shapes: B samples, T tokens, N tokens of all documents of a row, D width, L layers, Q positions at which outputs are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require_whole
from lengthlab.models.layout import PLAIN, Documents, Layout, pick
from lengthlab.models.recurrence.recurrence import Recurrence, State
from lengthlab.models.recurrence.scan import LstmScan
from lengthlab.models.recurrence.torch_cell import read_in_calls


@dataclass(frozen=True)
class Lstm:
    """`nn.LSTM` (Hochreiter & Schmidhuber 1997), as wide as the model; the paper's are of one layer.

    i = σ(W_i·x + U_i·h), f = σ(W_f·x + U_f·h), g = tanh(W_g·x + U_g·h), o = σ(W_o·x + U_o·h), each with two biases;
    c = f ⊙ c + i ⊙ g, h = o ⊙ tanh(c).

    >>> Lstm().build(width=8)
    _Lstm(
      (cell): LSTM(8, 8, batch_first=True)
    )
    """

    layers: int = 1

    def __post_init__(self) -> None:
        require_whole(self.layers, "lstm.layers", 1)

    def build(self, width: int) -> nn.Module:
        return _Lstm(width, self.layers)


class _Lstm(Recurrence):
    """A state: h and c of every layer, (L, B, D)."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(width, width, layers, batch_first=True)

    @property
    def lacks(self) -> str:
        return "an LSTM of several layers has no kernel: chain LSTMs of one" if self.cell.num_layers > 1 else ""

    def walk(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        zero_LBD = x_BTD.new_zeros(self.cell.num_layers, len(x_BTD), x_BTD.shape[2])
        after = []
        for weights, h_BD, c_BD in zip(self.cell.all_weights, *(state or (zero_LBD, zero_LBD)), strict=True):
            x_BTD, h_BD, c_BD = _walk_layer(weights, x_BTD, h_BD, c_BD)
            after.append((h_BD, c_BD))
        h_LBD, c_LBD = map(torch.stack, zip(*after, strict=True))
        return x_BTD, (h_LBD, c_LBD)

    def read(self, x_BTD: Tensor, state: State | None) -> tuple[Tensor, State]:
        out_BTD, after = read_in_calls(self.cell, x_BTD, state)
        return out_BTD, cast(State, after)

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        if layout.documents is not None:
            out_BTD = self._scan(x_BTD, layout.documents)
        elif layout.shared and self.cell.num_layers == 1 and kernels.serve_recurrence(x_BTD):
            out_BTD = kernels.scan_padded_lstm(self.cell, x_BTD)
        else:
            out_BTD = self.mix(x_BTD, layout)
        return pick(out_BTD, layout.query_BQ)

    def _scan(self, x_1ND: Tensor, documents: Documents) -> Tensor:
        """Every document from its own beginning to its own end: by a kernel on a GPU, by few operations on a CPU."""
        if self.cell.num_layers == 1 and kernels.serve_recurrence(x_1ND):
            return kernels.scan_lstm(self.cell, x_1ND[0], documents.start_B, documents.length_B)[None]
        if self.cell.num_layers > 1 or x_1ND.device.type != "cpu":
            return documents.row(self.mix(documents.pad(x_1ND), PLAIN))
        order_N, inverse_N, documents_T = documents.by_time
        weight_ih, weight_hh, bias_ih, bias_hh = self.cell.parameters()
        gates_in_N4D = F.linear(x_1ND[0].index_select(0, order_N), weight_ih, bias_ih + bias_hh)
        out_ND: Tensor = LstmScan.apply(gates_in_N4D, weight_hh, documents_T.tolist())  # type: ignore[no-untyped-call]
        return out_ND.index_select(0, inverse_N)[None]


def _walk_layer(weights: Sequence[Tensor], x_BTD: Tensor, h_BD: Tensor, c_BD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    out = []
    for x_BD in x_BTD.unbind(1):
        gates_B4D = F.linear(x_BD, weight_ih, bias_ih) + F.linear(h_BD, weight_hh, bias_hh)
        i_BD, f_BD, g_BD, o_BD = gates_B4D.chunk(4, dim=-1)
        c_BD = f_BD.sigmoid() * c_BD + i_BD.sigmoid() * g_BD.tanh()
        h_BD = o_BD.sigmoid() * c_BD.tanh()
        out.append(h_BD)
    return torch.stack(out, dim=1), h_BD, c_BD
