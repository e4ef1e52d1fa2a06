"""`lengthlab report`"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthlab.report.sources import Sources


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("--out", type=options.Place(path_type=Path), help="Folder to write to; RUNS/report if not given.")
@click.option("--each-seed", is_flag=True, help="Show every seed beside the range over them.")
@options.as_json
def report(runs: tuple[str, ...], out: Path | None, each_seed: bool, as_json: bool) -> None:
    """Finished runs: which setting is best and by which rule, tables and figures. RUNS are run folders, stores, or `published`.

    Runs are named by what differs between them; those that differ in their seed alone are one setting. The terminal shows it;
    report.html is written, one page that opens from disk, and Markdown, CSV, JSON, PNG and SVG. Of published rows it is an
    index of studies with their claims and verdicts, and leads to a page for each.
    """
    from lengthlab.cli.work import show
    from lengthlab.report.sources import only_published, read_sources
    from lengthlab.store import check_place

    if out:
        check_place(out, "--out")
    command = shlex.join(["lengthlab", "report", *runs])
    found, rows = read_sources(runs), only_published(runs)
    if rows and not as_json:
        write_site(found, rows, out or _place(runs[0]), command)
        return
    for line in found.left_out:
        say(f"lengthlab: left out: {line}", err=True)
    if not found.curves:
        raise LabError(f"no finished run in {', '.join(runs)}")
    show(found.curves, as_json, each_seed)
    if not as_json:
        _keep(found, out or _place(runs[0]), command)


def _keep(found: Sources, folder: Path, command: str) -> None:
    """Write the files, unless they are there already."""
    from lengthlab.report.cache import key_of, made_before, remember

    key = key_of(found, command)
    before = made_before(folder, key)
    written = [] if before else write_report(found, folder, command)
    for path in before:
        say(f"{path} is as these runs are")
    for path in written:
        say(f"wrote {path}")
    if written:
        remember(folder, key, written)


def _place(name: str) -> Path:
    """Beside the runs; published rows are nobody's to write beside."""
    path = Path(name)
    return path / "report" if (path / "run.json").exists() or any(path.glob("*/run.json")) else Path("report")


def write_site(found: Sources, rows: Sequence[Path], folder: Path, command: str) -> None:
    """The index of published studies, on the terminal and with a page for each, and all rows."""
    from lengthlab.cli.pages import show_page
    from lengthlab.report.publication import write_files
    from lengthlab.report.result_table import ResultTable
    from lengthlab.report.study_site import index_page, read_site, site_files

    site = read_site(rows)
    for line in site.problems:
        say(f"lengthlab: left out: {line}", err=True)
    if not site.studies:
        raise LabError(f"no rows of a study that is known here in {', '.join(map(str, rows))}")
    show_page(index_page(site))
    table = ResultTable(found.curves)
    data = {"table.csv": table.to_csv().encode(), "table.json": table.to_json().encode()}
    for path in write_files(folder, site_files(site, command) | data):
        say(f"wrote {path}")


def write_report(found: Sources, folder: Path, command: str = "") -> list[Path]:
    """The files of a report; without figures where they cannot be drawn."""
    from lengthlab.cli.pages import drawn
    from lengthlab.report.html_page import report_html
    from lengthlab.report.markdown import markdown
    from lengthlab.report.publication import write_files
    from lengthlab.report.result_table import ResultTable
    from lengthlab.report.runs_page import runs_page

    page, table = runs_page(found.curves, each_seed=True), ResultTable(found.curves)
    pictures = drawn(page)
    text = markdown(page, figures=pictures).encode()
    data = {"table.csv": table.to_csv().encode(), "table.json": table.to_json().encode()}
    return write_files(folder, {"report.html": report_html(found, command), "table.md": text, **data, **pictures})
