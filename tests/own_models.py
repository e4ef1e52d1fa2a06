"""Models of a user's own, sound and not; the file stands alone, as it is kept with a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class Sound(nn.Module):
    def __init__(self, vocabulary: int, both_ways: bool = False, positions: int = 0) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, 8)
        self.places = nn.Embedding(positions, 8) if positions else None
        self.cell = nn.LSTM(8, 4 if both_ways else 8, batch_first=True, bidirectional=both_ways)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(8, vocabulary)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.table(tokens_BT)
        if self.places is not None:
            x_BTD = x_BTD + self.places(torch.arange(tokens_BT.shape[1]))
        logits_BTV: Tensor = self.head(self.drop(self.cell(x_BTD)[0]))
        return logits_BTV


class Mixed(Sound):
    """The commonest mistake with recurrences: time and batch are mixed up."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__(vocabulary)
        self.cell = nn.LSTM(8, 8)


class Swapped(Sound):
    def forward(self, tokens_BT: Tensor) -> Tensor:
        return super().forward(tokens_BT).transpose(1, 2)


class Tupled(Sound):
    def forward(self, tokens_BT: Tensor) -> Any:
        return super().forward(tokens_BT), None


class Peeks(Sound):
    """One output sees one later token, through a weight that begins at zero."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__(vocabulary)
        self.share = nn.Parameter(torch.zeros(()))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV = super().forward(tokens_BT)
        late_BTV = torch.zeros_like(logits_BTV)
        late_BTV[:, 3] = self.share * self.head(self.table(tokens_BT[:, 9]))
        return logits_BTV + late_BTV


class Noisy(Sound):
    """Random numbers in eval mode, too."""

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV = super().forward(tokens_BT)
        return logits_BTV + torch.randn_like(logits_BTV)


@dataclass(frozen=True)
class Own:
    """A part that does what it says."""

    does: str

    def build(self, width: int) -> nn.Module:
        makers = {
            "tuple": lambda: nn.GRU(width, width, batch_first=True),
            "wide": lambda: nn.Linear(width, 2 * width),
            "both ways": lambda: _BothWays(width),
            "fails": _Fails,
            "fits": lambda: nn.Linear(width, width),
        }
        return makers[self.does]()


class _BothWays(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x_BTD: Tensor) -> Tensor:
        out_BTD: Tensor = self.cell(x_BTD)[0]
        return out_BTD


class _Fails(nn.Module):
    def forward(self, x_BTD: Tensor) -> Tensor:
        raise ValueError("no such thing")
