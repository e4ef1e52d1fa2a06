"""The accuracy-by-length table: for the terminal, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import fields

from rich import box
from rich.table import Table
from rich.text import Text

from lengthlab.report.curves import Curve
from lengthlab.report.markdown import table_row
from lengthlab.rows import Row

GOOD, BAD = 0.9, 0.6
"""Green above, as in the paper; red below."""


def names_of(curves: Sequence[Curve]) -> list[str]:
    """The columns that tell runs apart: the task where there are several, the id where nothing else does."""
    names = ["model", "training", "seed"]
    if len({curve.first.task for curve in curves}) > 1:
        names.insert(0, "task")
    told = {tuple(getattr(curve.first, name) for name in names) for curve in curves}
    return names if len(told) == len(curves) else [*names, "run"]


def lengths_of(curves: Sequence[Curve]) -> list[int]:
    return sorted({length for curve in curves for length in curve.lengths})


def terminal_table(curves: Sequence[Curve]) -> Table:
    """A row for each run and question; lengths beyond the training range are set apart."""
    plain = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title="Accuracy by length", title_justify="left", header_style="bold", **plain)  # type: ignore[arg-type]
    named = names_of(curves)
    for name in (*named, "right"):
        table.add_column(name, no_wrap=True)
    reached = max(curve.trained[1] for curve in curves)
    for length in lengths_of(curves):
        style = "" if length <= reached else "cyan"
        table.add_column(f"n={length}", justify="right", header_style=f"bold {style}", no_wrap=True)
    for curve in curves:
        for place, question in enumerate(curve.questions):
            names = [str(getattr(curve.first, name)) if place == 0 else "" for name in named]
            cells = [_coloured(curve.row(length, question)) for length in lengths_of(curves)]
            table.add_row(*names, question, *cells, end_section=place + 1 == len(curve.questions))
    return table


def _coloured(row: Row | None) -> Text:
    if row is None:
        return Text("–", style="dim")
    colour = "green" if row.accuracy > GOOD else "red" if row.accuracy < BAD else "yellow"
    return Text(f"{row.accuracy:.3f}", style=colour)


def markdown(curves: Sequence[Curve]) -> str:
    """The table with a Wilson interval (95 %) in every cell, and under it where the numbers come from."""
    lengths, named = lengths_of(curves), [name for name in names_of(curves) if name != "run"]
    header = [*named, "right", *(f"n={length}" for length in lengths), "run"]
    lines = [table_row(*header), table_row(*["---"] * len(header))]
    for curve in curves:
        for question in curve.questions:
            names = [str(getattr(curve.first, name)) for name in named]
            cells = [_with_interval(curve.row(length, question)) for length in lengths]
            lines.append(table_row(*names, question, *cells, f"`{curve.first.run}`"))
    return "\n".join([*lines, "", *provenance(curves)]) + "\n"


def _with_interval(row: Row | None) -> str:
    return "–" if row is None else f"{row.accuracy:.3f} ({row.interval[0]:.3f}–{row.interval[1]:.3f})"


def provenance(curves: Sequence[Curve]) -> list[str]:
    """What a reader must know to trust the table."""
    seeds = sorted({curve.first.seed for curve in curves})
    samples = sorted({row.total for curve in curves for row in curve.rows})
    trained = sorted({f"{curve.trained[0]}…{curve.trained[1]}" for curve in curves})
    chance = sorted({f"{curve.first.task}: {curve.chance['both']:.3g}" for curve in curves})
    made = sorted({f"{curve.made['hardware']}, torch {curve.made['versions']['torch']}" for curve in curves})
    return [
        f"Training lengths n = {', '.join(trained)}. Seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.",
        f"{' or '.join(map(str, samples))} samples a cell, Wilson intervals at 95 %; `both` by chance: {', '.join(chance)}.",
        f"Made on {'; '.join(made)}.",
    ]


def as_csv(curves: Sequence[Curve]) -> str:
    """One line for each run, length and question, with the field names of published rows and the interval."""
    text = io.StringIO()
    names = [field.name for field in fields(Row)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "accuracy", "low", "high"])
    for curve in curves:
        for row in curve.rows:
            numbers = [f"{number:.4f}" for number in (row.accuracy, *row.interval)]
            writer.writerow([*(getattr(row, name) for name in names), *numbers])
    return text.getvalue()
