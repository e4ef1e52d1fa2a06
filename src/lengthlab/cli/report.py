"""`lengthlab report`"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError

if TYPE_CHECKING:
    from lengthlab.report.curves import Curve


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("--out", type=options.Place(path_type=Path), help="Folder to write to; RUNS/report if not given.")
@click.option("--each-seed", is_flag=True, help="Show every seed beside the range over them.")
@options.as_json
def report(runs: tuple[str, ...], out: Path | None, each_seed: bool, as_json: bool) -> None:
    """Finished runs: which setting is best and by which rule, tables and figures. RUNS are run folders or stores.

    Runs are named by what differs between them; those that differ in their seed alone are one setting. The terminal shows it;
    Markdown, CSV, JSON, PNG and SVG are written.
    """
    from lengthlab.cli.work import show
    from lengthlab.report.curves import read_curves
    from lengthlab.store import check_place, named_folders

    if out:
        check_place(out, "--out")
    curves, problems = read_curves(named_folders(runs))
    curves.sort(key=lambda curve: curve.first.seed)
    for problem in problems:
        say(f"lengthlab: left out: {problem}", err=True)
    if not curves:
        raise LabError(f"no finished run in {', '.join(runs)}")
    show(curves, as_json, each_seed)
    if not as_json:
        for path in write_report(curves, out or Path(runs[0]) / "report"):
            say(f"wrote {path}")


def write_report(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """The files of a report; without figures where they cannot be drawn."""
    from lengthlab.cli.pages import drawn
    from lengthlab.report.markdown import markdown
    from lengthlab.report.publication import write_files
    from lengthlab.report.result_table import ResultTable
    from lengthlab.report.runs_page import runs_page

    page, table = runs_page(curves, each_seed=True), ResultTable(tuple(curves))
    pictures = drawn(page)
    text = markdown(page, figures=pictures).encode()
    data = {"table.csv": table.to_csv().encode(), "table.json": table.to_json().encode()}
    return write_files(folder, {"table.md": text, **data, **pictures})
