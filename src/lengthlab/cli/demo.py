"""`lengthlab demo`"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.options import DEFAULT_STORE
from lengthlab.cli.pages import say

if TYPE_CHECKING:
    from lengthlab.report.curves import Curve


SHOWN = 6
"""Digits of an id that are enough to tell two runs apart."""


@click.command()
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Weights and data are drawn from it.")
@options.store
@options.device
@options.progress
@options.opened
@options.as_json
def demo(seed: int, store: str, device: str, progress: bool, open_it: bool, as_json: bool) -> None:
    """See the effect: one small hybrid, trained end to end and with delayed attention, on this machine, in minutes.

    Both are trained on sequences of 1 to 10 key-value pairs, side by side, the delayed one with no more steps, and then
    measured on up to 60 pairs. Stop it when you like: the same command goes on where it was.
    """
    from lengthlab.cli.live_page import live_page

    with live_page(store, open_it):
        _demo(seed, store, device, progress, as_json)


def _demo(seed: int, store: str, device: str, progress: bool, as_json: bool) -> None:
    from lengthlab.cli.report import write_report
    from lengthlab.cli.work import show, work
    from lengthlab.experiments.demo import demo as runs_of_demo
    from lengthlab.report.sources import Sources

    curves = work(runs_of_demo([seed]), store, device, progress=progress)
    show(curves, as_json)
    click.echo(summary(curves), err=as_json)
    for path in write_report(Sources(tuple(curves)), Path(store) / f"demo-seed-{seed}", f"lengthlab demo --seed {seed}"):
        say(f"wrote {path}", err=as_json)
    for line in next_steps(curves, store):
        say(line, err=as_json)


def next_steps(curves: list[Curve], store: str) -> list[str]:
    """What can be typed now: the runs are there, and have names."""
    kept = "" if store == DEFAULT_STORE else f" --store {shlex.quote(store)}"
    names = {curve.first.run[:SHOWN]: curve.first.training for curve in curves}
    measure = [f"  lengthlab evaluate {run} --lengths 15,50{kept}   # {training}" for run, training in names.items()]
    asked = [f"  lengthlab why {run}{kept}   # {training}" for run, training in names.items()]
    return ["Next:", *measure, *asked, f"  lengthlab report {shlex.quote(store)}"]


def summary(curves: list[Curve]) -> str:
    """The finding, in two sentences."""
    from lengthlab.store.rows import ALL

    said = []
    for curve in curves:
        rows = [curve.row(length, ALL) for length in (10, 30, 60)]
        cells = [f"{row.accuracy:.1%} at n={row.length}" for row in rows if row]
        said.append(f"{curve.first.training}: {', '.join(cells)}")
    return f"\nTrained on n = 1…10, both questions right. {'; '.join(said)}."
