"""A run among others: its folder, locked while it is here, and its turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

import torch

from lengthlab.errors import RunFailed
from lengthlab.run import Run
from lengthlab.store import Folder
from lengthlab.training.captured import Captured
from lengthlab.training.checkpoint import NAME, load_checkpoint
from lengthlab.training.diary import Diary
from lengthlab.training.feed import BLOCK
from lengthlab.training.precision import Precision
from lengthlab.training.result import claim
from lengthlab.training.trainee import Trainee

PROBE_STEPS = 2_000
CHECKPOINT_SECONDS = 60.0
"""Keeping twenty-six runs takes two seconds: less often than a run alone."""


class Turns(Protocol):
    """How a run goes on: a turn is started, is busy for a while, and is finished with the loss of its last step."""

    @property
    def busy(self) -> bool: ...

    def start(self) -> None: ...

    def finish(self) -> float: ...


class Stepped:
    """Turns of a run that cannot be captured (a network or a task of somebody else's): step by step, when it is finished."""

    busy = False

    def __init__(self, trainee: Trainee) -> None:
        self.trainee = trainee

    def start(self) -> None:
        pass

    def finish(self) -> float:
        trainee, run = self.trainee, self.trainee.run
        phase, loss = run.phase_at(trainee.clock), trainee.advance()
        while trainee.step % BLOCK and run.phase_at(trainee.clock) == phase:
            loss = trainee.advance()
        return loss


def turns_of(trainee: Trainee) -> Turns:
    """Captured where it can be."""
    capturable = trainee.device.type == "cuda" and trainee.feed.documents is not None
    return Captured(trainee) if capturable else Stepped(trainee)


class Seat:
    """What the engine holds of a run."""

    def __init__(self, run: Run, folder: Folder, device: torch.device, precision: Precision) -> None:
        self.run, self.folder, self.device, self.precision = run, folder, device, precision
        self.done = False
        self.taken = 0
        """Bytes of the device, as far as it was seen to take some."""
        self._held = ExitStack()

    def enter(self) -> None:
        """Take the lock, go back to the last checkpoint and start the first turn. `Busy` if another process has the run."""
        self._held.enter_context(self.folder.lock(wait=False))
        if self.folder.finished:  # by that other process
            self.done = True
            return
        claim(self.folder, self.run)
        self.folder.remove("failure.json")
        self.trainee = Trainee(self.run, self.device, self.precision)
        before = load_checkpoint(self.trainee, self.folder)
        self.diary = Diary(self.trainee, self.folder, before, PROBE_STEPS, CHECKPOINT_SECONDS)
        self.turns = turns_of(self.trainee)
        self._heed(self._next)

    @property
    def busy(self) -> bool:
        return self.turns.busy

    def turn(self) -> None:
        """Write down the turn that is over and start the next; after the last, measure."""
        self._heed(self._finish)
        self._heed(self._next)

    def _heed(self, act: Callable[[], None]) -> None:
        """Write a failure down before it goes up."""
        try:
            act()
        except RunFailed as failure:
            self.diary.fail(failure)
            raise

    def _finish(self) -> None:
        phase, loss = self.run.phase_at(self.trainee.clock), self.turns.finish()
        self.trainee.look()
        self.diary.note(phase, loss)

    def _next(self) -> None:
        if self.trainee.clock < self.run.steps:
            self.turns.start()
            return
        self.diary.conclude()
        self.folder.remove(NAME)
        self.done = True

    def leave(self) -> None:
        """Keep the steps of the turn under way."""
        self._finish()
        self.diary.keep()
        self.done = True

    def free(self) -> None:
        """Give the folder and the GPU's memory back."""
        self._held.close()
        for name in ("turns", "diary", "trainee"):
            vars(self).pop(name, None)
