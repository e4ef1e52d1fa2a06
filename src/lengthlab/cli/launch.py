"""`lengthlab launch`"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.store.garbage_collection import count_as_old, uncollected
from lengthlab.store.lease import SECONDS

if TYPE_CHECKING:
    from lengthlab.launch.cluster import Cluster

SHARED = (
    click.argument("plan", type=options.Place(path_type=Path), metavar="RUN.TOML"),
    options.overrides,
    options.store,
    options.device,
    options.precision,
    options.progress,
    options.track,
    options.opened,
    options.as_json,
)
lease = click.option(
    "--lease",
    type=options.Finite(1, 86_400),
    default=SECONDS,
    show_default=True,
    help="Seconds without a sign of life after which a run is taken from a process that nobody knows to be gone.",
)


def planned(command: Callable[..., None]) -> Callable[..., None]:
    """With the arguments that every kind of launch has."""
    for option in reversed(SHARED):
        command = option(command)
    return command


@click.group()
def launch() -> None:
    """Train the runs of a TOML file, here or on other machines; finished ones are only shown.

    The store has to be a folder that all of the machines see by the same name, and lengthlab is installed on each. Whatever is
    killed, the same command goes on from what the store has.
    """


@launch.command()
@planned
@click.option("--workers", type=click.IntRange(min=1), help="Runs at a time on CPUs; one for each core if not given.")
def local(workers: int | None, **given: Any) -> None:
    """In processes of this machine, as `lengthlab train`."""
    train_plan(None, workers=workers, **given)


@launch.command()
@planned
@click.option("--address", help="host:port of the head; if not given, RAY_ADDRESS, or the cluster of this machine.")
@click.option(
    "--pack", type=click.IntRange(min=1), help="Runs that share a GPU; if not given, all are divided among those there."
)
@lease
def ray(address: str | None, pack: int | None, lease: float, **given: Any) -> None:
    """As tasks of a Ray cluster: a core for each run, or a GPU for each pack of them.

    \b
    ray start --head                                                     on one machine
    ray start --address 10.0.0.1:6379                                    on the others
    lengthlab launch ray sweep.toml --address 10.0.0.1:6379 --store /shared/runs

    Runs of a node that dies go on elsewhere, from their checkpoints.
    """
    from lengthlab.launch.ray_tasks import RayCluster

    train_plan(RayCluster(address, pack, lease), **given)


@launch.command()
@planned
@click.option("--minutes", type=click.IntRange(min=1), default=60, show_default=True, help="Of a job; then it is queued again.")
@click.option("--pack", type=click.IntRange(min=1), default=1, show_default=True, help="Runs in a job; on a GPU side by side.")
@click.option("--option", "given_options", multiple=True, metavar="NAME=VALUE", help="Of sbatch's: --option account=mine")
@lease
def slurm(minutes: int, pack: int, given_options: tuple[str, ...], lease: float, **given: Any) -> None:
    """As an array of Slurm jobs, which are queued again when their time is over. --device cuda asks for a GPU each.

    \b
    lengthlab launch slurm sweep.toml --store /shared/runs --minutes 120 --option partition=short
    """
    from lengthlab.launch.slurm_jobs import SlurmCluster

    train_plan(SlurmCluster(minutes, pack, given_options, lease), **given)


@uncollected()
def train_plan(
    cluster: Cluster | None,
    plan: Path,
    overrides: tuple[str, ...],
    store: str,
    device: str,
    precision: str | None,
    progress: bool,
    track: tuple[str, ...],
    open_it: bool,
    as_json: bool,
    workers: int | None = None,
) -> None:
    """Train what a plan asks for, here or on a cluster, and show what came out. Apart from training, nothing makes garbage."""
    from lengthlab.cli.live_page import live_page
    from lengthlab.cli.work import show, work
    from lengthlab.spec.plan import read_plan

    runs = read_plan(plan, overrides)
    with live_page(store, open_it):
        curves = work(runs, store, device, workers, precision, progress, track, cluster)
        show(curves, as_json)
        say(f"kept in {store}; lengthlab report {store} writes ids, figures and data", err=True)
    count_as_old()
