"""The recurrence: a state that is carried from token to token.

Shapes: B samples, T tokens, N tokens of all documents of a row, D width, Q positions asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require
from lengthlab.models.asked import pick
from lengthlab.models.documents import Documents, Mixer
from lengthlab.models.recurrence import Recurrence


@dataclass(frozen=True)
class Lstm:
    """`nn.LSTM`, as wide as the model; the paper's are of one layer.

    >>> Lstm().build(width=8)
    _Lstm(
      (cell): LSTM(8, 8, batch_first=True)
    )
    """

    layers: int = 1

    def __post_init__(self) -> None:
        require(self.layers >= 1, f"lstm.layers must be at least 1, not {self.layers}")

    def build(self, width: int) -> nn.Module:
        return _Lstm(width, self.layers)


class _Lstm(Mixer):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        out_BTD: Tensor = self.cell(x_BTD)[0] if self.documents is None else self._walk(x_BTD, self.documents)
        return out_BTD if at_BQ is None else pick(out_BTD, at_BQ)

    def _walk(self, x_1ND: Tensor, documents: Documents) -> Tensor:
        """Every document from its own beginning to its own end."""
        if self.cell.num_layers == 1 and kernels.serve_recurrence(x_1ND):
            return kernels.recur(self.cell, x_1ND[0], *documents.place)[None]
        if self.cell.num_layers > 1 or x_1ND.device.type != "cpu":
            return documents.row(self.cell(documents.pad(x_1ND))[0])
        order_N, back_N, documents_T = documents.by_time
        weight_ih, weight_hh, bias_ih, bias_hh = self.cell.parameters()
        told_N4D = F.linear(x_1ND[0].index_select(0, order_N), weight_ih, bias_ih + bias_hh)
        out_ND: Tensor = Recurrence.apply(told_N4D, weight_hh, documents_T.tolist())  # type: ignore[no-untyped-call]
        return out_ND.index_select(0, back_N)[None]
