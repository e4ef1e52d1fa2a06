"""A line of a table, and the run that gives it its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from lengthlab.paper.cells import Cell
from lengthlab.run import Run


@dataclass(frozen=True)
class Trial:
    """Two cells may share a run: it is trained once and gives rows to both."""

    cell: Cell
    run: Run
