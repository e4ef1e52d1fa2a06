"""Runs on machines of a cluster: put into a store that all of them see (queue.py), placed there as packs (pack.py) by whatever
rules the cluster, watched from here. The store tells what came out; whoever is killed is started again and goes on from it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Protocol

from lengthlab.errors import cut, require
from lengthlab.integrations.trackers import chosen_trackers
from lengthlab.launch.in_process import Tell
from lengthlab.launch.local import Outcome, outcomes_of, say
from lengthlab.launch.pack import Pack, packed
from lengthlab.launch.progress import Progress
from lengthlab.launch.queue import queue
from lengthlab.launch.tracking import tracked
from lengthlab.spec.run import Run
from lengthlab.store import Store

NAMES = ("local", "ray", "slurm")


class Cluster(Protocol):
    """Where packs are trained."""

    @property
    def lease(self) -> float:
        """Seconds without a sign of life after which others take a run over."""
        ...

    def connect(self) -> str:
        """Make sure that it is there, before anything is written; what to call it."""
        ...

    def device(self, named: str) -> str:
        """What `auto`, `cpu` or `cuda` comes to there: cpu or cuda."""
        ...

    def number_of_packs(self, runs: int, device: str) -> int:
        """Into how many packs so many runs are divided."""
        ...

    def train(self, packs: Sequence[Pack], tell: Tell) -> dict[str, str]:
        """All of them; why runs came to nothing, by id. On Ctrl-C they are given back, and KeyboardInterrupt goes up."""
        ...


def cluster_named(name: str) -> Cluster | None:
    """By name, as it usually is; `local` is none."""
    from lengthlab.launch.ray_tasks import RayCluster
    from lengthlab.launch.slurm_jobs import SlurmCluster

    require(name in NAMES, f"runs are launched by {', '.join(NAMES)}, not by '{cut(name)}'")
    return {"local": lambda: None, "ray": RayCluster, "slurm": SlurmCluster}[name]()  # type: ignore[operator, no-any-return]


def try_all_on(
    cluster: Cluster,
    runs: Sequence[Run],
    store: str | os.PathLike[str] = "runs",
    device: str = "auto",
    precision: str | None = None,
    progress: bool = True,
    track: str | Sequence[str] = (),
) -> list[Outcome]:
    """As `try_all`, on a cluster: what became of each run, well or not. What is finished, wherever that was, is only read.

    `RayCluster("10.0.0.1:6379")` (ray_tasks.py) is one, `SlurmCluster(minutes=60)` (slurm_jobs.py) another.
    """
    trackers = chosen_trackers(track)
    name = cluster.connect()
    there = cluster.device(device)
    place = Store(os.path.abspath(store))  # not what links lead to: that may be called otherwise on other machines
    left = queue(runs, place.root)
    packs = packed(left, str(place.root), there, precision, cluster.lease, cluster.number_of_packs(len(left), there))
    asked = list({run.id: run for run in runs}.values())
    wanted = [run for run in asked if run.id in set(left)]
    heading = f"training on {name}: {len(left)} runs on {there}, in {len(packs)} pack{'s' * (len(packs) != 1)}"
    shown = Progress(wanted, place.root, heading) if left and progress else nullcontext()
    with tracked(trackers, asked, place.root, say if progress else None), shown as display:
        errors = cluster.train(packs, display.tell if display else lambda failed: None)
    return outcomes_of(runs, place, "auto", errors)
