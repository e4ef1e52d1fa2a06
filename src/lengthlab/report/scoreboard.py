"""The comparison in the terminal: for every cell the paper's numbers, ours, each seed, the interval and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group
from rich.text import Text

from lengthlab.paper.cells import GREEN, LENGTHS, NOTATION, TITLES, TRAINED
from lengthlab.report.claims import HOLDS, Finding
from lengthlab.report.comparison import AGREES, DIFFERS, MARGIN, MISSING, SILENT, VERDICTS, Line, summary
from lengthlab.report.results import Results

MARKS = {AGREES: "=", DIFFERS: "≠", SILENT: "·", MISSING: "–"}
STYLES = {AGREES: "green", DIFFERS: "bold red", SILENT: "dim", MISSING: "yellow"}
LABEL, CELL = 10, 5
"""Columns: 12 lengths fit into a terminal of 80."""


def scoreboard(results: Results) -> Group:
    """Every part, its claims after it, and what the marks mean."""
    lines: list[Text] = []
    for part in results.tables:
        lines += _part(part, results)
    if results.tables:
        lines += [*_legend(), Text()]
    return Group(*lines)


def _part(part: str, results: Results) -> Iterator[Text]:
    lines = results.lines(part)
    yield Text(f"{TITLES[part]}: {lines[0].cell.task}. {summary(lines)}", style="bold")
    yield length_line()
    for line in lines:
        yield from _line(line)
    yield Text()
    for finding in results.findings:
        if finding.claim.part == part:
            yield _finding(finding, results.verdicts_by_seed(finding.claim))
    yield Text()


def _line(line: Line) -> Iterator[Text]:
    said = ", ".join(f"{line.verdicts[verdict]} {verdict}" for verdict in VERDICTS if line.verdicts[verdict])
    yield Text.assemble((line.cell.model, "bold"), f" ({NOTATION[line.cell.model]}), {line.cell.training}: {said}")
    entries = line.entries
    if any(entry.paper is not None for entry in entries):
        yield number_line("paper", [two_digits(entry.paper) for entry in entries])
    yield ours_line("ours", line)
    dim = ["dim"] * len(entries)
    for seed in sorted((*line.seeds, *line.missing)):
        yield number_line(f"seed {seed}", [two_digits(entry.by_seed.get(seed)) for entry in entries], dim)
    if line.seeds:
        intervals = [entry.interval if entry.rows else (None, None) for entry in entries]
        yield number_line("low", [two_digits(low) for low, _ in intervals], dim)
        yield number_line("high", [two_digits(high) for _, high in intervals], dim)
    yield number_line("verdict", [MARKS[entry.verdict] for entry in entries], [STYLES[entry.verdict] for entry in entries])


def ours_line(label: str, line: Line) -> Text:
    """The means over seeds, green as in the paper."""
    shades = ["green" if (entry.ours or 0) > GREEN else "" for entry in line.entries]
    return number_line(label, [two_digits(entry.ours) for entry in line.entries], shades)


def two_digits(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def length_line() -> Text:
    """The head of a table: lengths, those beyond the training range in another colour."""
    return number_line("n", [str(length) for length in LENGTHS], ["bold" if n <= TRAINED[1] else "bold cyan" for n in LENGTHS])


def number_line(label: str, cells: Sequence[str], styles: Sequence[str] = ()) -> Text:
    """A name and a cell for each length."""
    line = Text(f"  {label}".ljust(LABEL))
    for cell, style in zip(cells, styles or [""] * len(cells), strict=True):
        line.append(cell.rjust(CELL), style=style)
    return line


def _finding(finding: Finding, by_seed: Mapping[int, str]) -> Text:
    style = "green" if finding.verdict == HOLDS else STYLES.get(finding.verdict, "bold red")
    alone = ", ".join(f"{seed} {verdict}" for seed, verdict in by_seed.items())
    seeds = f"; each seed alone: {alone}" if len(by_seed) > 1 else ""
    return Text.assemble((finding.verdict, style), f": {finding.claim.checked} ({finding.evidence}{seeds})")


def _legend() -> list[Text]:
    marks = ", ".join(f"{MARKS[verdict]} {verdict}" for verdict in VERDICTS)
    return [
        Text(f"{marks}; to agree is to be within {MARGIN:.2f}. Ours is the mean over seeds, green above {GREEN:.2f}.", "dim"),
        Text("low and high: Wilson's interval at 95 % over the samples of all seeds together.", "dim"),
    ]
