"""A run's place in the engine: its folder, locked while it is here, its state and its turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import torch

from lengthlab.errors import RunFailed, refuse_exit
from lengthlab.spec.run import Run
from lengthlab.store import Busy, Folder
from lengthlab.store.fenced import Lost
from lengthlab.training.checkpoint import load_checkpoint
from lengthlab.training.precision import Precision
from lengthlab.training.recorder import Recorder
from lengthlab.training.result import claim
from lengthlab.training.state import TrainState
from lengthlab.training.stepper import stepper_for


class Slot:
    """What the engine holds of a run."""

    def __init__(self, run: Run, folder: Folder, device: torch.device, precision: Precision, models: int = 1) -> None:
        self.run, self.folder, self.device, self.precision = run, folder, device, precision
        self.models = models
        """That are trained side by side, or wait for room, this one among them, when it is let in."""
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
        self.folder.forget_failure()
        self._recorded(self._begin)
        # A checkpoint that cannot be read is named and left alone; it is no failure of the run.
        self.recorder = Recorder(self.state, self.folder, *load_checkpoint(self.state, self.folder))
        self._recorded(self._next)

    def _begin(self) -> None:
        self.state = TrainState(self.run, self.device, self.precision, models=self.models)
        self.stepper = stepper_for(self.state)

    @property
    def busy(self) -> bool:
        return self.stepper.busy

    def turn(self) -> None:
        """Write down the turn that is over and start the next; after the last, measure."""
        self._recorded(self._finish)
        self._recorded(self._next)

    def leave(self) -> None:
        """Keep the steps of the turn under way."""
        self._recorded(self._finish)
        self.recorder.keep()
        self.done = True

    def free(self) -> None:
        """Give the folder and the GPU's memory back."""
        self._held.close()
        for name in ("stepper", "recorder", "state"):
            vars(self).pop(name, None)

    def _finish(self) -> None:
        phase, loss = self.run.phase_at(self.state.clock), self.stepper.finish()
        self.state.look()
        self.recorder.note(phase, loss)

    def _next(self) -> None:
        if self.state.clock < self.run.steps:
            self.stepper.start()
            return
        self.recorder.conclude()
        self.folder.forget_checkpoints()
        self.done = True

    def _recorded(self, act: Callable[[], None]) -> None:
        """Write a failure down before it goes up. What another try may mend (memory, another process) is none."""
        try:
            with refuse_exit():
                act()
        except (Busy, Lost, torch.OutOfMemoryError):
            raise
        except Exception as error:
            self._record(error)
            raise
        except SystemExit as error:  # of a user's code: it ends its run, and not a process that may have others to train
            failure = RunFailed(f"its code calls sys.exit({error.code!r})")
            self._record(failure)
            raise failure from error

    def _record(self, error: Exception) -> None:
        self.folder.record_failure(error, self.state.step if hasattr(self, "state") else 0)
