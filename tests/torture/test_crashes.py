"""A crash after any system call, and at any byte of any write: what is read then is right, and the same command ends in the
same result. By hand with every byte of every file: LENGTHLAB_CASES=10000 pytest tests/torture/test_crashes.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from torch import Tensor

from lengthlab.errors import LabError
from lengthlab.launch import claims
from lengthlab.launch.claims import ClaimingWorker
from lengthlab.launch.queue import queue
from lengthlab.report.curves import read_curves
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINTS
from lengthlab.store.lease import Owner
from lengthlab.store.watch import status_of
from lengthlab.training import recorder, train
from lengthlab.training.precision import precision_named
from lengthlab.training.result import measure
from recorded_disk import Call, Disk, in_halves, killed, powerless, recording
from small_runs import CPU, counts, delayed_run, files_in, identical, learned, weights

CASES = int(os.environ.get("LENGTHLAB_CASES", "200"))
EVERY_BYTE = 4096 if CASES >= 10_000 else 0
"""Writes up to this size are cut at every byte."""
CUTS = 64 if CASES >= 10_000 else 3
RUN = delayed_run(first=6, joint=6, last=3, seed=100)
FURTHER = 5
"""A length that is measured afterwards."""


Again = Callable[[Path], object]
"""What is done to a store after the crash."""


@dataclass(frozen=True)
class Right:
    """What an undisturbed run comes to, and the calls it took."""

    calls: tuple[Call, ...]
    counts: Any
    more_counts: Any
    weights: dict[str, Tensor]
    log: list[tuple[Any, ...]]


@pytest.fixture(scope="module", autouse=True)
def _many_log_lines() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "LOG_STEPS", 4)
        yield


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory, _many_log_lines: None) -> Right:
    store = tmp_path_factory.mktemp("right") / "store"
    store.mkdir()
    with recording(store) as calls:
        train(RUN, store)
        first = counts(store, RUN)
        measure(Folder(store / RUN.id), [FURTHER])
    nothing_is_missing(calls, store)
    assert {os.path.basename(call.to) for call in calls} > set(CHECKPOINTS), "a checkpoint was not written"
    return Right(tuple(calls), first, counts(store, RUN), weights(store, RUN), learned(store, RUN))


def nothing_is_missing(calls: Sequence[Call], store: Path) -> None:
    """Carried out on paper, the calls come to what is there."""
    disk = Disk()
    for call in calls:
        disk.do(call)
    on_paper = {name: data for name, data in disk.content().items() if not name.endswith(".lock")}
    assert on_paper == files_in(store), "a call was not recorded"


def cuts(call: Call) -> Sequence[int]:
    size = len(call.data)
    return range(size) if size <= EVERY_BYTE else sorted({size * part // CUTS for part in range(CUTS)})


def reads_right(store: Path, right: Right) -> None:
    """What a report, a watcher and a table say of the folder: what was measured, or that nothing was."""
    folder = Folder(store / RUN.id)
    status = status_of(folder)
    leased = ("training", "measuring") if folder.leased else ()  # of a dead worker, until its time is over
    assert status.state in ("waiting", "stopped", "finished", *leased), status
    if folder.finished:
        (curve,), problems = read_curves([folder])
        assert not problems
        assert folder.read_json("result.json")["counts"] in (right.counts, right.more_counts)
        assert curve.first.run == RUN.id


def ends_right(store: Path, right: Right, again: Again) -> None:
    """The same command again."""
    before = (store / RUN.id / "result.json").exists()
    again(store)
    kept = counts(store, RUN)
    assert kept in (right.counts, right.more_counts)
    assert identical(weights(store, RUN), right.weights)
    if not before:
        assert learned(store, RUN) == right.log
    left = {path.name for path in (store / RUN.id).iterdir()} - {".lock", ".lease"}
    if before and again is not train_again:
        left -= set(CHECKPOINTS)  # a worker has no claim to a finished run: what is left there disturbs nobody
    assert left == {"log.jsonl", "result.json", "run.json", "weights.safetensors"}


def train_again(store: Path) -> None:
    train(RUN, store)


def check(
    states: Iterator[tuple[str, Disk]], right: Right, tmp_path: Path, at_most: int, again: Again = train_again
) -> tuple[int, int]:
    """Every state is read; of those that look alike but for files nobody reads, one is gone on from. How many of each."""
    read, tried, seen = 0, 0, set()
    for when, disk in states:
        key = frozenset(disk.seen().items())
        fresh = key not in seen
        seen.add(key)
        if not fresh and read > at_most:
            continue
        store = tmp_path / str(read)
        disk.lay(store)
        read += 1
        try:
            if (store / RUN.id).exists():
                reads_right(store, right)
            if fresh:
                ends_right(store, right, again)
                tried += 1
        except (AssertionError, LabError, OSError) as error:
            raise AssertionError(f"{when}: {error}") from error
        for path in sorted(store.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    return read, tried


def test_a_process_that_dies_at_any_call_or_byte_changes_nothing(right: Right, tmp_path: Path) -> None:
    read, tried = check(killed(right.calls, cuts), right, tmp_path, at_most=20 * CASES)
    print(f"{len(right.calls)} calls: {read} states read, {tried} gone on from")
    assert tried > 20


def test_a_process_that_dies_between_the_halves_of_a_rename_changes_nothing(right: Right, tmp_path: Path) -> None:
    calls = list(in_halves(right.calls))
    assert len(calls) > len(right.calls), "nothing was replaced"
    states = ((when, disk) for when, disk in killed(calls, lambda call: ()) if "(unlink" in when)
    read, tried = check(states, right, tmp_path, at_most=20 * CASES)
    print(f"{len(calls) - len(right.calls)} renames in halves: {read} states read, {tried} gone on from")
    assert tried > 2


def test_a_machine_that_dies_after_any_call_changes_nothing(right: Right, tmp_path: Path) -> None:
    read, tried = check(powerless(right.calls), right, tmp_path, at_most=20 * CASES)
    print(f"{len(right.calls)} calls: {read} states read, {tried} gone on from")
    assert tried > 10


def work_as(host: str, store: Path) -> None:
    ClaimingWorker(store, CPU, precision_named(None, CPU), Owner(host, seconds=600.0)).work()


def test_a_worker_that_dies_at_any_call_or_byte_is_taken_over_and_changes_nothing(
    right: Right, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "recorded"
    store.mkdir()
    with recording(store) as calls:
        queue([RUN], store)
        work_as("one", store)
    nothing_is_missing(calls, store)
    # The lease of the dead is over at once.
    monkeypatch.setattr(claims, "monotonic", lambda: monotonic() * 1e6)
    monkeypatch.setattr(claims, "sleep", lambda seconds: None)
    states = ((when, disk) for when, disk in killed(calls, cuts) if f"{RUN.id}/run.json" in disk.names)
    read, tried = check(states, right, tmp_path, 20 * CASES, lambda store: work_as("two", store))
    print(f"{len(calls)} calls: {read} states read, {tried} gone on from")
    assert tried > 20
