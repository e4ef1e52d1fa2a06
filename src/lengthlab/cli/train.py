"""`lengthlab train`"""

from __future__ import annotations

from pathlib import Path

import click

from lengthlab.cli import options
from lengthlab.cli.launch import train_plan
from lengthlab.cli.pages import say_queued
from lengthlab.errors import require


@click.command()
@click.argument("plan", type=options.Place(path_type=Path), metavar="RUN.TOML")
@options.overrides
@options.store
@options.device
@options.precision
@options.progress
@click.option("--workers", type=click.IntRange(min=1), help="Runs at a time on CPUs; one for each core if not given.")
@click.option("--queue", "queued", is_flag=True, help="Train nothing: put the runs into the store, for `lengthlab worker`.")
@options.track
@options.launched
@options.opened
@options.as_json
def train(
    plan: Path,
    overrides: tuple[str, ...],
    store: str,
    device: str,
    precision: str | None,
    progress: bool,
    workers: int | None,
    queued: bool,
    track: tuple[str, ...],
    launch: str,
    **shown: bool,
) -> None:
    """Train the runs of a TOML file; finished ones are only shown. Every combination of the grid is a run.

    \b
    [defaults]
    task = { name = "modulo-recall", modulus = 10, values = 10, keys = 128 }
    model.width = 256
    schedule = { name = "delayed", first = 2000, joint = 16000 }
    lengths = [1, 25]
    batch = 256
    evaluate = [25, 50, 75, 100]
    seeds = [0, 1, 2]

    \b
    [grid]
    model.name = ["attention-on-lstm", "hybrid-block"]
    schedule.lr = [1e-4, 3e-4]

    Runs that have more of their own are [[run]] tables, on top of what [defaults] says.

    The names are those of `lengthlab tasks` and `lengthlab models`, or of things in your own files: "my_models.py:three_lstms".
    """
    if queued:
        asked = {"--workers": workers, "--precision": precision, "--launch": launch != "local", "--open": shown["open_it"]}
        given = [name for name, value in (asked | {"--json": shown["as_json"]}).items() if value]
        require(not given, f"--queue trains nothing: it takes no {' or '.join(given)}")
        require(not track, "--queue trains nothing: it takes no --track; the same file with --track tells of what workers did")
        _queue(plan, overrides, store, device)
        return
    cluster = None
    if launch != "local":
        from lengthlab.launch.cluster import cluster_named

        cluster = cluster_named(launch)
    require(cluster is None or workers is None, f"--workers are of this machine: --launch {launch} has its own number")
    train_plan(cluster, plan, overrides, store, device, precision, progress, workers=workers, track=track, **shown)


def _queue(plan: Path, overrides: tuple[str, ...], store: str, device: str) -> None:
    from lengthlab.launch.queue import queue
    from lengthlab.spec.plan import read_plan

    say_queued(len(queue(read_plan(plan, overrides), store, device)), store)
