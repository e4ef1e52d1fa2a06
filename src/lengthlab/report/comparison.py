"""Ours beside the paper's, cell by cell and length by length: a pure function of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lengthlab.errors import LabError
from lengthlab.evaluation.interval import wilson
from lengthlab.paper.cells import CELLS, LENGTHS, Cell
from lengthlab.paper.values import value
from lengthlab.rows import Row

AGREES, DIFFERS, SILENT, MISSING = "agrees", "differs", "paper silent", "missing"
VERDICTS = (AGREES, DIFFERS, SILENT, MISSING)
MARGIN = 0.05
"""How far apart two accuracies may be and still agree."""
ROUNDING = 1e-9
"""0.95 and 1.00 are 0.05 apart, whatever binary fractions say."""


@dataclass(frozen=True)
class Entry:
    """A cell at one length: the paper's value, and a row of ours for each seed.

    `interval` is Wilson's over the samples of all seeds together. Every seed answers the same samples, and how much seeds
    differ is not in it: `by_seed` shows that.
    """

    length: int
    paper: float | None
    rows: tuple[Row, ...]

    @property
    def by_seed(self) -> dict[int, float]:
        return {row.seed: row.accuracy for row in self.rows}

    @property
    def ours(self) -> float | None:
        """Mean over seeds."""
        return sum(self.by_seed.values()) / len(self.rows) if self.rows else None

    @property
    def samples(self) -> int:
        return sum(row.total for row in self.rows)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(sum(row.correct for row in self.rows), self.samples)

    @property
    def verdict(self) -> str:
        return verdict(self.paper, self.ours)


def verdict(paper: float | None, ours: float | None) -> str:
    """
    >>> verdict(1.0, 0.95), verdict(1.0, 0.949), verdict(None, 0.5), verdict(1.0, None)
    ('agrees', 'differs', 'paper silent', 'missing')
    """
    if ours is None:
        return MISSING
    if paper is None:
        return SILENT
    return AGREES if abs(ours - paper) <= MARGIN + ROUNDING else DIFFERS


@dataclass(frozen=True)
class Line:
    """A cell at every length. `missing`: seeds that other cells of its part have."""

    cell: Cell
    entries: tuple[Entry, ...]
    missing: tuple[int, ...] = ()

    @property
    def seeds(self) -> list[int]:
        return sorted({seed for entry in self.entries for seed in entry.by_seed})

    @property
    def runs(self) -> list[str]:
        return list(dict.fromkeys(row.run for entry in self.entries for row in entry.rows))

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(entry.verdict for entry in self.entries)

    def at(self, length: int) -> Entry:
        return next(entry for entry in self.entries if entry.length == length)


def compare(
    rows: Iterable[Row], cells: Sequence[Cell] = CELLS, question: str = "both", lengths: Sequence[int] = LENGTHS
) -> list[Line]:
    """A line for every cell, whether there are rows for it or not. `both` is every question that the task asks."""
    found: dict[tuple[Cell, int], list[Row]] = {}
    for row in rows:
        if row.question == question:
            found.setdefault((Cell(row.part, row.task, row.model, row.training), row.length), []).append(row)
    lines = []
    for cell in cells:
        entries = [Entry(length, value(cell, length), _one_a_seed(found.get((cell, length), []))) for length in lengths]
        lines.append(Line(cell, tuple(entries)))
    return [replace(line, missing=_missing(line, lines)) for line in lines]


def _missing(line: Line, lines: Sequence[Line]) -> tuple[int, ...]:
    """Seeds that others of the part have; none where a cell has no rows at all, since then all of it is missing."""
    others = {seed for other in lines if other.cell.part == line.cell.part for seed in other.seeds}
    return tuple(sorted(others - set(line.seeds))) if line.seeds else ()


def _one_a_seed(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows by seed; two runs of a seed cannot be one number."""
    by_seed: dict[int, Row] = {}
    for row in rows:
        other = by_seed.setdefault(row.seed, row)
        if other != row:
            what = f"{row.part} {row.model} {row.training}, seed {row.seed}"
            raise LabError(f"two runs claim {what}: {other.run} and {row.run}; leave the rows of one of them out")
    return tuple(by_seed[seed] for seed in sorted(by_seed))


def summary(lines: Sequence[Line]) -> str:
    """How many values come to which verdict.

    >>> summary(compare([])[:1])
    '12 values: 12 missing'
    """
    counts = sum((line.verdicts for line in lines), Counter[str]())
    said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"{counts.total()} values: {', '.join(said)}"
