"""Workers that find their runs in a store: real processes, killed and suspended."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from command import Call
from lengthlab.launch.queue import queue
from lengthlab.store import Store
from lengthlab.store.holders import holders_of
from lengthlab.training import train
from small_runs import counts, end_to_end_run, files_in, folder_of, identical, learned, wait_for, weights
from store_workers import CHECKPOINT_OFTEN, SLOW, Worker, start

RUNS = [end_to_end_run(steps=60, seed=seed) for seed in (100, 101, 102, 103)]
LONG = end_to_end_run(steps=300, seed=100)


def claims_of(store: Path, run: str) -> list[str]:
    return sorted(path.name for path in (store / run / ".lease").iterdir())


def how_it_ended(store: Path, run: str, number: int) -> str:
    return str(json.loads((store / run / ".lease" / f"{number}.end").read_bytes())["how"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store where the long run went through in one go, without a lease."""
    store = tmp_path_factory.mktemp("alone")
    train(LONG, store)
    return store


def test_two_workers_on_one_store_do_each_run_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    queue(RUNS, store)
    workers = [start(store, host, lease=60) for host in ("one", "two")]
    said = [worker.wait() for worker in workers]
    assert [code for code, _ in said] == [0, 0], said
    assert sum(text.count("begun") for _, text in said) == len(RUNS)
    for run in RUNS:
        assert folder_of(store, run).finished
        assert [line["step"] for line in folder_of(store, run).read_log()] == [50, 60]
        assert not list((store / run.id).glob("*checkpoint*"))
        assert not list((store / run.id / ".lease").glob("*.writes"))
    assert list((store / ".workers").iterdir()) == []


def written_when(store: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (store / LONG.id).rglob("*") if path.is_file()}


def as_if_alone(store: Path, alone: Path) -> None:
    assert identical(weights(store, LONG), weights(alone, LONG))
    assert counts(store, LONG) == counts(alone, LONG)
    assert learned(store, LONG) == learned(alone, LONG)


@pytest.fixture
def held(tmp_path: Path) -> tuple[Path, Worker]:
    """A store and a worker in the midst of the run, with a checkpoint."""
    store = tmp_path / "store"
    queue([LONG], store)
    first = start(store, "one", CHECKPOINT_OFTEN + SLOW)
    wait_for(lambda: len(folder_of(store, LONG).read_log()) >= 2 and (store / LONG.id / "checkpoint.safetensors").exists())
    return store, first


def test_what_a_killed_worker_had_is_taken_over_and_ends_as_if_nothing_had_been(held: tuple[Path, Worker], alone: Path) -> None:
    store, first = held
    second = start(store, "two")
    wait_for(lambda: "worker" in second.said.read_text() if second.said.exists() else False)
    first.send(signal.SIGKILL)
    code, said = second.wait()
    assert code == 0, said
    assert "taken over from one" in said
    assert [how_it_ended(store, LONG.id, number) for number in (1, 2)] == ["lost", "finished"]
    as_if_alone(store, alone)


def test_a_suspended_worker_that_comes_back_too_late_writes_nothing(held: tuple[Path, Worker], alone: Path) -> None:
    store, first = held
    first.send(signal.SIGSTOP)
    try:
        code, said = start(store, "two").wait()
        assert code == 0, said
        before = {name: data for name, data in files_in(store).items() if not name.startswith(".workers")}
        stamps = written_when(store)
    finally:
        first.send(signal.SIGCONT)
    code, said = first.wait()
    assert code == 0, said
    assert "was taken over by another process" in said
    assert {name: data for name, data in files_in(store).items() if not name.startswith(".workers")} == before
    assert written_when(store) == stamps
    as_if_alone(store, alone)


def test_a_worker_that_is_asked_to_stop_gives_its_run_back_at_once(held: tuple[Path, Worker], alone: Path) -> None:
    store, first = held
    first.send(signal.SIGTERM)
    code, said = first.wait()
    assert code == 130, said
    assert how_it_ended(store, LONG.id, 1) == "released"
    train(LONG, store)  # a command without a lease goes on from there
    as_if_alone(store, alone)


FAILS = """
from lengthlab.training.state import TrainState
def fail(state):
    raise ValueError("it always fails")
TrainState.advance = fail"""


def test_a_run_that_fails_on_three_hosts_is_parked_and_others_go_on(tmp_path: Path, call: Call) -> None:
    store = tmp_path / "store"
    queue([LONG], store)
    for host in ("one", "two", "three"):
        code, said = start(store, host, FAILS).wait()
        assert code == 1, said
        assert "it always fails" in said
    queue([RUNS[0]], store)
    code, said = start(store, "four").wait()
    assert code == 0, said
    assert "it is parked; it failed on one" in said
    assert folder_of(store, RUNS[0]).finished
    told = call("status", str(store)).out
    assert "2 runs: 1 finished, 1 parked" in told
    assert told.count("it always fails") == 3
    queue([LONG], store)
    assert not holders_of(Store(store)).parked


def test_status_tells_who_has_what(held: tuple[Path, Worker], call: Call) -> None:
    store, first = held
    told = call("status", str(store)).out
    assert "1 runs: 1 training" in told
    assert f"one, process {first.process.pid}, cpu" in told
    assert LONG.id in told
    found = json.loads(call("status", str(store), "--json").out)
    assert found["workers"][0]["runs"] == [LONG.id]
    first.send(signal.SIGKILL)
