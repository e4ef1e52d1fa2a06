"""A page in a terminal. Texts are shown as they are: nothing in them is markup, and none of them moves the cursor."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleRenderable, Group
from rich.text import Text as Line

from lengthlab.report.page import (
    Block,
    Details,
    Entry,
    Figure,
    Heading,
    Numbered,
    Page,
    Scores,
    Table,
    Text,
)
from lengthlab.report.scores import AGREES, DIFFERS, GOOD, MISSING, SILENT, VERDICTS, Score, Series
from lengthlab.report.screen import Screen
from lengthlab.report.terminal_tables import tables

MARKS = {AGREES: ("=", "green"), DIFFERS: ("≠", "bold red"), SILENT: ("·", "dim"), MISSING: ("–", "yellow")}
LABEL, LONGEST_LABEL = 10, 30
"""Columns of the names of lines, at least and at most: with 12 lengths of 5 columns and short names all fit into 80."""
WIDE = 160
"""Of a file or a pipe."""


def console_for(width: int | None = None) -> Console:
    """As wide as the terminal, or as COLUMNS says; wide where there is neither."""
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    if width or console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, markup=False, emoji=False, width=WIDE)


def show(page: Page, console: Console | None = None) -> None:
    """Print a page; what is folded away and what is drawn is for the other renderers."""
    console = console or console_for()
    screen = Screen(console.width, console.encoding)
    console.print(Line(screen.text(page.title), "bold"))
    console.print(Group(*(part for block in page.blocks for part in _parts(block, screen))))
    scores = [block for block in page.blocks if type(block) is Scores]
    if scores:
        console.print()
        console.print(Line(screen.text(_legend(scores)), "dim"))


def _parts(block: Block, screen: Screen) -> Iterator[ConsoleRenderable]:
    match block:
        case Heading(text):
            yield Line()
            yield Line(screen.text(text), "bold")
        case Text(words):
            yield screen.line(words)
        case Table(header, rows):
            yield from tables(header, rows, screen)
        case Numbered(items, _):
            for number, item in enumerate(items, start=1):
                yield Line(f"{number}. ", "dim").append_text(screen.line(item))
        case Figure() | Details():
            return
        case Scores():
            yield from _scores(block, screen)


@dataclass(frozen=True)
class Ruled:
    """Lines of numbers under each other: a name of `label` columns, then cells of `wide` ones."""

    screen: Screen
    label: int
    wide: int

    def line(self, label: str, cells: Sequence[str], styles: Sequence[str] = ()) -> Line:
        name = f"  {self.screen.text(label)}"
        cut = self.screen.text("…")
        text = Line((name if len(name) < self.label else f"{name[: self.label - 1 - len(cut)]}{cut}").ljust(self.label))
        for cell, style in zip(cells, styles or [""] * len(cells), strict=True):
            text.append(self.screen.text(cell).rjust(self.wide), style=style)
        return text


def _scores(block: Scores, screen: Screen) -> Iterator[ConsoleRenderable]:
    """For each entry a line of its names and a few of numbers, a column for each length; as many at once as fit."""
    wide = max([5, *(len(str(length)) + 1 for length in block.lengths)])
    names = [block.reference, *(series.question for entry in block.entries for series in entry.series)]
    longest = max(len(screen.text(name.removeprefix("the "))) + 3 for name in names)
    ruled = Ruled(screen, min(max(LABEL, longest), max(LABEL, min(LONGEST_LABEL, screen.width - wide))), wide)
    fit = max(1, (screen.width - ruled.label) // wide)
    for start in range(0, len(block.lengths), fit):
        lengths = block.lengths[start : start + fit]
        yield from [Line()] if start else []
        yield from _head(block, lengths, ruled)
        for entry in block.entries:
            yield from _entry(entry, lengths, ruled, block)


def _head(block: Scores, lengths: Sequence[int], ruled: Ruled) -> Iterator[Line]:
    longest = block.trained[1]
    styles = ["bold" if length <= longest else "bold cyan" for length in lengths]
    yield ruled.line("n", [str(length) for length in lengths], styles)
    if block.times:
        yield ruled.line("", [f"{length // longest}×" for length in lengths], ["dim"] * len(lengths))


def _entry(entry: Entry, lengths: Sequence[int], ruled: Ruled, block: Scores) -> Iterator[Line]:
    first, text, reference = entry.series[0], ruled.screen.text, block.reference
    shown = VERDICTS if reference else (MISSING,)
    verdicts = [f"{first.verdicts[verdict]} {verdict}" for verdict in shown if first.verdicts[verdict]]
    known = [f"{text(name)} {text(said)}" for name, said in entry.facts if said != "–"]
    alone = [f"seed {first.seeds[0]}"] if len(first.seeds) == 1 and not first.missing else []
    about = ", ".join([*verdicts, *alone, *known])
    yield Line(text(entry.title), "bold").append(f": {about}" if about else "", "not bold")
    scores = [first.at(length) for length in lengths]
    if any(score.reference is not None for score in scores):
        yield ruled.line(reference.removeprefix("the "), [_two(score.reference) for score in scores])
    yield _means(first, scores, ruled)
    yield from _seeds(first, scores, ruled) if block.each_seed else _range(first, scores, ruled)
    yield from _tokens(scores, ruled)
    for series in entry.series[1:]:
        rest = [series.at(length) for length in lengths]
        yield _means(series, rest, ruled)
        yield from _tokens(rest, ruled)
    if reference:
        marks = [MARKS[score.verdict] for score in scores]
        yield ruled.line("verdict", [mark for mark, _ in marks], [style for _, style in marks])


def _seeds(series: Series, scores: Sequence[Score], ruled: Ruled) -> Iterator[Line]:
    """Every seed, and the interval over the samples of all."""
    seeds = sorted((*series.seeds, *series.missing))
    for seed in seeds if len(seeds) > 1 else ():
        yield ruled.line(f"seed {seed}", [_two(score.by_seed.get(seed)) for score in scores], ["dim"] * len(scores))
    if series.seeds:
        yield from _ends(("low", "high"), [score.interval if score.rows else (None, None) for score in scores], ruled)


def _range(series: Series, scores: Sequence[Score], ruled: Ruled) -> Iterator[Line]:
    """The lowest and the highest of several seeds; of one, the interval over its samples."""
    if len(series.seeds) > 1:
        yield from _ends(("lowest", "highest"), [score.spread or (None, None) for score in scores], ruled)
    else:
        yield from _seeds(series, scores, ruled)


def _ends(names: tuple[str, str], ends: Sequence[tuple[float | None, float | None]], ruled: Ruled) -> Iterator[Line]:
    for name, cells in zip(names, zip(*ends, strict=True), strict=True):
        yield ruled.line(name, [_two(cell) for cell in cells], ["dim"] * len(cells))


def _means(series: Series, scores: Sequence[Score], ruled: Ruled) -> Line:
    shades = ["green" if (score.mean or 0) > GOOD else "" for score in scores]
    return ruled.line(series.question, [_two(score.mean) for score in scores], shades)


def _tokens(scores: Sequence[Score], ruled: Ruled) -> Iterator[Line]:
    """The share of right tokens, where answers have several."""
    if any(score.tokens is not None for score in scores):
        yield ruled.line("tokens", [_two(score.tokens) for score in scores], ["dim"] * len(scores))


def _two(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def _legend(tables: Sequence[Scores]) -> str:
    scores = [score for table in tables for entry in table.entries for series in entry.series for score in series.scores]
    several = any(score.tokens is not None for score in scores)
    tokens = "; tokens: the share of right tokens, where answers have several" if several else ""
    marks = ", ".join(f"{mark} {verdict}" for verdict, (mark, _) in MARKS.items())
    compared = f" {marks}." if tables[0].reference else ""
    return f"Shares of samples that are right, means over seeds, green above {GOOD:.2f}. {_spreads(tables)}{tokens}.{compared}"


def _spreads(tables: Sequence[Scores]) -> str:
    """What the lines below a mean are."""
    if tables[0].each_seed:
        return (
            "How much seeds differ is in their own lines; low and high are the ends of Wilson's interval at 95 % over the "
            "samples of all seeds together, in which that is not"
        )
    seeds = [len(entry.series[0].seeds) for table in tables for entry in table.entries]
    several = ["Lowest and highest are those of the seeds"] if max(seeds) > 1 else []
    alone = ["Low and high are the ends of Wilson's interval at 95 % over the samples of one seed"] if min(seeds) == 1 else []
    return ". ".join([*several, *alone])


def as_text(page: Page, width: int = 80) -> str:
    """A page as plain lines."""
    console = Console(highlight=False, markup=False, emoji=False, width=width, file=io.StringIO(), force_jupyter=False)
    with console.capture() as captured:
        show(page, console)
    return captured.get()
