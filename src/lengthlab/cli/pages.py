"""How a command speaks: a line, a card, or a page, with its figures drawn where they can be."""

from __future__ import annotations

import os
import re
import shutil
import sys

import click

from lengthlab.errors import LabError
from lengthlab.report.page import Page, visible

COLUMN = re.compile(r" {2,}(?=\S)")
"""What stands before a column of a line."""


def say(text: str, err: bool = False) -> None:
    """A line, whatever is in it: nothing that a terminal would obey. It is one line, however long: paths and commands in it are
    copied.
    """
    click.echo(visible(text), err=err)


def say_queued(number: int, store: str, options: str = "") -> None:
    """What is to be done where runs were put into a store; `options` that their workers need."""
    if not number:
        say(f"nothing is left to do in {store}: these runs are finished", err=True)
        return
    waits = "1 run waits" if number == 1 else f"{number} runs wait"
    say(f"{waits} in {store}; on every machine that sees it: lengthlab worker {store}{options}", err=True)


def tell(lines: str) -> None:
    """Lines of a card, as they are; in a terminal none is wider than it, and what goes on stands below its column."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else 0
    for line in lines.split("\n"):
        click.echo(folded(line, width) if width else line)


def folded(line: str, width: int) -> str:
    """A line in several, broken between words, with its styles.

    >>> folded("recall   The value of one key", 20)
    'recall   The value\\n         of one key'
    """
    bare = click.unstyle(line)
    if len(bare) <= width:
        return line
    columns = [found.end() for found in COLUMN.finditer(bare) if found.end() <= 0.6 * width]
    hanging = " " * (columns[-1] if columns else len(bare) - len(bare.lstrip()))
    done, now = [], ""
    for word in re.findall(r" *[^ ]+", line):
        if now.strip() and len(click.unstyle(now + word)) > width:
            done.append(now)
            now = hanging + word.lstrip()
        else:
            now += word
    return "\n".join([*done, now])


def show_page(page: Page) -> None:
    """Print it, without a table wider than the terminal."""
    from lengthlab.report.terminal import show

    show(page)


def drawn(page: Page) -> dict[str, bytes]:
    """Its figures; none where they cannot be drawn: the rest is written all the same."""
    from lengthlab.report.figure import pictures

    try:
        return pictures(page)
    except LabError as error:
        say(f"no figure: {error}", err=True)
        return {}
