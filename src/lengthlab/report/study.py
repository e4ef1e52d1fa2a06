"""Everything a reader is shown of a study: its rows by arm, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lengthlab.paper.cells import Cell
from lengthlab.report.comparison import Line, compare
from lengthlab.report.courses import Course
from lengthlab.report.provenance import Making, unite
from lengthlab.rows import Row

QUESTIONS = ("both", "modulo", "recall")


@dataclass(frozen=True)
class Findings:
    """The rows of a study; an arm without rows is missing."""

    name: str
    title: str
    question: str
    longest: int
    lengths: tuple[int, ...]
    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    made: tuple[Making, ...]
    courses: tuple[Course, ...] = ()

    def courses_of(self, line: Line) -> dict[int, Course]:
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

        >>> Findings("far", "Far", "How far?", 25, (25, 1000), (), (), ()).times(1000)
        '40×'
        """
        return f"{length / self.longest:g}×"


def findings(
    name: str,
    title: str,
    question: str,
    longest: int,
    lengths: Sequence[int],
    cells: Iterable[Cell],
    rows: Iterable[Row],
    made: Iterable[Making],
    courses: Iterable[Course] = (),
) -> Findings:
    """The rows of these cells, in their order, with the entries that made them and how their training went."""
    order = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    kept = [row for row in rows if _cell(row) in order and row.length in lengths]
    kept.sort(key=lambda row: (order[_cell(row)], row.seed, row.length, QUESTIONS.index(row.question)))
    by = unite(made, (row.run for row in kept))
    runs = dict.fromkeys(row.run for row in kept)
    went = {course.run: course for course in courses}
    known = tuple(went[run] for run in runs if run in went)
    return Findings(name, title, question, longest, tuple(lengths), tuple(order), tuple(kept), tuple(by), known)


def _cell(row: Row) -> Cell:
    return Cell(row.part, row.task, row.model, row.training)
