"""A page in a terminal. Texts are shown as they are: nothing in them is markup, and none of them moves the cursor."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleRenderable
from rich.table import Table as Grid
from rich.text import Text as Line

from lengthlab.report.page import (
    Block,
    Curves,
    Details,
    Entry,
    Heading,
    Heatmap,
    Numbered,
    Page,
    Scores,
    Table,
    Text,
    Words,
    plain,
    spans,
    visible,
)
from lengthlab.report.scores import AGREES, DIFFERS, GOOD, MISSING, SILENT, VERDICTS, Score, Series

STYLES = {"strong": "bold", "emphasis": "italic", "code": "", "good": "green", "bad": "bold red"}
MARKS = {AGREES: ("=", "green"), DIFFERS: ("≠", "bold red"), SILENT: ("·", "dim"), MISSING: ("–", "yellow")}
LABEL = 10
"""Columns of the names of lines: with 12 lengths of 5 columns they fit into a terminal of 80."""
WIDE = 160
"""Of a file or a pipe."""
NUMBER = re.compile(r"–|[\d.,]+( ±\d+%)?")
"""Cells that stand on the right of their column, where all of it are."""
WIDEST = 10_000
"""Columns that no table needs."""


def console_for(width: int | None = None) -> Console:
    """As wide as the terminal; wide where there is none."""
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    return console if width or console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=WIDE)


def show(page: Page, console: Console | None = None) -> None:
    """Print a page; what is folded away and what is drawn is for the other renderers."""
    console = console or console_for()
    console.print(Line(visible(page.title), "bold"))
    for block in page.blocks:
        for part in _parts(block, console.width):
            console.print(part)
    tables = [block for block in page.blocks if type(block) is Scores]
    if tables:
        console.print(Line(f"\n{_legend(tables)}", "dim"))


def _parts(block: Block, width: int) -> Iterator[ConsoleRenderable]:
    match block:
        case Heading(text):
            yield Line()
            yield Line(visible(text), "bold")
        case Text(words):
            yield line(words)
        case Table(header, rows):
            yield _table(header, rows, width)
        case Numbered(items, _):
            for number, item in enumerate(items, start=1):
                yield Line(f"{number}. ", "dim").append_text(line(item))
        case Heatmap() | Curves() | Details():
            return
        case Scores():
            yield from _scores(block, width)


def line(words: Words) -> Line:
    """Words as one paragraph."""
    return Line.assemble(*((visible(span.text), STYLES.get(span.style, "")) for span in spans(words)))


def _table(header: Sequence[str], rows: Sequence[Sequence[Words]], width: int) -> ConsoleRenderable:
    """A table where it fits; else each of its rows as a few lines, a cell in each."""
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, *cells in zip(header, *rows, strict=True):
        numbers = bool(cells) and all(NUMBER.fullmatch(plain(cell)) for cell in cells)
        grid.add_column(Line(visible(name)), no_wrap=True, justify="right" if numbers else "left")
    for row in rows:
        grid.add_row(*(line(cell) for cell in row))
    return grid if Console(width=WIDEST).measure(grid).maximum <= width else _records(header, rows)


def _records(header: Sequence[str], rows: Sequence[Sequence[Words]]) -> ConsoleRenderable:
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    for row in rows:
        for number, (name, cell) in enumerate(zip(header, row, strict=True), start=1):
            grid.add_row(Line(visible(name)), line(cell), end_section=number == len(row))
        grid.add_row("", "")
    return grid


def _scores(block: Scores, width: int) -> Iterator[ConsoleRenderable]:
    """For each entry a line of its names and a few of numbers, a column for each length; as many at once as fit."""
    wide = max([5, *(len(str(length)) + 1 for length in block.lengths)])
    fit = max(1, (width - LABEL) // wide)
    for start in range(0, len(block.lengths), fit):
        lengths = block.lengths[start : start + fit]
        yield from _head(block, lengths, wide)
        for entry in block.entries:
            yield from _entry(entry, lengths, wide, block.reference)


def _head(block: Scores, lengths: Sequence[int], wide: int) -> Iterator[Line]:
    longest = block.trained[1]
    styles = ["bold" if length <= longest else "bold cyan" for length in lengths]
    yield numbers("n", [str(length) for length in lengths], wide, styles)
    if block.times:
        yield numbers("", [f"{length // longest}×" for length in lengths], wide, ["dim"] * len(lengths))


def _entry(entry: Entry, lengths: Sequence[int], wide: int, reference: str) -> Iterator[Line]:
    first = entry.series[0]
    shown = VERDICTS if reference else (MISSING,)
    verdicts = [f"{first.verdicts[verdict]} {verdict}" for verdict in shown if first.verdicts[verdict]]
    known = [f"{visible(name)} {visible(text)}" for name, text in entry.facts if text != "–"]
    alone = [f"seed {first.seeds[0]}"] if len(first.seeds) == 1 and not first.missing else []
    words = [*verdicts, *alone, *known]
    about = ", ".join(words)
    yield Line(visible(entry.title), "bold").append(f": {about}" if about else "", "not bold")
    scores = [first.at(length) for length in lengths]
    if any(score.reference is not None for score in scores):
        yield numbers(reference.removeprefix("the "), [_two(score.reference) for score in scores], wide)
    yield _means(first, scores, wide)
    dim = ["dim"] * len(lengths)
    seeds = sorted((*first.seeds, *first.missing))
    for seed in seeds if len(seeds) > 1 else ():
        yield numbers(f"seed {seed}", [_two(score.by_seed.get(seed)) for score in scores], wide, dim)
    if first.seeds:
        ends = [score.interval if score.rows else (None, None) for score in scores]
        yield numbers("low", [_two(low) for low, _ in ends], wide, dim)
        yield numbers("high", [_two(high) for _, high in ends], wide, dim)
    yield from _tokens(scores, wide)
    for series in entry.series[1:]:
        rest = [series.at(length) for length in lengths]
        yield _means(series, rest, wide)
        yield from _tokens(rest, wide)
    if reference:
        marks = [MARKS[score.verdict] for score in scores]
        yield numbers("verdict", [mark for mark, _ in marks], wide, [style for _, style in marks])


def _means(series: Series, scores: Sequence[Score], wide: int) -> Line:
    shades = ["green" if (score.mean or 0) > GOOD else "" for score in scores]
    return numbers(series.question, [_two(score.mean) for score in scores], wide, shades)


def _tokens(scores: Sequence[Score], wide: int) -> Iterator[Line]:
    """The share of right tokens, where answers have several."""
    if any(score.tokens is not None for score in scores):
        yield numbers("tokens", [_two(score.tokens) for score in scores], wide, ["dim"] * len(scores))


def _two(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def numbers(label: str, cells: Sequence[str], wide: int, styles: Sequence[str] = ()) -> Line:
    """A name and a cell for each length; a name that is too long is cut."""
    name = f"  {visible(label)}"
    text = Line((name if len(name) < LABEL else f"{name[: LABEL - 2]}…").ljust(LABEL))
    for cell, style in zip(cells, styles or [""] * len(cells), strict=True):
        text.append(cell.rjust(wide), style=style)
    return text


def _legend(tables: Sequence[Scores]) -> str:
    scores = [score for table in tables for entry in table.entries for series in entry.series for score in series.scores]
    several = any(score.tokens is not None for score in scores)
    tokens = "; tokens: the share of right tokens, where answers have several" if several else ""
    marks = ", ".join(f"{mark} {verdict}" for verdict, (mark, _) in MARKS.items())
    compared = f" {marks}." if tables[0].reference else ""
    return (
        f"Shares of samples that are right, means over seeds, green above {GOOD:.2f}; low and high: Wilson's interval at 95 % "
        f"over the samples of all seeds together{tokens}.{compared}"
    )


def as_text(page: Page, width: int = 80) -> str:
    """A page as plain lines."""
    console = Console(highlight=False, markup=False, emoji=False, width=width, file=io.StringIO(), force_jupyter=False)
    with console.capture() as captured:
        show(page, console)
    return captured.get()
