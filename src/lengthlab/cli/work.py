"""What `demo` and `train` have in common: train runs under watch, then show what came out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.pages import say
from lengthlab.errors import TRACE, LabError, RunFailed
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.kept import kept_curves
from lengthlab.store import Store
from lengthlab.store.folder import TRACEBACK
from lengthlab.store.garbage_collection import collected, uncollected

if TYPE_CHECKING:
    from lengthlab.launch import Outcome
    from lengthlab.launch.cluster import Cluster
    from lengthlab.spec.run import Run


def work(
    runs: Sequence[Run],
    store: str,
    device: str,
    workers: int | None = None,
    precision: str | None = None,
    progress: bool = True,
    track: Sequence[str] = (),
    cluster: Cluster | None = None,
) -> list[Curve]:
    """Train what is missing; curves have the lengths that the runs ask for, whatever else was measured of them. Runs that fail
    are named on standard error; exit code 1 if others went well, 2 if none did.
    """
    from lengthlab.device import device_named

    runs = list({run.id: run for run in runs}.values())  # named twice, it is one all the same
    if not cluster:
        device_named(device)  # refused, whatever is left to do
    curves = {} if cluster or track else kept_curves(runs, store)
    left = [run for run in runs if run.id not in curves]
    outcomes = _outcomes(left, store, device, workers, precision, progress, track, cluster) if left else []
    failed = [outcome for outcome in outcomes if outcome.error]
    if TRACE in os.environ:
        for outcome in failed:
            _show_traceback(Store(store).folder(outcome.run.id).path / TRACEBACK)
    if failed and len(runs) == 1:
        raise RunFailed(_failure(failed[0]))
    for outcome in failed:
        say(f"lengthlab: {_failure(outcome)}", err=True)
    folders = {outcome.run.id: Store(store).folder(outcome.run.id) for outcome in outcomes if not outcome.error}
    fresh, problems = read_curves(list(folders.values()))
    if problems:
        raise LabError("; ".join(problems))
    curves |= dict(zip(folders, fresh, strict=True))
    if failed and not curves:
        raise LabError(f"all {len(runs)} runs failed")
    if failed:
        click.get_current_context().call_on_close(lambda: _exit(1))
    return [curves[run.id].at(run.measured_at) for run in runs if run.id in curves]


def _outcomes(
    runs: Sequence[Run],
    store: str,
    device: str,
    workers: int | None,
    precision: str | None,
    progress: bool,
    track: Sequence[str],
    cluster: Cluster | None,
) -> list[Outcome]:
    """Of runs that are to be trained or measured, here or on a cluster."""
    from lengthlab.launch import try_all
    from lengthlab.launch.cluster import try_all_on

    with collected(), redirect_stdout(sys.stderr):  # what users' code prints while it trains is no part of the answer
        if cluster:
            return try_all_on(cluster, runs, store, device, precision, progress, track)
        return try_all(runs, store, device, workers, precision, progress, track)


def _show_traceback(path: Path) -> None:
    """Where in the code a run failed, if that was kept."""
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            say(line, err=True)


def _failure(outcome: Outcome) -> str:
    return f"{outcome.run.title} (run {outcome.run.id}) failed: {outcome.error}"


def _exit(code: int) -> None:
    raise click.exceptions.Exit(code)


@uncollected()
def show(curves: Sequence[Curve], as_json: bool, each_seed: bool = False) -> None:
    """The rows as JSON, or the page of these runs."""
    from lengthlab.cli.pages import show_page
    from lengthlab.report.result_table import ResultTable
    from lengthlab.report.runs_page import runs_page

    if as_json:
        click.echo(ResultTable(tuple(curves)).to_json())
        return
    show_page(runs_page(curves, each_seed, details=False))
