"""What `demo` and `train` have in common: train runs under watch, then show what came out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.pages import say
from lengthlab.cli.progress import Progress
from lengthlab.errors import TRACE, LabError, RunFailed
from lengthlab.report.curves import Curve, read_curves
from lengthlab.store import Store
from lengthlab.store.folder import TRACEBACK

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
    """Train what is missing. Runs that fail are named on standard error; exit code 1 if others went well, 2 if none did."""
    from lengthlab.launch import train_all
    from lengthlab.training.examination import examine

    examine(runs, store, device, precision, say=lambda text: say(text, err=True))
    with Progress(runs, store) as progress:
        outcomes = train_all(runs, store, device, workers, progress.look, precision)
    failed = [outcome for outcome in outcomes if outcome.error]
    if TRACE in os.environ:
        for outcome in failed:
            _show_traceback(Store(store).folder(outcome.run.id).path / TRACEBACK)
    if failed and len(runs) == 1:
        raise RunFailed(_failure(failed[0]))
    for outcome in failed:
        say(f"lengthlab: {_failure(outcome)}", err=True)
    folders = [Store(store).folder(outcome.run.id) for outcome in outcomes if not outcome.error]
    curves, problems = read_curves(folders, experiment)
    if problems:
        raise LabError("; ".join(problems))
    if failed and not curves:
        raise LabError(f"all {len(runs)} runs failed")
    if failed:
        click.get_current_context().call_on_close(lambda: _exit(1))
    return curves


def _show_traceback(path: Path) -> None:
    """Where in the code a run failed, if that was kept."""
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            say(line, err=True)


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
