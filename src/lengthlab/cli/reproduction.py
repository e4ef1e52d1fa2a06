"""What the commands of `lengthlab reproduce` have in common: say how long it will take, train what is missing, gather rows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.progress import duration
from lengthlab.cli.sources import Found, Wanted, found_in
from lengthlab.report.courses import FILE, read_courses, timed

if TYPE_CHECKING:
    from lengthlab.report.curves import Curve
    from lengthlab.run import Run


def train(wanted: Wanted, seeds: int, store: str, device: str, precision: str | None, out: Path) -> Found:
    """Train what the store does not have. On Ctrl-C the rows of what is finished are written, and KeyboardInterrupt goes up."""
    from lengthlab.cli.publication import write_rows
    from lengthlab.cli.work import work
    from lengthlab.report.curves import read_curves
    from lengthlab.store import Store

    runs = list({trial.run.id: trial.run for trial in wanted.trials(range(seeds))}.values())
    before = {course.run: course.step_seconds for course in read_courses(out / FILE) if course.step_seconds is not None}
    steps = before | _announce(runs, store, device, precision)

    def found(curves: Sequence[Curve]) -> Found:
        every = found_in(curves, wanted, range(seeds), typed())
        return replace(every, courses=timed(every.courses, steps))

    try:
        return found(work(runs, store, device, precision=precision))
    except KeyboardInterrupt:
        finished, _ = read_curves([Store(store).folder(run.id) for run in runs if Store(store).folder(run.id).finished])
        if finished:
            rows = found(finished)
            write_rows(rows, out, rows.courses)
            click.echo(f"{len(finished)} of {len(runs)} runs are finished; their rows are in {out}", err=True)
        raise


def _announce(runs: Sequence[Run], store: str, device: str, precision: str | None) -> dict[str, float]:
    """Say how much there is to do, and how long it will take; the seconds of a step of each run that was timed for that."""
    from lengthlab.cli.forecast import forecast, steps_done
    from lengthlab.store import Store

    Store(store).prepare()
    left = [run for run in runs if not Store(store).folder(run.id).finished]
    click.echo(f"{len(runs)} runs, {len(runs) - len(left)} of them finished.", err=True)
    if not left:
        return {}
    click.echo("Timing a few steps of each kind.", err=True)
    ahead = forecast(left, device, steps_done(left, store), precision)
    click.echo(f"The other {len(left)} take about {duration(ahead.seconds)} on {device}.", err=True)
    return dict(ahead.steps)


def best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def typed() -> str:
    """What the user typed, for provenance."""
    return shlex.join(["lengthlab", *sys.argv[1:]])
