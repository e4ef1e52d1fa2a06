"""The recurrence: a state that is carried from token to token.

Shapes: B samples, T tokens, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from lengthlab.errors import require


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


class _Lstm(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, x_BTD: Tensor) -> Tensor:
        out_BTD: Tensor = self.cell(x_BTD)[0]
        return out_BTD
