"""Tables in a terminal, none wider than it: several where one is too wide, with no number cut and no word lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import ConsoleRenderable
from rich.table import Table as Grid
from rich.text import Text as Line

from lengthlab.report.page import Words, plain
from lengthlab.report.screen import Screen

GAP = 2
"""Columns between two of a table."""
NUMBER = re.compile(r"[-–\d.,:;()±×%/ ]*")
"""Cells that stand on the right of their column, where all of it are, and that are never broken."""
PLAIN_HEAD = box.Box("    \n    \n -- \n" + 5 * "    \n", ascii=True)
"""A rule below the header, of letters that every terminal has."""


def tables(header: Sequence[str], rows: Sequence[Sequence[Words]], screen: Screen) -> Iterator[ConsoleRenderable]:
    """A table where it fits; else several, with some of its last columns in each, where these are numbers; else each of its
    rows as a few lines, a cell in each.
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(cell_len(screen.text(plain(cell))) for cell in column) for column in columns]
    last = len(header)  # of the columns that say what a row is; those after it are numbers
    while last and rows and all(NUMBER.fullmatch(plain(cell)) for cell in columns[last - 1][1:]):
        last -= 1
    pages = list(_paged(widths, last, screen.width))
    if not pages:
        yield _records(header, rows, screen)
    for number, page in enumerate(pages):
        yield from [Line()] if number else []
        yield _grid([header[at] for at in page], [[row[at] for at in page] for row in rows], screen)


def _paged(widths: Sequence[int], last: int, width: int) -> Iterator[list[int]]:
    """Which columns stand together: the first ones in every table, and as many of the others as fit; none where that cannot be.

    >>> list(_paged([5, 4, 4, 4], last=1, width=17))
    [[0, 1, 2], [0, 3]]
    """
    if sum(widths) + GAP * (len(widths) - 1) <= width:
        yield list(range(len(widths)))
        return
    room = width - sum(GAP + wide for wide in widths[:last])
    if not 0 < last < len(widths) or max(widths[last:]) > room:
        return
    page: list[int] = []
    for at in range(last, len(widths)):
        if page and sum(widths[each] + GAP for each in (*page, at)) - GAP > room:
            yield [*range(last), *page]
            page = []
        page.append(at)
    yield [*range(last), *page]


def _grid(header: Sequence[str], rows: Sequence[Sequence[Words]], screen: Screen) -> ConsoleRenderable:
    grid = Grid(
        box=PLAIN_HEAD if screen.plain else box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for name, *cells in zip(header, *rows, strict=True):
        numbers = bool(cells) and all(NUMBER.fullmatch(plain(cell)) for cell in cells)
        grid.add_column(Line(screen.text(name)), no_wrap=True, justify="right" if numbers else "left")
    for row in rows:
        grid.add_row(*(screen.line(cell) for cell in row))
    return grid


def _records(header: Sequence[str], rows: Sequence[Sequence[Words]], screen: Screen) -> ConsoleRenderable:
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column(style="dim", max_width=screen.width // 3, overflow="fold")
    grid.add_column(overflow="fold")
    for row in rows:
        for number, (name, cell) in enumerate(zip(header, row, strict=True), start=1):
            grid.add_row(Line(screen.text(name)), screen.line(cell), end_section=number == len(row))
        grid.add_row("", "")
    return grid
