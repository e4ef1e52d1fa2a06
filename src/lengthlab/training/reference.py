"""From a run to its result: one run, step by step, with log, checkpoints and resumption."""

from __future__ import annotations

import os

import torch

from lengthlab.compute import device_named, settled
from lengthlab.errors import RunFailed
from lengthlab.run import Run
from lengthlab.store import Folder, Store
from lengthlab.training.checkpoint import NAME, load_checkpoint
from lengthlab.training.diary import Diary
from lengthlab.training.interrupt import interruptible
from lengthlab.training.precision import Precision, precision_named
from lengthlab.training.result import Result, claim, measure
from lengthlab.training.trainee import Trainee

PROBE_STEPS = 500
CHECKPOINT_SECONDS = 15.0


def train(run: Run, store: str | os.PathLike[str] = "runs", device: str = "cpu", precision: str | None = None) -> Result:
    """Train a run and measure it, in this process. Goes on where it was if the folder is there; returns at once if finished.

    >>> import lengthlab as ll, tempfile
    >>> task, model = ll.tasks.ModuloRecall(modulus=2, keys=8), ll.models.lstm(width=8)
    >>> run = ll.Run(task, model, ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> with tempfile.TemporaryDirectory() as store:
    ...     result = ll.train(run, store)
    ...     0 <= result.accuracy(length=8) <= 1
    True
    """
    place = device_named(device)
    Store(store).prepare()
    folder = Store(store).folder(run.id)
    with folder.lock():
        if not folder.finished:
            claim(folder, run)
            folder.remove("failure.json")
            with settled(place), torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
                _train(run, folder, place, precision_named(precision, place))
        folder.remove(NAME)
    return measure(folder, run.measured_at, device)


def _train(run: Run, folder: Folder, device: torch.device, precision: Precision) -> None:
    trainee = Trainee(run, device, precision)
    diary = Diary(trainee, folder, load_checkpoint(trainee, folder), PROBE_STEPS, CHECKPOINT_SECONDS)
    try:
        _steps(trainee, diary)
        diary.conclude()
    except RunFailed as failure:
        diary.fail(failure)
        raise


def _steps(trainee: Trainee, diary: Diary) -> None:
    """Train to the end, or until someone asks to stop: then the step is kept and KeyboardInterrupt goes up."""
    run = trainee.run
    with interruptible() as interrupt:
        while trainee.clock < run.steps:
            phase, loss = run.phase_at(trainee.clock), trainee.advance()
            trainee.look()
            diary.note(phase, loss)
            if interrupt.asked:
                diary.keep()
                raise KeyboardInterrupt
