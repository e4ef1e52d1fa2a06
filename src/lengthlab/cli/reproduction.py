"""What `lengthlab reproduce` does before it shows anything: say how long it will take, train what is missing, gather rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.options import Asked
from lengthlab.cli.pages import say
from lengthlab.report.evidence import Evidence, Wanted, evidence_of, rows_at_hand, together
from lengthlab.report.traces import read_traces, timed
from lengthlab.store.ids import SHORT
from lengthlab.store.status import duration

if TYPE_CHECKING:
    import torch

    from lengthlab.launch.cluster import Cluster
    from lengthlab.report.curves import Curve
    from lengthlab.spec.run import Run


def device_of(cluster: Cluster | None, named: str) -> torch.device:
    """What runs are trained on: of this machine, or of a cluster, which need not be like it."""
    import torch

    from lengthlab.device import device_named

    if cluster is None:
        return device_named(named)
    cluster.connect()
    return torch.device(cluster.device(named))


def lacking(wanted: Wanted, seeds: int, have: Sequence[str]) -> tuple[Evidence, list[Run]]:
    """The rows at hand, and the runs that they lack, each with every length at which one of its arms is measured."""
    known = rows_at_hand(have, wanted, range(seeds))
    there = {row.run[:SHORT] for row in known.rows}
    every: dict[str, Run] = {}
    for _, run in wanted.runs(range(seeds)):  # two arms may share a run, and be measured at different lengths
        lengths = every[run.id].evaluate if run.id in every else ()
        every[run.id] = replace(run, evaluate=tuple(dict.fromkeys((*lengths, *run.evaluate))))
    return known, [run for run in every.values() if run.id[:SHORT] not in there]


def train(
    wanted: Wanted, seeds: int, device: torch.device, asked: Asked, out: Path, cluster: Cluster | None = None
) -> Evidence:
    """Train what neither the store nor the rows at hand have. On Ctrl-C the rows of what is finished are written, and
    KeyboardInterrupt goes up.
    """
    from lengthlab.cli.work import work
    from lengthlab.report.curves import read_curves
    from lengthlab.report.publication import row_files, write_files
    from lengthlab.store import Store

    known, runs = lacking(wanted, seeds, asked.have)
    before = {trace.run: trace.step_seconds for trace in read_traces(out) if trace.step_seconds is not None}
    steps = before | (_announce(runs, device, asked) if cluster is None else {})

    def found(curves: Sequence[Curve]) -> Evidence:
        trained = evidence_of(curves, wanted, range(seeds))
        return together({"what was trained": replace(trained, traces=timed(trained.traces, steps)), "--have": known})

    try:
        where = str(device), None, asked.precision, asked.progress, asked.track, cluster
        return found(work(runs, asked.store, *where) if runs else [])
    except KeyboardInterrupt:
        place = Store(asked.store)
        finished, _ = read_curves([place.folder(run.id) for run in runs if place.folder(run.id).finished])
        if finished:
            write_files(out, row_files(found(finished)))
            say(f"{len(finished)} of {len(runs)} runs are finished; their rows are in {out}", err=True)
        raise


def _announce(runs: Sequence[Run], device: torch.device, asked: Asked) -> dict[str, float]:
    """Say how much there is to do, and how long it will take; the seconds of a step of each run that was timed for that."""
    from lengthlab.device import in_words
    from lengthlab.store import Store
    from lengthlab.training.examination import examine
    from lengthlab.training.forecast import forecast, steps_done

    examine(runs, asked.store, str(device), asked.precision, say=None)  # how long it takes is said below
    Store(asked.store).prepare()
    left = [run for run in runs if not Store(asked.store).folder(run.id).finished]
    click.echo(f"{len(runs)} runs, {len(runs) - len(left)} of them finished.", err=True)
    if not left:
        return {}
    click.echo("Timing a few steps of each kind.", err=True)
    ahead = forecast(left, str(device), steps_done(left, asked.store), asked.precision)
    where = in_words(device, os.cpu_count() or 1)
    click.echo(f"The other {len(left)} take about {duration(ahead.seconds)} on {where}.", err=True)
    return dict(ahead.steps)
