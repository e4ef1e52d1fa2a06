"""Runs in an object store: whatever dies, and whoever comes back too late, the result is that of one machine."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from command import Call
from lengthlab.launch import claims
from lengthlab.launch.claims import ClaimingWorker
from lengthlab.spec.run import Run
from lengthlab.store.fenced import Lost
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS, MEASURED, WEIGHTS, Folder
from lengthlab.store.lease import FINISHED, Lease, Leases, Owner
from lengthlab.store.mirrored import RESULT, MirroredStore, files_of
from lengthlab.store.place import Names, Operation, Read, Replace, carry_out
from lengthlab.training import measured, recorder, train
from lengthlab.training.precision import precision_named
from lengthlab.training.result import claim
from lengthlab.training.state import TrainState
from simulated_store import SimulatedStore
from small_runs import CPU, Killed, counts, end_to_end_run, identical, learned, weights

STRIDE = 1 if int(os.environ.get("LENGTHLAB_CASES", "0")) >= 10_000 else 9
"""So many of a worker's words to the store are passed over; by hand, none: LENGTHLAB_CASES=10000."""
SHORT = end_to_end_run(steps=4, seed=100)
KEPT = (RESULT, MEASURED, WEIGHTS, *CHECKPOINTS, "log.jsonl")
RUN = "0123456789ab"
PLAN = """
[defaults]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "lstm", width = 8 }
schedule = { name = "end-to-end", joint = 5 }
lengths = [1, 3]
batch = 4
"""


class Objects(SimulatedStore):
    """An object store in memory: a folder is there as long as something is in it."""

    def __init__(self) -> None:
        super().__init__(fenced=False)

    def do(self, operation: Operation) -> Any:
        if isinstance(operation, Names):
            below = f"{operation.folder}/" if operation.folder else ""
            paths = [f"{folder}/{name}" for folder, files in list(self.files.items()) for name in list(files)]
            return sorted({path.removeprefix(below).split("/")[0] for path in paths if path.startswith(below)})
        return super().do(operation)


class Way:
    """The way of one process to a store. Before it says its word of this number, something happens to it, and meanwhile its
    heart is silent.
    """

    def __init__(self, objects: Objects, word: int, happens: Callable[[], None]) -> None:
        self.objects, self.word, self.happens = objects, word, happens
        self.words, self.silent, self.dead = 0, False, False

    def do(self, operation: Operation) -> Any:
        if threading.current_thread() is not threading.main_thread():
            if self.silent:
                raise TimeoutError
        elif self.dead:
            raise Killed
        else:
            self.words += 1
            if self.words > self.word:
                self._happen()
        return self.objects.do(operation)

    def _happen(self) -> None:
        self.word, self.silent = sys.maxsize, True
        try:
            self.happens()
        except Killed:
            self.dead = True
            raise
        finally:
            self.silent = self.dead


def worker(objects: Any, host: str, seconds: float = 0.05) -> ClaimingWorker:
    store = MirroredStore(objects, "s3://bucket/runs")
    return ClaimingWorker(store, CPU, precision_named(None, CPU), Owner(host, seconds=seconds))


def offer(objects: Objects, run: Run) -> None:
    with closing(MirroredStore(objects, "s3://bucket/runs")) as store:
        claim(store.folder(run.id), run)


def fetched(objects: Objects, run: Run, folder: Path) -> Path:
    for name, data in carry_out(files_of(run.id, KEPT), objects)[1].items():
        Folder(folder / run.id).write(name, data)
    return folder


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint and a line of the log after every step, counts after every length."""
    monkeypatch.setattr(measured, "KEEP_SECONDS", 0.0)
    for name, value in {"FIRST_CHECKPOINT_SECONDS": 0.0, "CHECKPOINT_SECONDS": 0.0, "LOG_STEPS": 1}.items():
        monkeypatch.setattr(recorder, name, value)


def as_if_alone(objects: Objects, folder: Path) -> None:
    here = fetched(objects, SHORT, folder)
    assert identical(weights(here, SHORT), weights(folder / "alone", SHORT))
    assert counts(here, SHORT) == counts(folder / "alone", SHORT)
    assert learned(here, SHORT) == learned(folder / "alone", SHORT)
    assert objects.do(Names(FINISHED)) == [SHORT.id]


@pytest.mark.parametrize(("device", "most", "taken"), [("cpu", None, 1), ("cpu", 2, 1), ("cuda", 2, 2), ("cuda", None, 3)])
def test_a_worker_takes_so_many_runs_at_a_time(
    device: str, most: int | None, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks for runs, on a GPU that is not there: nothing is trained."""
    monkeypatch.setattr(claims, "require_room", lambda run, device: None)
    objects = Objects()
    for seed in range(3):
        offer(objects, replace(SHORT, seed=seed))
    store = MirroredStore(objects, "s3://bucket/runs")
    claiming = ClaimingWorker(store, torch.device(device), precision_named(None, CPU), Owner("one"), most=most)
    found = claiming._engine.waiting
    for _ in range(4):
        found += claiming._more(len(found))
    assert len({run.id for run in found}) == len(found) == taken
    store.close()


def test_a_worker_that_dies_at_a_word_to_the_store_is_taken_over_and_changes_nothing(tmp_path: Path, often: None) -> None:
    def die() -> None:
        raise Killed

    train(SHORT, tmp_path / "alone")
    for word in range(0, 1000, STRIDE):
        objects = Objects()
        offer(objects, SHORT)
        try:
            worker(Way(objects, word, die), "one").work()
            break  # it has fewer words
        except Killed:
            assert worker(objects, "two").work().failed == 0
        as_if_alone(objects, tmp_path)
    assert word > 30


