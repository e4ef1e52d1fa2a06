"""Many runs in one process on one GPU, any mix of architectures, tasks, seeds and phases.

Every run has its own generator, learning rate, phase clock and stream, so it learns what it would learn alone. A run goes by
turns of a block of steps; a turn that is over is written down and the next one enqueued, while the GPU is busy with the
turns of the others. A run that fails leaves; the others do not notice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import sleep

import torch

from lengthlab.compute import settled
from lengthlab.errors import explain
from lengthlab.run import Run
from lengthlab.store import Store
from lengthlab.training.interrupt import interruptible
from lengthlab.training.precision import Precision
from lengthlab.training.seat import Seat

SPARE = 1.5
"""A run is let in while the GPU has this many times the memory that the hungriest one so far took."""
REST_SECONDS = 0.0005

Failed = Callable[[str, str], None]
"""Hears the id of a run that did not make it, and why."""


class Engine:
    """Trains runs of a store side by side on one device."""

    def __init__(self, store: Store, device: torch.device, precision: Precision, failed: Failed) -> None:
        self.store, self.device, self.precision = store, device, precision
        self.failed = failed
        self.inside: list[Seat] = []
        self.waiting: list[Run] = []
        self.full = False
        self._most = 0

    def train(self, runs: Sequence[Run]) -> None:
        """All of them; on Ctrl-C what was learned is kept and KeyboardInterrupt goes up."""
        self.waiting = list(runs)
        with settled(self.device), interruptible() as interrupt:
            while (self.waiting or self.inside) and not interrupt.asked:
                if self.waiting and (not self.inside or self._has_room()):
                    self._let_in(self.waiting.pop(0))
                if not self._turns():
                    sleep(REST_SECONDS)
            for seat in self.inside:
                self._heed(seat, seat.leave)
            if interrupt.asked:
                raise KeyboardInterrupt

    def _turns(self) -> int:
        """Every run whose turn is over gets the next; how many did."""
        due = [seat for seat in self.inside if not seat.busy]
        for seat in due:
            if not self._heed(seat, seat.turn) or seat.done:
                self.inside.remove(seat)
                self.full = False
        return len(due)

    def _has_room(self) -> bool:
        return not self.full and self._free() > SPARE * self._most

    def _let_in(self, run: Run) -> None:
        """One more run, or, should the GPU be too small for it now, later."""
        before = self._free()
        seat = Seat(run, self.store.folder(run.id), self.device, self.precision)
        try:
            seat.enter()
            self.inside.append(seat)
        except torch.OutOfMemoryError as error:
            seat.free()
            if self.inside:
                self.waiting.insert(0, run)
                self.full = True
            else:
                self.failed(run.id, explain(error))
        except Exception as error:
            seat.free()
            self.failed(run.id, explain(error))
        self._most = max(self._most, before - self._free())

    def _heed(self, seat: Seat, act: Callable[[], None]) -> bool:
        """Whether it went well; one run's trouble is not the others'."""
        try:
            act()
        except Exception as error:
            seat.free()
            self.failed(seat.run.id, explain(error))
            return False
        return True

    def _free(self) -> int:
        """Bytes that the device has left; what torch holds for later counts as taken, because graphs keep theirs."""
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else sys.maxsize
