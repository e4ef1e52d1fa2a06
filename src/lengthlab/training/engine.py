"""Many runs in one process on one GPU, any mix of architectures, tasks, seeds and phases.

Every run has its own generator, learning rate, phase clock and stream, so it learns what it would learn alone. A run goes by
turns of a block of steps; a turn that is over is written down and the next one enqueued, while the GPU is busy with the
turns of the others. A run that fails leaves; the others do not notice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import monotonic, sleep

import torch

from lengthlab.compute import settled
from lengthlab.errors import explain
from lengthlab.run import Run
from lengthlab.store import Busy, Store
from lengthlab.training.interrupt import interruptible
from lengthlab.training.precision import Precision
from lengthlab.training.seat import Seat

SPARE = 1.5
"""A run is let in while the GPU has this many times the memory that the hungriest one so far took."""
REST_SECONDS = 0.0005
BUSY_SECONDS = 1.0
"""So long nobody is let in after a run was found in the hands of another process."""

Failed = Callable[[str, str], None]
"""Hears the id of a run that did not make it, and why."""


class Engine:
    """Trains runs of a store side by side on one device."""

    def __init__(self, store: Store, device: torch.device, precision: Precision, failed: Failed) -> None:
        self.store, self.device, self.precision = store, device, precision
        self.failed = failed
        self.inside: list[Seat] = []
        self.waiting: list[Run] = []
        self._full = False
        self._most = 0
        self._not_before = 0.0

    def train(self, runs: Sequence[Run]) -> None:
        """All of them; on Ctrl-C what was learned is kept and KeyboardInterrupt goes up."""
        self.waiting = list(runs)
        with settled(self.device), interruptible() as interrupt:
            while (self.waiting or self.inside) and not interrupt.asked:
                if self.waiting and self._has_room():
                    self._let_in(self.waiting.pop(0))
                if not self._turns():
                    sleep(REST_SECONDS)
            for seat in list(self.inside):
                self._heed(seat, seat.leave)
            if interrupt.asked:
                raise KeyboardInterrupt

    def _turns(self) -> int:
        """Every run whose turn is over gets the next; how many did."""
        due = [seat for seat in self.inside if not seat.busy]
        for seat in due:
            self._heed(seat, seat.turn)
        return len(due)

    def _has_room(self) -> bool:
        if monotonic() < self._not_before:
            return False
        return not self.inside or (not self._full and self._free() > SPARE * self._most)

    def _let_in(self, run: Run) -> None:
        seat = Seat(run, self.store.folder(run.id), self.device, self.precision)
        self.inside.append(seat)
        self._heed(seat, seat.enter)

    def _heed(self, seat: Seat, act: Callable[[], None]) -> None:
        """Let a run do something. One that is done, fails or has to wait leaves; its trouble is not the others'."""
        before = self._free()
        try:
            act()
        except Busy:
            self._leave(seat)
            self.waiting.append(seat.run)
            self._not_before = monotonic() + BUSY_SECONDS
        except torch.OutOfMemoryError as error:
            self._leave(seat)
            if self.inside:
                self.waiting.insert(0, seat.run)
                self._full = True
            else:
                self.failed(seat.run.id, explain(error))
        except Exception as error:
            self._leave(seat)
            self.failed(seat.run.id, explain(error))
        else:
            seat.taken += max(0, before - self._free())
            self._most = max(self._most, seat.taken)
            if seat.done:
                self._leave(seat)

    def _leave(self, seat: Seat) -> None:
        seat.free()
        self.inside.remove(seat)
        self._full = False
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _free(self) -> int:
        """Bytes that the device has left; what torch holds for later counts as taken, because graphs keep theirs."""
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else sys.maxsize
