"""Runs small enough to train in a second, what is compared of them, and a worker process for those that must die."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Generator, Tensor

from lengthlab.launch import worker
from lengthlab.models import Model, hybrid_block
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Schedule, delayed, end_to_end
from lengthlab.store import Folder, Store
from lengthlab.store.folder import CHECKPOINTS
from lengthlab.tasks import Batch, ModuloRecall
from lengthlab.training import recorder, train
from lengthlab.training.state import TrainState

CPU = torch.device("cpu")
TASK = ModuloRecall(modulus=2, values=4, keys=12)
LR = 1e-2


def small_model(width: int = 8) -> Model:
    return hybrid_block(width=width, blocks=1, heads=2, mlp=1, positions="none", scores="log-n")


def end_to_end_run(steps: int = 60, **changes: Any) -> Run:
    return small_run(end_to_end(steps, lr=LR), **changes)


def delayed_run(first: int = 60, joint: int = 60, last: int = 40, **changes: Any) -> Run:
    return small_run(delayed(first, joint, last, lr=LR), **changes)


def small_run(schedule: Schedule, **changes: Any) -> Run:
    """Any schedule on the small model; measured at one length only, because a measurement costs as much as 50 steps."""
    rest: dict[str, Any] = {"task": TASK, "model": small_model(), "lengths": (1, 3), "batch": 4, "evaluate": (3,)}
    return Run(schedule=schedule, **rest | changes)


@dataclass(frozen=True)
class Recording(ModuloRecall):
    """A user's own task that writes down what it is asked for: the lengths of a draw and the seed of the generator."""

    asked: ClassVar[list[tuple[list[int], int]]] = []

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        self.asked.append((n_B.tolist(), generator.initial_seed()))
        return super().draw(n_B, generator)


def folder_of(store: Path, run: Run) -> Folder:
    return Store(store).folder(run.id)


def weights(store: Path, run: Run) -> dict[str, Tensor]:
    return load_file(folder_of(store, run).path / "weights.safetensors")


def counts(store: Path, run: Run) -> Any:
    return folder_of(store, run).read_json("result.json")["counts"]


def learned(store: Path, run: Run) -> list[tuple[Any, ...]]:
    """The log, without what depends on how fast the machine is."""
    return [(line["step"], line["phase"], line["loss"], line["lr"]) for line in folder_of(store, run).read_log()]


def checkpoint_steps(store: Path, run: Run) -> dict[int, Path]:
    """The checkpoints of a run by their step, the newest first."""
    steps = {}
    for path in (folder_of(store, run).path / name for name in CHECKPOINTS):
        if path.exists():
            with safe_open(path, framework="pt") as file:
                steps[int(json.loads(file.metadata()["lengthlab"])["step"])] = path
    return dict(sorted(steps.items(), reverse=True))


def identical(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def files_in(path: Path) -> dict[str, bytes]:
    """Every file below a path with its content; a lock file is no content."""
    files = [file for file in path.rglob("*") if file.is_file() and file.name != ".lock"]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Killed(BaseException):
    """Nothing in the package may catch it, so that it is as good as a kill."""


def train_until_killed(run: Run, store: Path, step: int, checkpoint_seconds: float) -> None:
    advance = TrainState.advance

    def dying(state: TrainState) -> float:
        if state.step == step:
            raise Killed
        return advance(state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainState, "advance", dying)
        patch.setattr(recorder, "FIRST_CHECKPOINT_SECONDS", checkpoint_seconds)
        patch.setattr(recorder, "CHECKPOINT_SECONDS", checkpoint_seconds)
        with pytest.raises(Killed):
            train(run, store)


@dataclass(frozen=True)
class Worker:
    """A real process at the work of `python -m lengthlab.launch.worker`, to be stopped and killed."""

    process: multiprocessing.process.BaseProcess
    parent: Connection
    """Its standard input is the other end: to the worker, the end of this is the end of its parent."""

    def send(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        """Its exit code; that of a killed one is negative."""
        self.process.join(timeout=120)
        assert self.process.exitcode is not None, "the worker does not end"
        return self.process.exitcode


def start_worker(store: Path, *runs: Run, before: str = "") -> Worker:
    """A worker on these runs; `before` is Python for it to do first, to die at a chosen moment, say.

    It is forked from a process that has imported torch and has done nothing else: an import takes longer than all the rest.
    """
    for run in runs:
        folder_of(store, run).write_json("run.json", run.to_json())
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["lengthlab.training.engine", "torch._dynamo"])
    parents_end, workers_end = forks.Pipe()
    process = forks.Process(target=_work, args=(workers_end, before, str(store), "cpu", ""), daemon=True)
    process.start()
    workers_end.close()
    os.write(parents_end.fileno(), (" ".join(run.id for run in runs) + "\n\n").encode())
    return Worker(process, parents_end)


def _work(parent: Connection, before: str, *arguments: str) -> None:
    os.dup2(parent.fileno(), 0)
    parent.close()
    exec(before, {})
    sys.exit(worker.main(*arguments))


def wait_for(happened: Callable[[], object], patience: float = 120.0) -> None:
    """Until it has happened; a test that waits in vain fails instead of hanging."""
    end = monotonic() + patience
    while not happened():
        assert monotonic() < end, "what the test waits for did not happen"
        sleep(0.005)
