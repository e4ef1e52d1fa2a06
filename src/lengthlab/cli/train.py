"""`lengthlab train`"""

from __future__ import annotations

from pathlib import Path

import click

from lengthlab.cli import options


@click.command()
@click.argument("plan", type=options.Place(path_type=Path), metavar="RUN.TOML")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change every run: --set task.modulus=7")
@options.store
@options.device
@options.precision
@options.progress
@click.option("--workers", type=click.IntRange(min=1), help="Runs at a time on CPUs; one for each core if not given.")
@options.as_json
def train(
    plan: Path,
    overrides: tuple[str, ...],
    store: str,
    device: str,
    precision: str | None,
    progress: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """Train the runs of a TOML file; finished ones are only shown.

    \b
    [[run]]
    task = { name = "modulo-recall", modulus = 10, values = 10, keys = 128 }
    model = { name = "attention-on-lstm", width = 256, blocks = 4 }
    schedule = { name = "delayed", first = 2000, asks = ["modulo"], joint = 16000, lr = 1e-4 }
    lengths = [1, 25]
    batch = 256
    seeds = [0, 1, 2]
    evaluate = [25, 50, 75, 100]

    The names are those of `lengthlab tasks` and `lengthlab models`, or of things in your own files: "my_models.py:three_lstms".
    """
    from lengthlab.cli.work import show, work
    from lengthlab.spec.plan import read_plan

    runs = read_plan(plan, overrides)
    curves = work(runs, store, device, workers, precision, progress)
    show(curves, as_json)
