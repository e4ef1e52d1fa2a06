"""What a reproduction shows, and the files it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from lengthlab.cli.report import write_files
from lengthlab.report import provenance
from lengthlab.report.page import page
from lengthlab.report.readings import readings_board
from lengthlab.report.results import Results
from lengthlab.report.scoreboard import scoreboard
from lengthlab.rows import FILE, as_jsonl

PAGE = "results.md"
Pictures = Mapping[str, bytes]
"""What `grids` draws; empty where it cannot."""


def show(results: Results) -> None:
    """The comparison, and where its numbers come from."""
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=160)
    if results.tables:
        console.print(scoreboard(results))
    if "readings" in results.parts:
        console.print(readings_board(results))
    for making in results.made:
        where = f"profile {making.profile}, on {making.hardware}, {making.date}"
        said = f"Made by `{making.command}`, commit {making.commit}, {where}."
        console.print(said, style="dim", markup=False, soft_wrap=True)


def write_rows(results: Results, folder: Path) -> list[Path]:
    """`results.jsonl` and `provenance.json`: what `--from` reads."""
    files = {FILE: as_jsonl(results.rows), provenance.FILE: provenance.as_text(results.made)}
    return write_files(folder, {name: text.encode() for name, text in files.items()})


def write_results(results: Results, folder: Path, pictures: Pictures) -> list[Path]:
    """Rows, page and figures."""
    return write_rows(results, folder) + write_files(folder, {PAGE: page(results).encode(), **pictures})


def page_files(results: Results, path: Path, pictures: Pictures) -> dict[str, bytes]:
    """The page by the name of `path`, and its figures in the folder of that name beside it."""
    drawn = {f"{path.stem}/{name}": data for name, data in pictures.items() if name.endswith(".svg")}
    return {path.name: page(results, f"{path.stem}/").encode(), **drawn}


def write_page(results: Results, path: Path, pictures: Pictures) -> list[Path]:
    """The page and its figures, and nothing else."""
    return write_files(path.parent, page_files(results, path, pictures))
