"""Workers that share a bucket and nothing else: real processes and a real server of S3, killed and suspended in the midst."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from command import Call
from lengthlab.launch.queue import queue
from lengthlab.store.bucket import BucketPlace, place_to_read
from lengthlab.store.copies import fetch
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS
from lengthlab.store.lease import names_in
from lengthlab.store.place import Names, Read, carry_out
from lengthlab.training import train
from small_runs import counts, end_to_end_run, files_in, identical, learned, wait_for, weights
from store_workers import CHECKPOINT_OFTEN, SLOW, Worker, start

LONG = end_to_end_run(steps=150, seed=100)
PLAN = """
[defaults]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "lstm", width = 8 }
schedule = { name = "end-to-end", joint = 60 }
lengths = [1, 3]
batch = 4
evaluate = [3]
seeds = [100, 101]
"""


@pytest.fixture
def environment(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variables that tell where the server is, and Python that sets them in another process."""
    words = {"AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    words |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    return f"import os\nos.environ.update({words})\n"


@pytest.fixture
def address(environment: str) -> str:
    return f"s3://lab/{uuid4().hex}"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the long run went through in one go."""
    store = tmp_path_factory.mktemp("alone")
    train(LONG, store)
    return store


@pytest.fixture
def first(address: str, environment: str, tmp_path: Path) -> Worker:
    """A worker in the midst of the run, with a checkpoint, and lines before it, in the bucket."""
    queue([LONG], address)
    worker = start(address, "one", environment + CHECKPOINT_OFTEN + SLOW, said_in=tmp_path)
    place = place_to_read(address)

    def kept() -> bool:
        log = place.do(Read(f"{LONG.id}/1/log.jsonl")) or b""
        return log.count(b"\n") >= 1 and CHECKPOINT in place.do(Names(f"{LONG.id}/1"))

    wait_for(kept)
    return worker


def objects_in(place: BucketPlace, folder: str = "") -> dict[str, bytes]:
    """Every object below a folder."""
    found: dict[str, bytes] = {}
    for name in carry_out(names_in(folder), place):
        path = f"{folder}/{name}" if folder else name
        data = place.do(Read(path))
        found |= objects_in(place, path) if data is None else {path: data}
    return found


def as_if_alone(store: Path, alone: Path) -> None:
    assert identical(weights(store, LONG), weights(alone, LONG))
    assert counts(store, LONG) == counts(alone, LONG)
    assert learned(store, LONG) == learned(alone, LONG)


def test_what_a_killed_worker_had_is_taken_over_and_ends_as_if_nothing_had_been(
    first: Worker, address: str, environment: str, tmp_path: Path, alone: Path, call: Call
) -> None:
    seen = json.loads(call("status", address, "--json").out)
    assert [(each["host"], each["runs"]) for each in seen["workers"]] == [("one", [LONG.id])]
    assert (seen["runs"][0]["state"], seen["runs"][0]["step"] >= 50) == ("training", True)
    first.send(signal.SIGKILL)
    code, said = start(address, "two", environment, said_in=tmp_path).wait()
    assert code == 0, said
    assert "taken over from one" in said
    assert (fetch(address, tmp_path / "runs").new, fetch(address, tmp_path / "runs").there) == (1, 1)
    as_if_alone(tmp_path / "runs", alone)
    assert not [name for name in objects_in(place_to_read(address)) if name.endswith(CHECKPOINTS)]


def test_a_suspended_worker_that_comes_back_too_late_changes_nothing(
    first: Worker, address: str, environment: str, tmp_path: Path, alone: Path
) -> None:
    first.send(signal.SIGSTOP)
    try:
        code, said = start(address, "two", environment, said_in=tmp_path).wait()
        assert code == 0, said
        before = objects_in(place_to_read(address))
        fetch(address, tmp_path / "before")
    finally:
        first.send(signal.SIGCONT)
    code, said = first.wait()
    assert code == 0, said
    assert "was taken over by another process" in said
    after = objects_in(place_to_read(address))
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert {name for name in changed if not name.startswith((f"{LONG.id}/1/", ".workers/"))} == set()
    fetch(address, tmp_path / "after")
    assert files_in(tmp_path / "after") == files_in(tmp_path / "before")
    as_if_alone(tmp_path / "after", alone)


def test_a_plan_is_queued_trained_shown_and_fetched(
    address: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    queued = call("train", "plan.toml", "--queue", "--store", address)
    assert (queued.code, "2 runs wait in" in queued.err) == (0, True), queued.err
    assert "2 waiting" in call("status", address).out
    worked = call("worker", address, "--device", "cpu")
    assert (worked.code, "2 trained" in worked.err) == (0, True), worked.err
    assert "2 finished" in call("status", address).out
    assert "nothing is left to do in" in call("train", "plan.toml", "--queue", "--store", address).err
    assert call("fetch", address, "runs").code == 0
    reported = call("report", "runs", "--json")
    assert len({row["run"] for row in json.loads(reported.out)}) == 2, reported.err


@pytest.mark.parametrize("command", [("worker",), ("status",), ("train", "plan.toml", "--queue", "--store"), ("fetch",)])
def test_a_store_that_cannot_be_used_is_one_line(
    command: tuple[str, ...], environment: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    rest = ("runs",) if command == ("fetch",) else ()
    call(*command, "s3://nobody/runs", *rest).refused("'s3://nobody/runs' cannot be used", "bucket does not exist")
    call(*command, "s4://lab/runs", *rest).refused("'s4://lab/runs' cannot be used", "s3://bucket/runs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    call(*command, "s3://lab/runs", *rest).refused("'s3://lab/runs' cannot be used", "127.0.0.1:9")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_missing_keys_are_one_line(environment: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    call("status", "s3://lab/runs").refused("'s3://lab/runs' cannot be used", "Missing AccessKeyId")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    call("status", "s3://lab/runs").refused("'s3://lab/runs' cannot be used", "no keys: set AWS_ACCESS_KEY_ID")
