"""Position coupling: ids from the structure of a task (Cho et al. 2024, arXiv 2405.20671); what belongs together shares one.

Shapes: B samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.task import Task


@dataclass(frozen=True)
class Coupled(Task):
    """A task that may give its tokens ids; derive from it and place tokens by `starts`.

    With `positions = "coupled"` the ids of a sample begin at a number that is drawn anew for every sample in training, so that
    every row of a table of `ids` is trained, and at `start` when measured, or at random there, too, if that is 0. Id 0 is for
    what has no place: `<bos>`, `<end>`, padding. With "plain" a token's position is its index.
    """

    positions: Literal["plain", "coupled"] = "plain"
    ids: int = 203
    start: int = 1
    random_start: bool = True

    def __post_init__(self) -> None:
        require(self.positions in ("plain", "coupled"), f"task.positions must be 'plain' or 'coupled', not {self.positions!r}")
        require_whole(self.ids, "task.ids", 1)
        require_whole(self.start, "task.start", 0)
        if self.placed:
            needed = max(1, self.start) + 1 + self.beyond + 1
            require(
                self.ids >= needed,
                f"task.ids = {self.ids}: ids from {max(1, self.start)} on take {needed} at length 1 already; raise it",
            )

    @property
    def beyond(self) -> int:
        """The last id of a sequence of length n is n + `beyond` above its first."""
        return 0

    @property
    def placed(self) -> bool:
        """Whether its tokens have ids of their own."""
        return self.positions == "coupled"

    @property
    def as_measured(self) -> Self:
        return replace(self, random_start=False)

    @property
    def longest(self) -> int | None:
        return self.ids - 1 - max(1, self.start) - self.beyond if self.placed else None

    @property
    def limit(self) -> str:
        return f"ids = {self.ids}, start = {self.start}"

    def starts(self, n_B: Tensor, generator: Generator) -> Tensor:
        """start_B: the first id of each sample, of lengths that are on the generator's device."""
        if self.start and not self.random_start:
            return torch.full_like(n_B, self.start)
        free_B = self.ids - 1 - self.beyond - n_B  # so many starts leave room for all ids
        share_B = torch.rand(len(n_B), generator=generator, device=generator.device)
        return 1 + (share_B * free_B).long().minimum(free_B - 1)
