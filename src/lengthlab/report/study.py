"""Everything a reader is shown of a study: its rows by arm, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from lengthlab.paper.cells import Cell
from lengthlab.report.comparison import Line, compare
from lengthlab.report.courses import Course, courses_of
from lengthlab.report.provenance import Making, unite
from lengthlab.rows import Row

QUESTIONS = ("both", "modulo", "recall")


@dataclass(frozen=True)
class Findings:
    """A study and its rows; an arm without rows is missing. Costs are told in multiples of the arm `reference`. `beside`: rows
    of the paper's figure, to be drawn with it.
    """

    name: str
    title: str
    question: str
    longest: int
    lengths: tuple[int, ...]
    cells: tuple[Cell, ...]
    reference: str = ""
    note: str = ""
    rows: tuple[Row, ...] = ()
    made: tuple[Making, ...] = ()
    courses: tuple[Course, ...] = ()
    beside: tuple[Row, ...] = ()

    def having(self, rows: Iterable[Row], made: Iterable[Making], courses: Iterable[Course]) -> Findings:
        """With the rows of its cells, in their order, the entries that made them and how their training went."""
        order = {cell: place for place, cell in enumerate(self.cells)}
        kept = [row for row in rows if _cell(row) in order and row.length in self.lengths]
        kept.sort(key=lambda row: (order[_cell(row)], row.seed, row.length, QUESTIONS.index(row.question)))
        runs = dict.fromkeys(row.run for row in kept)
        return replace(self, rows=tuple(kept), made=tuple(unite(made, runs)), courses=courses_of(runs, courses))

    @cached_property
    def reference_seconds(self) -> float | None:
        """Of a step of the reference."""
        known = [self.step_seconds(line) for line in self.lines() if line.cell.part == self.reference]
        seconds = [each for each in known if each]
        return sum(seconds) / len(seconds) if seconds else None

    def step_seconds(self, line: Line) -> float | None:
        """Of a step of an arm, where it was timed."""
        known = [course.step_seconds for course in self.went(line).values() if course.step_seconds]
        return sum(known) / len(known) if known else None

    def went(self, line: Line) -> dict[int, Course]:
        """How the training of an arm went, by seed, as far as that is known."""
        by_run = {course.run: course for course in self.courses}
        seeds = {row.run: row.seed for entry in line.entries for row in entry.rows}
        return {seed: by_run[run] for run, seed in sorted(seeds.items(), key=lambda item: item[1]) if run in by_run}

    def lines(self, question: str = "both") -> list[Line]:
        """One for each arm."""
        return compare(self.rows, self.cells, question, self.lengths)

    @property
    def seeds(self) -> list[int]:
        return sorted({row.seed for row in self.rows})

    @property
    def samples(self) -> list[int]:
        return sorted({row.total for row in self.rows})

    def times(self, length: int) -> str:
        """A length in training lengths.

        >>> Findings("far", "Far", "How far?", 25, (25, 1000), ()).times(1000)
        '40×'
        """
        return f"{length / self.longest:g}×"


def _cell(row: Row) -> Cell:
    return Cell(row.part, row.task, row.model, row.training)
