"""What a reproduction shows, and the files it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console

from lengthlab.cli.report import write_files
from lengthlab.errors import LabError
from lengthlab.report import courses, provenance
from lengthlab.report.courses import Course
from lengthlab.report.page import page
from lengthlab.report.provenance import Making
from lengthlab.report.readings import readings_board
from lengthlab.report.results import Results
from lengthlab.report.scoreboard import scoreboard
from lengthlab.report.study import Findings
from lengthlab.report.study_figure import study_pictures
from lengthlab.report.study_table import study_page, study_table
from lengthlab.rows import FILE, Row, as_jsonl

PAGE = "results.md"
WIDEST = 1_000
"""Columns that no table needs."""
Pictures = Mapping[str, bytes]
"""What `grids` draws; empty where it cannot."""


class Rows(Protocol):
    """Rows, how they were made, and how the training of their runs went."""

    @property
    def rows(self) -> tuple[Row, ...]: ...

    @property
    def made(self) -> tuple[Making, ...]: ...

    @property
    def courses(self) -> tuple[Course, ...]: ...


def wide_console() -> Console:
    """Of the terminal's width, or wide enough for any table where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def show(results: Results) -> None:
    """The comparison, and where its numbers come from."""
    console = wide_console()
    if results.tables:
        console.print(scoreboard(results))
    if "readings" in results.parts:
        console.print(readings_board(results))
    show_made(console, results)


def show_made(console: Console, results: Rows) -> None:
    for making in results.made:
        where = f"profile {making.profile}, on {making.hardware}, {making.date}"
        said = f"Made by `{making.command}`, commit {making.commit}, {where}."
        console.print(said, style="dim", markup=False, soft_wrap=True)


def write_rows(results: Rows, folder: Path) -> list[Path]:
    """`results.jsonl`, `provenance.json` and, where it is known how training went, `courses.jsonl`: what `--from` reads."""
    files = {FILE: as_jsonl(results.rows), provenance.FILE: provenance.as_text(results.made)}
    files |= {courses.FILE: courses.as_jsonl(results.courses)} if results.courses else {}
    return write_files(folder, {name: text.encode() for name, text in files.items()})


def write_results(results: Results, folder: Path, pictures: Pictures) -> list[Path]:
    """Rows, page and figures."""
    return write_rows(results, folder) + write_files(folder, {PAGE: page(results).encode(), **pictures})


def page_files(results: Results, path: Path, pictures: Pictures) -> dict[str, bytes]:
    """The page by the name of `path`, and its figures in the folder of that name beside it."""
    drawn = {f"{path.stem}/{name}": data for name, data in pictures.items() if name.endswith(".svg")}
    return {path.name: page(results, f"{path.stem}/").encode(), **drawn}


def drawn(draw: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """Pictures; none where they cannot be drawn: the rest is written all the same."""
    try:
        return draw()
    except LabError as error:
        click.echo(f"no figure: {error}", err=True)
        return {}


def show_study(study: Findings) -> None:
    """The table of a study, and where its numbers come from."""
    table = study_table(study)
    needed = Console(width=WIDEST).measure(table).maximum
    console = wide_console()
    console.width = max(console.width, needed)  # a narrow terminal wraps lines, but no number is cut
    console.print(table)
    show_made(console, study)


def write_study(study: Findings, folder: Path, path: Path | None) -> list[Path]:
    """Rows, page and figures into a folder; the page and its figures by a path."""
    pictures = drawn(lambda: study_pictures(study))
    written = write_rows(study, folder)
    written += write_files(folder, {f"{study.name}.md": study_page(study).encode(), **pictures})
    return written + (write_files(path.parent, study_files(study, path, pictures)) if path else [])


def study_files(study: Findings, path: Path, pictures: Pictures) -> dict[str, bytes]:
    """The page of a study by the name of `path`, and its figure in the folder of that name beside it."""
    figures = {f"{path.stem}/{name}": data for name, data in pictures.items() if name.endswith(".svg")}
    return {path.name: study_page(study, f"{path.stem}/").encode(), **figures}


def write_page(results: Results, path: Path, pictures: Pictures) -> list[Path]:
    """The page and its figures, and nothing else."""
    return write_files(path.parent, page_files(results, path, pictures))
