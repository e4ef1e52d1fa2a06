"""Many runs, several processes. Processes talk through the store alone: whoever wants to watch reads the logs there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from time import sleep

from lengthlab.device import device_named
from lengthlab.errors import LabError, explain, require
from lengthlab.spec.run import Run
from lengthlab.spec.source import refuse_while_loading
from lengthlab.store import Store
from lengthlab.training.examination import examine
from lengthlab.training.precision import precision_named
from lengthlab.training.result import Result, claim, measure

POLL_SECONDS = 0.1

Watch = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True)
class Outcome:
    """What became of a run: a result, or the reason why there is none."""

    run: Run
    result: Result | None
    error: str | None


def train_all(
    runs: Sequence[Run],
    store: str | os.PathLike[str] = "runs",
    device: str = "cpu",
    workers: int | None = None,
    watch: Watch = lambda failed: None,
    precision: str | None = None,
) -> list[Outcome]:
    """Train runs in worker processes, one thread each, and wait for them; finished ones are only read.

    `watch` is called every tenth of a second with the reasons of the runs that failed so far, by id. Ctrl-C stops the
    workers after the step (on a GPU: the 50 steps) under way and goes up as KeyboardInterrupt.
    """
    refuse_while_loading("train_all")
    precision_named(precision, device_named(device))
    require(workers is None or workers >= 1, f"workers must be at least 1, not {workers}")
    place, by_id = Store(store), {run.id: run for run in runs}
    examine(runs, store, device, precision)
    place.prepare()
    unfinished, broken = [], {}
    for run in by_id.values():
        folder = place.folder(run.id)
        if not folder.finished:
            try:
                claim(folder, run)
                unfinished.append(run.id)
            except LabError as error:
                broken[run.id] = str(error)
    packs = [unfinished] if device.startswith("cuda") else [[run_id] for run_id in unfinished]
    command = [str(place.root), device, precision or ""]
    errors = broken | _work([pack for pack in packs if pack], command, workers or default_workers(device), watch)
    return [_outcome(run, place, device, errors) for run in runs]


def default_workers(device: str) -> int:
    """A CPU run uses one core; the runs on a GPU share one process."""
    return (os.cpu_count() or 1) if device == "cpu" else 1


def _work(packs: list[list[str]], command: list[str], number: int, watch: Watch) -> dict[str, str]:
    """Keep so many workers busy until nothing is left; the errors, by run."""
    waiting = list(packs)
    workers: list[Worker] = []
    errors: dict[str, str] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < number:
                workers.append(Worker(command, waiting.pop(0)))
            for worker in list(workers):
                errors |= worker.listen()
                if worker.gone:
                    workers.remove(worker)
                elif worker.idle:
                    worker.give(waiting.pop(0) if waiting else [])
            watch(dict(errors))
            sleep(POLL_SECONDS)
    finally:
        for worker in workers:
            worker.process.send_signal(signal.SIGINT)
        for worker in workers:
            worker.process.communicate()
            worker.said.unlink(missing_ok=True)
    return errors


class Worker:
    """A process that trains one pack of runs after the other: to start one takes longer than a small run.

    It is in a session of its own, so that Ctrl-C reaches the parent alone, which passes it on once; and it speaks to a file,
    because a pipe would stop one that says more than a pipe holds.
    """

    def __init__(self, command: list[str], pack: list[str]) -> None:
        number, said = mkstemp(prefix="lengthlab-")
        with os.fdopen(number, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lengthlab.launch.worker", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self.said = Path(said)
        self.gone = False
        self._heard, self._last = 0, "no text"
        self.give(pack)

    def give(self, pack: list[str]) -> None:
        """The next runs to train; none says that there will be no more."""
        self.pack, self._dismissed = set(pack), not pack
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that died meanwhile: the next look finds out
            self.process.stdin.write(" ".join(pack) + "\n")
            self.process.stdin.flush()

    @property
    def idle(self) -> bool:
        """Waits for runs."""
        return not self.pack and not self._dismissed

    def listen(self) -> dict[str, str]:
        """What failed since the last time; notes whether the pack is done and whether the process is gone."""
        code = self.process.poll()  # before its words are read, so that the last ones are among them
        errors: dict[str, str] = {}
        for line in self._new_lines(all_of_it=code is not None):
            try:
                said = json.loads(line)
                errors |= {said["run"]: said["error"]} if "run" in said else {}
                self.pack -= {*said.get("done", ()), said.get("run")}
            except (ValueError, KeyError, TypeError, AttributeError):
                self._last = line.strip() or self._last  # of libraries, or of an interpreter that gives up
        if code is not None:
            self.gone = True
            self.process.communicate()
            for run_id in self.pack:
                errors[run_id] = f"the process that trained run {run_id} ended with {code}: {self._last}"
            self.said.unlink()
        return errors

    def _new_lines(self, all_of_it: bool) -> list[str]:
        """Since the last time; a line that is being written is read when it is whole, or when nobody writes any more."""
        with self.said.open("rb") as file:
            file.seek(self._heard)
            new = file.read()
        read = new if all_of_it else new[: new.rfind(b"\n") + 1]
        self._heard += len(read)
        return read.decode("utf-8", "replace").splitlines()


def _outcome(run: Run, store: Store, device: str, errors: dict[str, str]) -> Outcome:
    if run.id in errors and not store.folder(run.id).finished:
        return Outcome(run, None, errors[run.id])
    try:
        return Outcome(run, measure(store.folder(run.id), run.measured_at, device), None)
    except Exception as error:  # one run's trouble is not the others'
        return Outcome(run, None, explain(error))
