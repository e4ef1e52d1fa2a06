"""Parts of a user's own, in a file that stands alone."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn


@dataclass(frozen=True)
class Faulty:
    """A part that can be built and read with, and cannot be trained."""

    def build(self, width: int) -> nn.Module:
        return _Faulty()


class _Faulty(nn.Module):
    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.training:
            raise ValueError("no such thing")
        return x_BTD


@dataclass(frozen=True)
class Deadly:
    """A part that takes its process with it, as a lack of memory would."""

    def build(self, width: int) -> nn.Module:
        return _Deadly()


class _Deadly(nn.Module):
    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.training:
            os.kill(os.getpid(), signal.SIGKILL)
        return x_BTD


@dataclass(frozen=True)
class Leaving:
    """A part that ends the program, as it thinks, and says that all is well."""

    def build(self, width: int) -> nn.Module:
        return _Leaving()


class _Leaving(nn.Module):
    def forward(self, x_BTD: Tensor) -> Tensor:
        sys.exit(0)


@dataclass(frozen=True)
class Forgetful:
    """A user's part that draws random numbers while it trains."""

    def build(self, width: int) -> nn.Module:
        return nn.Dropout(0.5)


@dataclass(frozen=True)
class Chatty:
    """A part that leaves an unfinished line where errors go, as a progress bar does."""

    def build(self, width: int) -> nn.Module:
        sys.stderr.write("\r 10%|#")
        sys.stderr.flush()
        return nn.Identity()


class Stacked(nn.Module):
    """A model that asks for a list, and one that says nothing of what it asks for."""

    def __init__(self, vocabulary: int, hidden: list[int], scales: list[float] | None = None, rest=()) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        sizes = hidden + [vocabulary]  # noqa: RUF005  # which a tuple would not do
        self.table = nn.Embedding(vocabulary, sizes[0])
        self.layers = nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sizes)))
        self.scales, self.rest = scales, rest

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV: Tensor = self.layers(self.table(tokens_BT))
        return logits_BTV
