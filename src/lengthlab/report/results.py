"""Everything a reader is shown of the paper's reproduction: rows, where they come from, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lengthlab.paper.cells import CELLS, PARTS
from lengthlab.paper.claims import CLAIMS, Claim
from lengthlab.paper.readings import READINGS
from lengthlab.report.claims import Finding, judge
from lengthlab.report.comparison import Line, compare
from lengthlab.report.courses import Course, courses_of
from lengthlab.report.provenance import Making, unite
from lengthlab.rows import Row


@dataclass(frozen=True)
class Results:
    """The rows of some parts of the paper; `parts` may name one that has no rows: all of it is then missing."""

    rows: tuple[Row, ...]
    made: tuple[Making, ...]
    parts: tuple[str, ...]
    courses: tuple[Course, ...] = ()

    def lines(self, part: str, question: str = "both") -> list[Line]:
        cells = [reading.cell for reading in READINGS] if part == "readings" else [c for c in CELLS if c.part == part]
        return compare(self.rows, cells, question)

    @property
    def tables(self) -> list[str]:
        """The parts that the paper has numbers or a picture of."""
        return [part for part in self.parts if part in PARTS]

    @property
    def findings(self) -> list[Finding]:
        """What became of the claims, by the means over seeds."""
        lines = [line for part in self.tables for line in self.lines(part)]
        return judge(lines, [claim for claim in CLAIMS if claim.part in self.tables])

    def verdicts_by_seed(self, claim: Claim) -> dict[int, str]:
        """What each seed alone says of a claim."""
        rows = [row for row in self.rows if row.part == claim.part]
        lines = {seed: compare(row for row in rows if row.seed == seed) for seed in sorted({row.seed for row in rows})}
        return {seed: judge(of_seed, [claim])[0].verdict for seed, of_seed in lines.items()}


def gather(rows: Iterable[Row], made: Iterable[Making], parts: Iterable[str], courses: Iterable[Course] = ()) -> Results:
    """The rows of these parts, in the order of the paper, with the entries that made them and how their training went."""
    shown = tuple(parts)
    kept = sorted((row for row in rows if row.part in shown), key=lambda row: _place(row, shown))
    runs = dict.fromkeys(row.run for row in kept)
    return Results(tuple(kept), tuple(unite(made, runs)), shown, courses_of(runs, courses))


def _place(row: Row, parts: tuple[str, ...]) -> tuple[int, int, str, str, int, int, str]:
    cells = [cell.model for cell in CELLS]
    model = cells.index(row.model) if row.model in cells else len(cells)
    return parts.index(row.part), model, row.model, row.training, row.seed, row.length, row.question
