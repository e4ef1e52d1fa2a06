"""One start of the small job by one tool: a process with its children, to be waited for or killed, and how it came out."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep

import torch

from comparison import loops, trainers
from comparison.job import Weights

TOOLS = trainers.TOOLS | loops.TOOLS
PATIENCE = 60.0
"""Seconds for a job that takes a few."""


def _be(tool: str, folder: str, ticks: str, out: str) -> None:
    """The job, in a group of its own; what it says and its weights go to `out`, and a byte a step to `ticks`."""
    os.setsid()
    os.environ["TICKS"] = ticks
    number = os.open(f"{out}/said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(number, 1), os.dup2(number, 2)
    counter = os.open(ticks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    weights = TOOLS[tool].job(Path(folder), lambda: os.write(counter, b".") and None)
    torch.save(weights, f"{out}/weights.pt")


def family(process: int) -> Iterator[int]:
    """A process and all that come from it."""
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


@dataclass
class Attempt:
    """One start of the job on a folder."""

    name: str
    folder: Path
    out: Path
    process: BaseProcess = field(init=False)

    def __post_init__(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(["comparison.trainers", "comparison.loops", "small_runs", *TOOLS[self.name].preload])
        arguments = (self.name, str(self.folder), str(self.out / "ticks"), str(self.out))
        self.process = forks.Process(target=_be, args=arguments)
        self.process.start()

    @property
    def steps(self) -> int:
        ticks = self.out / "ticks"
        return ticks.stat().st_size if ticks.exists() else 0

    def reach(self, steps: int) -> None:
        """Wait until it has made so many, or is through."""
        end = monotonic() + PATIENCE
        while self.steps < steps and self.process.exitcode is None and monotonic() < end:
            sleep(0.002)

    def kill(self) -> bool:
        """All of it at once; whether there was anything to kill."""
        assert self.process.pid is not None
        alive = self.process.exitcode is None
        for each in list(family(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.process.join(60)
        return alive

    def end(self) -> str:
        """How it came out: "right" is still to be seen."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.kill()
            return "hangs"
        if self.process.exitcode == 0:
            return "ended"
        return "stack trace" if "Traceback" in self.said else "a line"

    @property
    def said(self) -> str:
        return (self.out / "said.txt").read_text(errors="replace")

    @property
    def error(self) -> str:
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1].replace(f"{self.folder}/", "")[:200] if lines else ""

    @property
    def weights(self) -> Weights:
        return torch.load(self.out / "weights.pt")
