"""Many runs, several processes. Processes talk through the store alone: whoever wants to watch reads the logs there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from time import sleep

from lengthlab.device import device_named
from lengthlab.errors import LabError, explain
from lengthlab.spec.run import Run
from lengthlab.spec.source import refuse_while_loading
from lengthlab.store import Store
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
    place, by_id = Store(store), {run.id: run for run in runs}
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
    jobs = [unfinished] if device.startswith("cuda") else [[run_id] for run_id in unfinished]
    command = [str(place.root), device, precision or ""]
    errors = broken | _work([job for job in jobs if job], command, workers or default_workers(device), watch)
    return [_outcome(run, place, device, errors) for run in runs]


def default_workers(device: str) -> int:
    """A CPU run uses one core; the runs on a GPU share one process."""
    return (os.cpu_count() or 1) if device == "cpu" else 1


def _work(jobs: list[list[str]], command: list[str], workers: int, watch: Watch) -> dict[str, str]:
    """Keep so many workers busy until nothing is left; the errors, by run."""
    waiting = list(jobs)
    busy: list[Worker] = []
    errors: dict[str, str] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                busy.append(_start(command, waiting.pop(0)))
            for worker in [worker for worker in busy if worker.process.poll() is not None]:
                busy.remove(worker)
                errors |= _errors(worker)
            watch(errors | {run_id: reason for worker in busy for run_id, reason in _heard(worker).items()})
            sleep(POLL_SECONDS)
    finally:
        for worker in busy:
            worker.process.send_signal(signal.SIGINT)
        for worker in busy:
            worker.process.communicate()
            worker.said.unlink(missing_ok=True)
    return errors


@dataclass(frozen=True)
class Worker:
    """A process and the file it speaks to: a pipe would stop one that says more than a pipe holds."""

    ids: list[str]
    process: subprocess.Popen[str]
    said: Path


def _start(command: list[str], ids: list[str]) -> Worker:
    """A worker in a session of its own, so that Ctrl-C reaches the parent alone, which passes it on once."""
    number, said = mkstemp(prefix="lengthlab-")
    with os.fdopen(number, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "lengthlab.launch.worker", *command, *ids],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=file,
            text=True,
            start_new_session=True,
        )
    return Worker(ids, process, Path(said))


def _heard(worker: Worker) -> dict[str, str]:
    """What failed so far."""
    errors = {}
    for line in worker.said.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            errors[json.loads(line)["run"]] = json.loads(line)["error"]
        except (ValueError, KeyError, TypeError):
            continue  # warnings of libraries, and a line that is being written
    return errors


def _errors(worker: Worker) -> dict[str, str]:
    process = worker.process
    process.communicate()
    errors = _heard(worker)
    said = worker.said.read_text(encoding="utf-8", errors="replace")
    worker.said.unlink()
    if process.returncode not in (0, 1) or (process.returncode == 1 and not errors):
        last = said.strip().splitlines()[-1:] or ["no text"]
        for run_id in worker.ids:
            errors.setdefault(run_id, f"the process that trained run {run_id} ended with {process.returncode}: {last[0]}")
    return errors


def _outcome(run: Run, store: Store, device: str, errors: dict[str, str]) -> Outcome:
    if run.id in errors:
        return Outcome(run, None, errors[run.id])
    try:
        return Outcome(run, measure(store.folder(run.id), run.measured_at, device), None)
    except Exception as error:  # one run's trouble is not the others'
        return Outcome(run, None, explain(error))
