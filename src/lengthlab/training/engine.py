"""The loop: runs of a store side by side on one device, any mix of architectures, tasks, seeds and phases; `train` is the same
loop with one run.

Every run has its own generator, learning rate, phase clock and, on a GPU, stream, so it learns what it would learn alone, but
for rounding: on a GPU an LSTM beside others may go by another kernel (`kernels.BESIDE`). A run goes by turns; a turn that is
over is written down and the next one started, while the GPU is busy with the turns of the others. A run that fails leaves; the
others do not notice.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic, sleep

import torch

from lengthlab.device import AUTO, device_named, settled
from lengthlab.errors import cut, require
from lengthlab.spec.run import Run
from lengthlab.spec.source import refuse_while_loading
from lengthlab.store import Busy, Store
from lengthlab.training.examination import examine
from lengthlab.training.interrupt import interruptible
from lengthlab.training.precision import Precision, precision_named
from lengthlab.training.result import Result, measure
from lengthlab.training.slot import Slot

SPARE = 1.5
"""A run is let in while the GPU has this many times the memory that the hungriest one so far took."""
REST_SECONDS = 0.0005
BUSY_SECONDS = 1.0
"""So long nobody is let in after a run was found in the hands of another process."""

Failed = Callable[[Run, Exception], None]
"""Hears of a run that did not make it, and why."""
More = Callable[[int], Sequence[Run]]
"""Given how many runs are in training, one that may be trained beside them, or none."""

log = logging.getLogger("lengthlab")


class Engine:
    """Trains runs of a store side by side on one device."""

    def __init__(self, store: Store, device: torch.device, precision: Precision, failed: Failed) -> None:
        self.store, self.device, self.precision = store, device, precision
        self.failed = failed
        self.inside: list[Slot] = []
        self.waiting: list[Run] = []
        self._full = False
        self._most = 0
        self._not_before = 0.0

    def train(self, runs: Sequence[Run], seconds: float = inf, more: More | None = None) -> None:
        """All of them, or as far as they come in so many seconds: then what was learned is kept, for whoever goes on. On Ctrl-C
        it is kept, too, and KeyboardInterrupt goes up. `more` is asked for another run whenever there is room for one.
        """
        self.waiting, end = list(runs), monotonic() + seconds
        own_noise = torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else [])
        with settled(self.device), own_noise, interruptible() as interrupt:
            try:
                while not interrupt.asked and monotonic() < end:
                    if more and not self.waiting and self._has_room():
                        self.waiting += more(len(self.inside))
                    if not (self.waiting or self.inside):
                        break
                    if self.waiting and self._has_room():
                        self._let_in(self.waiting.pop(0))
                    if not self._turns():
                        sleep(REST_SECONDS)
                for slot in list(self.inside):
                    self._guarded(slot, slot.leave)
            finally:  # a second Ctrl-C cuts in anywhere; a notebook that keeps its trace must not keep the locks
                for slot in list(self.inside):
                    self._leave(slot)
            if interrupt.asked:
                raise KeyboardInterrupt

    def _turns(self) -> int:
        """Every run whose turn is over gets the next; how many did."""
        due = [slot for slot in self.inside if not slot.busy]
        for slot in due:
            self._guarded(slot, slot.turn)
        return len(due)

    def _has_room(self) -> bool:
        if monotonic() < self._not_before:
            return False
        return not self.inside or (not self._full and self._free() > SPARE * self._most)

    def _let_in(self, run: Run) -> None:
        models = 1 + len(self.inside) + len(self.waiting)
        slot = Slot(run, self.store.folder(run.id), self.device, self.precision, models)
        self.inside.append(slot)
        self._guarded(slot, slot.enter)

    def _guarded(self, slot: Slot, act: Callable[[], None]) -> None:
        """Let a run do something. One that is done, fails or has to wait leaves; its trouble is not the others'."""
        before = self._free()
        try:
            act()
        except Busy:
            if not self._not_before:
                log.warning("run %s is in the hands of another process; waiting for it", slot.run.id)
            self._leave(slot)
            self.waiting.append(slot.run)
            self._not_before = monotonic() + BUSY_SECONDS
        except torch.OutOfMemoryError as error:
            self._leave(slot)
            if self.inside:
                self.waiting.insert(0, slot.run)
                self._full = True
            else:
                slot.folder.record_failure(error)
                self.failed(slot.run, error)
        except Exception as error:
            self._leave(slot)
            self.failed(slot.run, error)
        else:
            slot.taken += max(0, before - self._free())
            self._most = max(self._most, slot.taken)
            if slot.done:
                self._leave(slot)

    def _leave(self, slot: Slot) -> None:
        slot.free()
        self.inside.remove(slot)
        self._full = False
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _free(self) -> int:
        """Bytes that the device has left; what torch holds for later counts as taken, because graphs keep theirs."""
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else sys.maxsize


def train(run: Run, store: str | os.PathLike[str] = "runs", device: str = AUTO, precision: str | None = None) -> Result:
    """Train a run and measure it, in this process and without a word. Goes on where it was if the folder is there; returns at
    once if finished.
    """
    refuse_while_loading("train")
    require(isinstance(run, Run), f"what is trained is a Run, as ll.Run makes it, not {cut(repr(run))}")
    chosen, place = device_named(device), Store(store)
    folder = place.folder(run.id)  # a run that cannot be kept is refused before anything is written
    examine([run], store, str(chosen), precision)
    place.prepare()
    if not folder.finished:
        Engine(place, chosen, precision_named(precision, chosen), _raise).train([run])
    with folder.lock():
        folder.forget_checkpoints()  # of a process that was killed between its last two writes
    return measure(folder, run.measured_at, device)


def _raise(run: Run, error: Exception) -> None:
    raise error
