"""`lengthlab worker` as a real process, to be killed and suspended."""

from __future__ import annotations

import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from lengthlab.cli import main

LEASE = 1.5
CHECKPOINT_OFTEN = """
from lengthlab.training import recorder
recorder.FIRST_CHECKPOINT_SECONDS = recorder.CHECKPOINT_SECONDS = 0.05"""
SLOW = """
import time
from lengthlab.training.state import TrainState
advance = TrainState.advance
def slow(state):
    time.sleep(0.02)
    return advance(state)
TrainState.advance = slow"""


@dataclass(frozen=True)
class Worker:
    process: multiprocessing.process.BaseProcess
    said: Path

    def send(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self) -> tuple[int | None, str]:
        """Its exit code and what it said."""
        self.process.join(120)
        return self.process.exitcode, self.said.read_text()


def start(store: Path | str, host: str, before: str = "", lease: float = LEASE, said_in: Path | None = None) -> Worker:
    """`lengthlab worker STORE --host …`, forked from a process that has imported torch; `before` is Python to do first. What it
    says goes to a file beside the store, or in another folder.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["lengthlab.training.engine", "torch._dynamo"])
    said = (said_in or Path(store).parent) / f"{host}.txt"
    words = ("worker", str(store), "--device", "cpu", "--host", host, "--lease", str(lease))
    process = forks.Process(target=_be, args=(str(said), before, words), daemon=True)
    process.start()
    return Worker(process, said)


def _be(said: str, before: str, words: tuple[str, ...]) -> None:
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    exec(before, {})
    sys.argv[:] = ["lengthlab", *words]
    main()
