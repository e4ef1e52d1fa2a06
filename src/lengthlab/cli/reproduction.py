"""What the commands of `lengthlab reproduce` have in common: say how long it will take, train what is missing, gather rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.call import best_device, typed
from lengthlab.cli.options import Asked
from lengthlab.cli.progress import duration
from lengthlab.cli.sources import Found, Wanted, found_in, rows_at_hand, together
from lengthlab.report.courses import FILE, read_courses, timed

if TYPE_CHECKING:
    from lengthlab.report.curves import Curve
    from lengthlab.run import Run


def train(wanted: Wanted, seeds: int, asked: Asked, out: Path) -> Found:
    """Train what neither the store nor the rows at hand have. On Ctrl-C the rows of what is finished are written, and
    KeyboardInterrupt goes up.
    """
    from lengthlab.cli.publication import write_rows
    from lengthlab.cli.work import work
    from lengthlab.report.curves import read_curves
    from lengthlab.store import Store

    known = rows_at_hand(asked.have, wanted, range(seeds), typed())
    there = {row.run for row in known.rows}
    runs = [run for run in {trial.run.id: trial.run for trial in wanted.trials(range(seeds))}.values() if run.id not in there]
    before = {course.run: course.step_seconds for course in read_courses(out / FILE) if course.step_seconds is not None}
    device = asked.device or best_device()
    steps = before | _announce(runs, device, asked)

    def found(curves: Sequence[Curve]) -> Found:
        every = found_in(curves, wanted, range(seeds), typed())
        return together({"what was trained": replace(every, courses=timed(every.courses, steps)), "--have": known})

    try:
        return found(work(runs, asked.store, device, precision=asked.precision) if runs else [])
    except KeyboardInterrupt:
        place = Store(asked.store)
        finished, _ = read_curves([place.folder(run.id) for run in runs if place.folder(run.id).finished])
        if finished:
            write_rows(found(finished), out)
            click.echo(f"{len(finished)} of {len(runs)} runs are finished; their rows are in {out}", err=True)
        raise


def _announce(runs: Sequence[Run], device: str, asked: Asked) -> dict[str, float]:
    """Say how much there is to do, and how long it will take; the seconds of a step of each run that was timed for that."""
    from lengthlab.cli.forecast import forecast, steps_done
    from lengthlab.store import Store

    Store(asked.store).prepare()
    left = [run for run in runs if not Store(asked.store).folder(run.id).finished]
    click.echo(f"{len(runs)} runs, {len(runs) - len(left)} of them finished.", err=True)
    if not left:
        return {}
    click.echo("Timing a few steps of each kind.", err=True)
    ahead = forecast(left, device, steps_done(left, asked.store), asked.precision)
    click.echo(f"The other {len(left)} take about {duration(ahead.seconds)} on {device}.", err=True)
    return dict(ahead.steps)
