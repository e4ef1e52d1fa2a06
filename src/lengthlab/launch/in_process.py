"""Runs trained in this very process, one after the other: a small one is through before a worker would have started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic

import torch

from lengthlab.spec.run import Run
from lengthlab.store import Store
from lengthlab.training.engine import Engine
from lengthlab.training.precision import Precision

START_SECONDS = 5.0
"""What a worker takes to start on slow cores: it has to import torch, and torch's optimizers import as much again."""

Tell = Callable[[Mapping[str, str]], None]
"""Hears the reasons of all runs that failed so far, by id."""


def seconds_here(runs: Sequence[Run], device: torch.device, at_a_time: int) -> float:
    """How long runs are trained in this process before workers take over what is left of them.

    A single run: to its end. Several: for as long as workers would take to start, so that small ones need none, and large ones
    wait for no more than twice that; they go on from their checkpoints. Not at all on a GPU, where the runs of a worker are
    captured side by side, and not if users' own code is among several: what kills its process must not take others along.
    """
    if device.type == "cuda":
        return 0.0
    if len(runs) == 1:
        return inf
    if any(run.to_json().get("files") for run in runs):
        return 0.0
    return START_SECONDS if at_a_time > 1 else inf


def train_here(
    runs: Sequence[Run], store: Store, device: torch.device, precision: Precision, seconds: float, tell: Tell
) -> dict[str, str]:
    """As many as can be in that time; the errors, by run. On Ctrl-C what was learned is kept and KeyboardInterrupt goes up."""
    end, errors = monotonic() + seconds, dict[str, str]()

    def failed(run: Run, error: Exception) -> None:
        errors[run.id] = store.folder(run.id).explain_failure(error)
        tell(errors)

    for run in runs:
        Engine(store, device, precision, failed).train([run], end - monotonic())
    return errors
