"""What is looked at before anything is trained: whether there is room, whether a user's own task and model are sound, and how
long it will take.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

import torch

from lengthlab.device import device_named, settled
from lengthlab.errors import refuse_exit
from lengthlab.inspection.model_examination import examine_model
from lengthlab.inspection.task_check import examine_task
from lengthlab.spec.run import Run
from lengthlab.store import Store
from lengthlab.training.footprint import require_room
from lengthlab.training.outlook import outlook

FARTHEST = 1000
"""Of a task, lengths beyond this are not tried, unless it is trained on them: `solve` in plain Python takes its time."""

log = logging.getLogger("lengthlab")
_SOUND: set[str] = set()
"""Runs of which this process knows already that nothing is wrong with them, by id and where they are measured."""


def examine(
    runs: Sequence[Run],
    store: str | os.PathLike[str],
    device: str,
    precision: str | None = None,
    say: Callable[[str], None] | None = log.warning,
) -> None:
    """Refuse runs that are known to go wrong, before one of them is begun; finished ones are none of this. `say` is told what
    could not be tried, and how long it will take if that is long; without it, nothing is timed. Once for a run in a process.
    """
    place, chosen = Store(store), device_named(device)
    every = {_key(run, device): run for run in runs}
    fresh = [run for key, run in every.items() if key not in _SOUND and not place.folder(run.id).finished]
    for run in fresh:
        require_room(run, device)
    for run in {(run.settings, run.evaluate): run for run in fresh}.values():  # a seed changes nothing of that
        with refuse_exit(), settled(chosen):
            untried = _examine(run, chosen)
        if untried and say:
            say(untried)
    if fresh and say and (ahead := outlook(fresh, store, device, precision)):
        say(ahead)
    _SOUND.update(_key(run, device) for run in fresh)


def _examine(run: Run, device: torch.device) -> str:
    lengths = {*run.trained, *run.measured_at}
    examine_task(run.task, sorted(length for length in lengths if length <= max(FARTHEST, run.trained[1])))
    return examine_model(run, device)


def _key(run: Run, device: str) -> str:
    return f"{run.id} {run.measured_at} {device}"
