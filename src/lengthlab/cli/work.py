"""What `demo` and `train` have in common: train runs under watch, then show what came out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lengthlab.cli.pages import say
from lengthlab.cli.progress import Progress
from lengthlab.errors import LabError, RunFailed
from lengthlab.report.curves import Curve, read_curves
from lengthlab.store import Store
from lengthlab.store.ids import SHORT

if TYPE_CHECKING:
    from lengthlab.launch import Outcome
    from lengthlab.spec.run import Run


def work(
    runs: Sequence[Run],
    store: str,
    device: str,
    workers: int | None = None,
    precision: str | None = None,
    experiment: str = "",
) -> list[Curve]:
    """Train what is missing; curves have the lengths that the runs ask for, whatever else was measured of them. Runs that fail
    are named on standard error; exit code 1 if others went well, 2 if none did.
    """
    from lengthlab.launch import train_all

    with Progress(runs, store) as progress:
        outcomes = train_all(runs, store, device, workers, progress.look, precision)
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed and len(runs) == 1:
        raise RunFailed(_failure(failed[0]))
    for outcome in failed:
        say(f"lengthlab: {_failure(outcome)}", err=True)
    folders = [Store(store).folder(outcome.run.id) for outcome in outcomes if not outcome.error]
    curves, problems = read_curves(folders, experiment)
    if problems:
        raise LabError("; ".join(problems))
    asked = {run.id[:SHORT]: run.measured_at for run in runs}
    curves = [curve.at(asked[curve.first.run[:SHORT]]) for curve in curves]
    if failed and not curves:
        raise LabError(f"all {len(runs)} runs failed")
    if failed:
        click.get_current_context().call_on_close(lambda: _exit(1))
    return curves


def _failure(outcome: Outcome) -> str:
    return f"{outcome.run.label} (run {outcome.run.id}) failed: {outcome.error}"


def _exit(code: int) -> None:
    raise SystemExit(code)


def show(curves: Sequence[Curve], as_json: bool) -> None:
    """The rows as JSON, or the page of these runs."""
    if as_json:
        click.echo(json.dumps([row.to_json() for curve in curves for row in curve.rows], indent=1))
        return
    from lengthlab.cli.pages import show_page
    from lengthlab.report.runs_page import runs_page

    show_page(runs_page(curves))
