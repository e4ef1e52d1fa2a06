"""Which reading of the paper works: a small table of the study's rows."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from lengthlab.paper.readings import READINGS, Reading
from lengthlab.report.comparison import Entry
from lengthlab.report.markdown import accuracy_mark, table_row
from lengthlab.report.provenance import makers_of
from lengthlab.report.results import Results
from lengthlab.report.scoreboard import length_line, ours_line, two_digits

QUESTIONS = ("both", "modulo", "recall")
SHOWN = (25, 50, 75, 100)
"""The end of the training range, and 2, 3 and 4 times that."""
WORDS = {
    "part": "the whole part",
    "sublayers": "all but the norms",
    "function": "the function alone",
    "modulo": "modulo",
    "both": "both questions",
    "one": "one",
    "each block": "one in each block",
}
HEADER = ("model", "LSTMs", "off at first", "asked at first", *(f"n={length}" for length in SHOWN))


def _names(reading: Reading) -> list[str]:
    return [reading.model, WORDS[reading.lstms], WORDS[reading.covers], WORDS[reading.asks]]


def readings_board(results: Results) -> Group:
    """For the terminal: both right, and each question alone, at every length."""
    boards = [results.lines("readings", question) for question in QUESTIONS]
    lines = [Text("Readings of the paper: delayed, modulo-recall.", style="bold"), length_line()]
    for reading, *threes in zip(READINGS, *boards, strict=True):
        how = f", LSTM: {reading.lstms}; off at first: {reading.covers}; asked then: {reading.asks}"
        lines.append(Text.assemble((reading.model, "bold"), how))
        lines += [ours_line(question, line) for question, line in zip(QUESTIONS, threes, strict=True)]
    return Group(*lines, Text())


def readings_markdown(results: Results) -> list[str]:
    """As Markdown, at fewer lengths, with the interval of `both`, seeds and samples."""
    header = (*HEADER, "seeds", "samples a length", "made by")
    lines = [table_row(*header), table_row(*["---"] * len(header))]
    for names, cells in _cells(results):
        rows = [row for both, _, _ in cells for row in both.rows]
        seeds = ", ".join(str(seed) for seed in sorted({row.seed for row in rows})) or "–"
        samples = " or ".join(str(total) for total in sorted({both.samples for both, _, _ in cells if both.rows})) or "–"
        makers = makers_of(results.made, (row.run for row in rows))
        lines.append(table_row(*names, *(_long(cell) for cell in cells), seeds, samples, makers))
    return lines


Three = tuple[Entry, Entry, Entry]
"""Both, modulo and recall of a reading at a length."""


def _cells(results: Results) -> list[tuple[list[str], list[Three]]]:
    both, modulo, recall = (results.lines("readings", question) for question in QUESTIONS)
    return [
        (_names(reading), [(b.at(length), m.at(length), r.at(length)) for length in SHOWN])
        for reading, b, m, r in zip(READINGS, both, modulo, recall, strict=True)
    ]


def _long(cell: Three) -> str:
    both = cell[0]
    if both.ours is None:
        return "missing"
    low, high = both.interval
    return f"{accuracy_mark(both.ours, 3)} ({low:.3f}–{high:.3f}); {two_digits(cell[1].ours)}, {two_digits(cell[2].ours)}"
