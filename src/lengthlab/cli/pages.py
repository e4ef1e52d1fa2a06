"""How a command speaks: a line, or a page, with its figures drawn where they can be."""

from __future__ import annotations

import click

from lengthlab.errors import LabError
from lengthlab.report.page import Page, visible


def say(text: str, err: bool = False) -> None:
    """A line, whatever is in it: nothing that a terminal would obey."""
    click.echo(visible(text), err=err)


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
