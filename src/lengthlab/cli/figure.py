"""`lengthlab figure`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError, require


class Width(click.ParamType):  # type: ignore[type-arg]  # older click cannot be subscripted
    """`column`, `text`, `3.3`"""

    name = "width"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from lengthlab.report.paper import WIDTHS

        try:
            inches = WIDTHS[value] if value in WIDTHS else float(value)
        except ValueError:
            inches = 0.0
        if not 1.5 <= inches <= 30:
            self.fail(f"'{value}': say column, text, or inches from 1.5 to 30", param, ctx)
        return inches


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("-o", "--out", required=True, type=options.Place(path_type=Path), metavar="FILE", help="fig.pdf, .svg or .png")
@click.option("--width", type=Width(), default="column", show_default=True, help="column (3.25 inches), text (6.75) or inches.")
@click.option("--question", "questions", multiple=True, help="Show this one, `all` for instance; may be repeated.")
@click.option("--task", default="", help="Where RUNS are of several tasks: a part of the name of one.")
def figure(name: str, runs: tuple[str, ...], out: Path, width: float, questions: tuple[str, ...], task: str) -> None:
    """A figure of finished runs for a paper (curves, heatmap, reach, training, why), and what its caption should say.

    PDF (fonts inside, as text) and SVG are vectors, PNG has 300 dots an inch. It has the width you say, without a title,
    and letters of 7 to 9 points. RUNS are those of `lengthlab report`.

    \b
    lengthlab figure curves runs -o curves.pdf --question all
    lengthlab figure heatmap runs -o heatmap.pdf --width text
    lengthlab figure reach published -o reach.svg --task modulo-recall
    """
    from lengthlab.report.paper import FIGURES, FORMS, Wanted, paper_figure
    from lengthlab.report.sources import read_sources
    from lengthlab.store import check_place
    from lengthlab.store.disk import replace_file

    require(name in FIGURES, f"there is no figure '{name}': one of {', '.join(FIGURES)}")
    form = out.suffix.lstrip(".").lower()
    require(form in FORMS, f"-o is a file that ends in .pdf, .svg or .png, not {out}")
    require(not out.is_dir(), f"-o is a file, and {out} is a folder")
    check_place(out.parent, "-o: the folder")
    found = read_sources(runs)
    for line in found.left_out:
        say(f"lengthlab: left out: {line}", err=True)
    if not found.curves:
        raise LabError(f"no finished run in {', '.join(runs)}")
    made = paper_figure(found.curves, Wanted(name, width, task, questions), form)
    replace_file(out, made.content)
    for line in made.left_out:
        say(f"lengthlab: {line}", err=True)
    say(f"caption: {made.caption}")
    say(f"wrote {out}")
