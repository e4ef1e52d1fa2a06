"""Runs of this machine: small ones are trained in this process (in_process.py), others by workers (processes.py), watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from lengthlab import training
from lengthlab.device import AUTO, device_named, in_words
from lengthlab.errors import LabError, RunFailed, cut, explain, require, require_whole
from lengthlab.integrations.trackers import chosen_trackers
from lengthlab.launch.in_process import Tell, seconds_here, train_here
from lengthlab.launch.processes import work
from lengthlab.launch.progress import Progress
from lengthlab.launch.tracking import tracked
from lengthlab.spec.run import Run
from lengthlab.spec.source import refuse_while_loading
from lengthlab.store import Store
from lengthlab.store.garbage_collection import uncollected
from lengthlab.store.index import Indexes
from lengthlab.store.status import visible
from lengthlab.training.examination import examine
from lengthlab.training.precision import precision_named
from lengthlab.training.result import Result, claim, kept_result, measure


@dataclass(frozen=True)
class Outcome:
    """What became of a run: a result, or the reason why there is none."""

    run: Run
    result: Result | None
    error: str | None


def train(
    run: Run,
    store: str | os.PathLike[str] = "runs",
    device: str = AUTO,
    precision: str | None = None,
    progress: bool = True,
    track: str | Sequence[str] = (),
) -> Result:
    """Train a run and measure it, in this process. Goes on where it was if the folder is there; returns at once if finished.

    Where it is and how long it will take is shown on standard error, unless `progress` is False. `track`: trackers that are
    told of it, "tensorboard", "trackio", "wandb"; one that fails is named in a warning, and stops nothing.

    >>> import lengthlab as ll, tempfile
    >>> task, model = ll.tasks.ModuloRecall(modulus=2, keys=8), ll.models.lstm(width=8)
    >>> run = ll.Run(task, model, ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> with tempfile.TemporaryDirectory() as store:
    ...     result = ll.train(run, store, progress=False)
    ...     0 <= result.accuracy(length=8) <= 1
    True
    """
    refuse_while_loading("train")
    require(isinstance(run, Run), f"what is trained is a Run, as ll.Run makes it, not {cut(repr(run))}")
    place, chosen, trackers = Store(store), device_named(device), chosen_trackers(track)
    left = [] if place.folder(run.id).finished else [run]  # a run that cannot be kept is refused before anything is written
    examine([run], store, str(chosen), precision, say if progress else None)
    place.prepare()
    if run.label and not left:
        claim(place.folder(run.id), run)  # a finished run may be called otherwise
    with tracked(trackers, [run], place.root, say if progress else None), _shown(left, place, chosen, 1, progress):
        return training.train(run, store, device, precision)


def train_all(
    runs: Sequence[Run],
    store: str | os.PathLike[str] = "runs",
    device: str = AUTO,
    workers: int | None = None,
    precision: str | None = None,
    progress: bool = True,
    track: str | Sequence[str] = (),
) -> list[Result]:
    """Train runs, as many at a time as there are cores, one thread each, and wait for them; finished ones are only read.

    A result for each run, in their order. Where runs fail, the others are trained to their end; then RunFailed names those
    that did, and `lengthlab.results(store)` has the others.

    Small runs are trained in this process, larger ones in workers (in_process.py says which); with `workers`, all are trained
    by so many of these. Where the runs are and how long they will take is shown on standard error, unless `progress`
    is False. Ctrl-C stops them after the step (on a GPU: the 50 steps) under way and goes up as KeyboardInterrupt. `track` is
    that of `train`.
    """
    refuse_while_loading("train_all")
    outcomes = try_all(runs, store, device, workers, precision, progress, track)
    failed = [f"{outcome.run.title} (run {outcome.run.id}): {outcome.error}" for outcome in outcomes if outcome.error]
    if failed:
        raise RunFailed(f"{len(failed)} of {len(runs)} runs failed. {'; '.join(failed)}")
    return [outcome.result for outcome in outcomes if outcome.result]


def try_all(
    runs: Sequence[Run],
    store: str | os.PathLike[str] = "runs",
    device: str = AUTO,
    workers: int | None = None,
    precision: str | None = None,
    progress: bool = True,
    track: str | Sequence[str] = (),
) -> list[Outcome]:
    """As `train_all`; what became of each run, well or not."""
    listed = isinstance(runs, Sequence) and all(isinstance(run, Run) for run in runs)
    require(listed, f"what is trained is a list of runs, each as ll.Run makes it, not {cut(repr(runs))}")
    place, chosen, trackers = Store(store), device_named(device), chosen_trackers(track)
    kept_in = precision_named(precision, chosen)
    if workers is not None:
        require_whole(workers, "workers", 1)
    by_id = {run.id: run for run in runs}  # a run that cannot be kept is refused before anything is written
    examine(runs, store, str(chosen), precision, say if progress else None)
    place.prepare()
    left, errors = _claimed(by_id, place)
    number = workers or default_workers(chosen)
    told = tracked(trackers, list(by_id.values()), place.root, say if progress else None)
    with told, _shown(left, place, chosen, min(number, len(left)), progress) as tell:
        seconds = 0.0 if workers else seconds_here(left, chosen, number)
        errors |= train_here(left, place, chosen, kept_in, seconds, tell) if seconds else {}
        unfinished = [run.id for run in left if run.id not in errors and not place.folder(run.id).finished]
        packs = [unfinished] if chosen.type == "cuda" else [[run_id] for run_id in unfinished]
        command = [str(place.root), str(chosen), precision or ""]
        errors |= work([pack for pack in packs if pack], command, number, lambda more: tell(errors | dict(more)))
    return outcomes_of(runs, place, device, errors)


def default_workers(device: torch.device) -> int:
    """A CPU run uses one core; the runs on a GPU share one process."""
    return (os.cpu_count() or 1) if device.type == "cpu" else 1


def _claimed(runs: Mapping[str, Run], store: Store) -> tuple[list[Run], dict[str, str]]:
    """The runs that are not finished, each with a folder that says so; and by id, why one cannot have its folder."""
    left, broken = [], {}
    for run_id, run in runs.items():
        folder = store.folder(run_id)
        try:
            if not folder.finished or run.label:  # a finished run may be called otherwise
                claim(folder, run)
            left += [] if folder.finished else [run]
        except LabError as error:
            broken[run_id] = str(error)
    return left, broken


def say(text: str) -> None:
    print(visible(text), file=sys.stderr)


@contextmanager
def _shown(runs: Sequence[Run], store: Store, device: torch.device, threads: int, progress: bool) -> Iterator[Tell]:
    """While inside, where the runs are is shown, if that is asked for and there are any."""
    if not (runs and progress):
        yield lambda failed: None
        return
    with Progress(runs, store.root, f"training on {in_words(device, threads)}") as display:
        yield display.tell


@uncollected()
def outcomes_of(runs: Sequence[Run], store: Store, device: str, errors: Mapping[str, str]) -> list[Outcome]:
    """What became of runs, in their order; what was measured before is only read."""
    folders = [store.folder(run.id) for run in runs]
    indexes = Indexes(folders)
    kept = [kept_result(folder, run, indexes.read_json) for run, folder in zip(runs, folders, strict=True)]
    indexes.save()
    return [
        Outcome(run, known, None) if known else outcome_of(run, store, device, errors)
        for run, known in zip(runs, kept, strict=True)
    ]


def outcome_of(run: Run, store: Store, device: str, errors: Mapping[str, str]) -> Outcome:
    """What became of a run, going by its folder, or else by what was said of it."""
    if run.id in errors and not store.folder(run.id).finished:
        return Outcome(run, None, errors[run.id])
    try:
        return Outcome(run, measure(store.folder(run.id), run.measured_at, device, run=run), None)
    except Exception as error:  # one run's trouble is not the others'
        return Outcome(run, None, explain(error))