def test_a_worker_that_sleeps_at_a_word_to_the_store_while_another_does_its_run_changes_nothing(
    tmp_path: Path, often: None
) -> None:
    train(SHORT, tmp_path / "alone")
    for word in range(3, 1000, STRIDE):
        objects, seen = Objects(), {}
        offer(objects, SHORT)

        def sleep(objects: Objects = objects, seen: dict[str, bytes] = seen) -> None:
            worker(objects, "two").work()
            seen |= carry_out(files_of(SHORT.id, KEPT), objects)[1]

        way = Way(objects, word, sleep)
        worker(way, "one").work()
        as_if_alone(objects, tmp_path)
        if way.words <= word:
            break
        assert carry_out(files_of(SHORT.id, KEPT), objects)[1] == seen
    assert word > 30


def test_a_checkpoint_that_an_object_store_has_damaged_is_passed_over(tmp_path: Path, often: None) -> None:
    def die() -> None:
        raise Killed

    train(SHORT, tmp_path / "alone")
    objects = Objects()
    offer(objects, SHORT)
    with pytest.raises(Killed):
        worker(Way(objects, 30, die), "one").work()
    folder = f"{SHORT.id}/1"
    newest = max(CHECKPOINTS, key=lambda name: note_in(objects.do(Read(f"{folder}/{name}")))["step"])
    whole = objects.do(Read(f"{folder}/{newest}"))
    objects.do(Replace(f"{folder}/{newest}", whole[:-1] + bytes([whole[-1] ^ 1])))
    assert worker(objects, "two").work().failed == 0
    as_if_alone(objects, tmp_path)
    assert not [name for number in "12" for name in objects.do(Names(f"{SHORT.id}/{number}")) if name in CHECKPOINTS]


def note_in(data: bytes) -> Any:
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["lengthlab"])


@pytest.fixture
def two() -> Iterator[tuple[Objects, MirroredStore, Lease, MirroredStore, Lease]]:
    """A run that was taken from one store's owner by another's."""
    objects, now = Objects(), [0.0]
    stores = [MirroredStore(objects, "s3://bucket/runs") for _ in range(2)]
    first, second = (Leases(Owner(host, seconds=60), lambda: now[0]) for host in ("one", "two"))
    one = carry_out(first.claim(RUN), objects)
    assert one is not None
    stores[0].take(one)
    stores[0].folder(RUN).write(CHECKPOINT, b"one")
    assert carry_out(second.claim(RUN), objects) is None
    now[0] = 1000.0
    other = carry_out(second.claim(RUN), objects)
    assert other is not None
    stores[1].take(other)
    yield objects, stores[0], one, stores[1], other
    for store in stores:
        store.close()


def test_what_a_late_owner_writes_never_counts_and_it_is_told(
    two: tuple[Objects, MirroredStore, Lease, MirroredStore, Lease],
) -> None:
    objects, late, one, store, other = two
    assert (one.number, other.number) == (1, 2)
    assert (store.folder(RUN).path / CHECKPOINT).read_bytes() == b"one"
    for name in (CHECKPOINT, RESULT):
        with pytest.raises(Lost, match="taken over"):
            late.folder(RUN).write(name, b"too late")
    assert not late.folder(RUN).finished
    assert not store.is_finished(RUN)
    assert carry_out(files_of(RUN, KEPT), objects) == (2, {CHECKPOINT: b"one"})


@pytest.mark.parametrize("word", [0, 1, 3, 20])
def test_a_store_that_does_not_answer_is_waited_for_and_is_no_failure_of_the_run(word: int, often: None) -> None:
    objects = Objects()
    offer(objects, SHORT)
    tally = worker(Way(objects, word, silence), "one").work()
    assert (tally.trained, tally.failed) == (1, 0)


def silence() -> None:
    raise TimeoutError("no answer")


def test_folders_and_object_stores_are_told_apart_before_anything_is_written(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    for words in (("train", "plan.toml", "--store"), ("demo", "--store")):
        call(*words, "s3://bucket/runs").refused("'s3://bucket/runs' is an object store", "--queue")
    call("report", "s3://bucket/runs").refused("s3://bucket/runs")
    call("fetch", "runs", "there").refused("'runs' is no address of an object store")
    if importlib.util.find_spec("obstore") is None:
        for words in (("worker",), ("status",), ("train", "plan.toml", "--queue", "--store")):
            call(*words, "s3://bucket/runs").refused("pip install 'lengthlab[objects]'")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_a_run_that_fails_says_where_its_trace_is_and_is_left_to_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(state: TrainState) -> float:
        raise ValueError("no luck")

    objects = Objects()
    offer(objects, SHORT)
    with monkeypatch.context() as patch:
        patch.setattr(TrainState, "advance", fail)
        failing = worker(objects, "one")
        assert failing.work().failed == 1
    trace = f"{SHORT.id}/1/traceback.txt"
    assert "no luck" in failing.troubles[SHORT.id]
    assert f"(where in the code: s3://bucket/runs/{trace})" in failing.troubles[SHORT.id]
    assert b"no luck" in objects.do(Read(trace))
    assert worker(objects, "one").work().trained == 0
    assert worker(objects, "two").work().trained == 1
