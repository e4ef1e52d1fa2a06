"""From a run to its result: the reference loop, with log, checkpoints and resumption.

This is an engine: something that takes a run, a store and a device and leaves a finished folder behind. `worker.main` calls
it, and is the place where one plugs in that takes all the runs of a worker at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

import torch

from lengthlab.compute import device_named, settled
from lengthlab.errors import RunFailed
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.run import Run
from lengthlab.store import Folder, Store
from lengthlab.training.checkpoint import NAME, load_checkpoint, save_checkpoint, save_weights
from lengthlab.training.interrupt import interruptible
from lengthlab.training.result import Result, claim, measure, write_result
from lengthlab.training.trainee import Trainee

LOG_STEPS = 50
PROBE_STEPS = 500
PROBE_SAMPLES = 200
CHECKPOINT_SECONDS = 15.0


def train(run: Run, store: str | os.PathLike[str] = "runs", device: str = "cpu") -> Result:
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
                _train(run, folder, place)
        folder.remove(NAME)
    return measure(folder, run.measured_at, device)


def _train(run: Run, folder: Folder, device: torch.device) -> None:
    trainee = Trainee(run, device)
    clock = Clock(before=load_checkpoint(trainee, folder), step=trainee.step)
    folder.trim_log(trainee.step)
    try:
        _steps(trainee, folder, clock)
    except RunFailed as failure:
        note = {"run": run.id, "step": trainee.step, "message": str(failure)}
        folder.write_json("failure.json", note | {"date": datetime.now(UTC).isoformat(timespec="seconds")})
        raise
    trainee.enter_phase()  # a run that was killed while it was measured has not been in any
    counts = accuracy(trainee.network, run.task, run.measured_at)
    save_weights(trainee, folder)
    write_result(run, folder, counts, clock.seconds, device)


def _steps(trainee: Trainee, folder: Folder, clock: Clock) -> None:
    """Train to the end, or until someone asks to stop: then the step is kept and KeyboardInterrupt goes up."""
    run = trainee.run
    with interruptible() as interrupt:
        while trainee.step < run.steps:
            phase = run.phase_at(trainee.step)
            loss = trainee.advance()
            last = trainee.step == run.steps
            if trainee.step % LOG_STEPS == 0 or last:
                folder.append_log(_log_line(trainee, phase, loss, clock))
            if interrupt.asked or last or clock.checkpoint_due or run.phase_at(trainee.step) != phase:
                save_checkpoint(trainee, folder, clock.seconds)
                clock.checkpoint_done()
            if interrupt.asked:
                raise KeyboardInterrupt
    trainee.check_weights()


def _log_line(trainee: Trainee, phase: int, loss: float, clock: Clock) -> dict[str, object]:
    run = trainee.run
    line: dict[str, object] = {
        "step": trainee.step,
        "phase": phase + 1,
        "loss": loss,
        "lr": run.schedule.phases[phase].rates["rest"],
        "samples_per_second": round(clock.rate(trainee.step) * run.batch, 1),
        "seconds": round(clock.seconds, 1),
    }
    if trainee.step % PROBE_STEPS == 0:
        line["accuracy"] = _probe(trainee)
    return line


def _probe(trainee: Trainee) -> dict[str, float]:
    """A glance at the training length and at 3 times that, for people to watch. Training never learns of it."""
    run = trainee.run
    longest = run.lengths[1]
    lengths = [longest, min(3 * longest, run.task.longest or 3 * longest)]
    counts = accuracy(trainee.network, run.task, dict.fromkeys(lengths), PROBE_SAMPLES, seed=1)
    return {str(count.length): count.accuracy for count in counts if count.question == "both"}


@dataclass
class Clock:
    """Seconds of training, those before a kill included, and when the next checkpoint is due."""

    before: float
    step: int
    started: float = field(default_factory=monotonic)
    saved: float = field(default_factory=monotonic)
    marked: float = field(default_factory=monotonic)

    @property
    def seconds(self) -> float:
        return self.before + monotonic() - self.started

    @property
    def checkpoint_due(self) -> bool:
        return monotonic() - self.saved > CHECKPOINT_SECONDS

    def checkpoint_done(self) -> None:
        self.saved = monotonic()

    def rate(self, step: int) -> float:
        """Steps per second since the last call."""
        now = monotonic()
        rate = (step - self.step) / max(1e-9, now - self.marked)
        self.step, self.marked = step, now
        return rate
