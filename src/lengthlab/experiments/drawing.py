"""How a section of a study is drawn, where it says so: as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """A figure: two of what arms are said to be `about`, one down and one across, with a grid for each training, question and
    length. `times`: the lengths, in longest training lengths. An arm that is below `learned` at one such length is marked.
    """

    down: str
    across: str
    times: tuple[int, ...]
    learned: float = 0.90


@dataclass(frozen=True)
class Strip:
    """A figure: a line for each arm, with a dot for each seed. `times`: the lengths, in longest training lengths."""

    times: tuple[int, ...]
