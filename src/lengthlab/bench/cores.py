"""Both ways on a CPU, in processes of their own: the textbook loop with all threads that PyTorch takes, and the engine's
workers, one for each core with one thread each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from lengthlab.bench.case import Case
from lengthlab.bench.loop import Loop
from lengthlab.bench.measurement import TEXTBOOK
from lengthlab.bench.stopwatch import Trainer
from lengthlab.device import settled
from lengthlab.errors import LabError, explain
from lengthlab.training.state import TrainState

CPU = torch.device("cpu")
PROCESS = Path("/proc/self")


class InTurn:
    """The runs of a worker, one after the other."""

    turn = 1

    def __init__(self, cases: Sequence[Case]) -> None:
        self.states = [TrainState(case.run, CPU) for case in cases]

    def go(self, steps: int) -> None:
        for state in self.states:
            for _ in range(steps):
                state.advance()


class Helper:
    """A process that trains what it is told to, when it is told to."""

    def __init__(self, way: str) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawning.Pipe()
        self.process = spawning.Process(target=_help, args=(theirs, way), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, order: str, content: Any = None) -> None:
        self.pipe.send((order, content))

    def hear(self) -> int:
        """The answer to an order: peak memory."""
        try:
            memory, error = self.pipe.recv()
        except EOFError:
            raise LabError("a process of the bench was ended from outside") from None
        if error:
            raise LabError(f"a process of the bench failed: {error}")
        return int(memory)

    def close(self) -> None:
        """It has nothing to keep, so it need not finish what it does."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()


class Processes:
    """Helpers with their shares of the cases; one without a share stays idle."""

    turn = 1

    def __init__(self, helpers: Sequence[Helper], cases: Sequence[Case]) -> None:
        shares = [list(cases[place :: len(helpers)]) for place in range(len(helpers))]
        self.busy = [helper for helper, share in zip(helpers, shares, strict=True) if share]
        for helper, share in zip(self.busy, shares, strict=False):
            helper.tell("take", share)
        self.memory = self._heard()

    def go(self, steps: int) -> None:
        for helper in self.busy:
            helper.tell("go", steps)
        self.memory = self._heard()

    def _heard(self) -> int:
        return sum([helper.hear() for helper in self.busy])


class Cores:
    """A machine whose helpers wait between measurements."""

    textbooks: tuple[str, ...] = (TEXTBOOK,)
    engine = "engine, fp32"
    exact: tuple[str, ...] = ()
    device = torch.device("cpu")

    def __init__(self, number: int | None = None) -> None:
        numbers = {TEXTBOOK: 1, self.engine: number or os.cpu_count() or 1}
        self.helpers = {way: [Helper(way) for _ in range(times)] for way, times in numbers.items()}
        self._processes: Processes | None = None

    @contextmanager
    def train(self, way: str, cases: Sequence[Case]) -> Iterator[Trainer]:
        """These cases spread over the cores; the textbook loop has one at a time, and all cores for it."""
        self._processes = Processes(self.helpers[way], cases)
        yield self._processes

    def memory(self) -> int:
        """Bytes that the processes at work took at most, added up."""
        return self._processes.memory if self._processes else 0

    def close(self) -> None:
        for helper in (helper for helpers in self.helpers.values() for helper in helpers):
            helper.close()


def _help(pipe: Connection, way: str) -> None:
    """The life of a helper: until its parent closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    trainer: Trainer | None = None
    with settled(CPU) if way != TEXTBOOK else nullcontext(), suppress(EOFError, OSError):
        while True:
            order, content = pipe.recv()
            error = ""
            try:
                if order == "take":
                    trainer = None  # before the next one, so that they are never both in memory
                    _forget_peak()
                    trainer = Loop(content[0], CPU) if way == TEXTBOOK else InTurn(content)
                elif trainer:
                    trainer.go(content)
            except Exception as failure:
                error = explain(failure)
            pipe.send((peak_memory(), error))


def peak_memory() -> int:
    """Bytes of this process at its peak: on Linux since it was last forgotten, elsewhere since its start.

    >>> peak_memory() > 2**20
    True
    """
    try:
        lines = (PROCESS / "status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource  # which Windows has not

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _forget_peak() -> None:
    with suppress(OSError):  # then the peak of earlier cases counts, too
        (PROCESS / "clear_refs").write_text("5")
