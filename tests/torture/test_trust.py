"""Run folders and checkpoints of somebody who wishes us ill: each is named in a line, quickly and in little memory; nothing in
it is executed, and nothing outside of it is read or written (SECURITY.md).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load, save

from command import Call
from desk import only_run
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS
from lengthlab.store.place import Close, FolderPlace
from lengthlab.store.watch import status_of
from small_runs import checkpoint_steps, train_until_killed

SECRET = "a secret of the user's"


@pytest.fixture
def run(desk: Path) -> Folder:
    (path,) = (desk / "runs").iterdir()
    return Folder(path)


@pytest.fixture
def begun(desk: Path) -> Folder:
    """The plan's run with one checkpoint, after seven steps."""
    run = only_run(desk / "plan.toml")
    train_until_killed(run, desk / "begun", 7, checkpoint_seconds=0.0)
    newest = next(iter(checkpoint_steps(desk / "begun", run).values()))
    newest.replace(newest.parent / CHECKPOINT)
    (newest.parent / CHECKPOINTS[1]).unlink(missing_ok=True)
    return Folder(desk / "begun" / run.id)


def tensors(header: bytes, body: bytes = b"", size: int | None = None) -> bytes:
    """A file of tensors that says that its header is of this size."""
    return struct.pack("<Q", len(header) if size is None else size) + header + body


def one(shape: list[int], offsets: list[int], kind: str = "F32") -> bytes:
    return json.dumps({"a": {"dtype": kind, "shape": shape, "data_offsets": offsets}}).encode()


BOMBS: list[tuple[str, bytes]] = [
    ("a header of 2^64 bytes", tensors(b"{}", size=2**64 - 1)),
    ("a header of 90 MB that is not there", tensors(b"{}", size=90_000_000)),
    ("a header of 90 MB", tensors(b'{"a":' + b" " * 90_000_000 + b"0}")),
    ("a tensor of 2^60 numbers", tensors(one([2**30, 2**30], [0, 4]), b"\0" * 4)),
    ("a tensor of 2^64 bytes", tensors(one([2**62], [0, 2**64]), b"\0" * 4)),
    ("a tensor that overlaps itself", tensors(one([4], [8, 0]), b"\0" * 16)),
    ("a shape below nothing", tensors(one([-1], [0, 4]), b"\0" * 4)),
    ("a kind that is none", tensors(one([1], [0, 4], kind="PICKLE"), b"\0" * 4)),
    ("a header that is nested deeply", tensors(b"[" * 1_000_000)),
    ("a pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93."),
    ("a zip", b"PK\x03\x04" + b"\0" * 100),
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda case: case[0])
def test_a_bomb_for_weights_or_checkpoint_is_named(call: Call, desk: Path, run: Folder, begun: Folder, bomb: Any) -> None:
    (run.path / "weights.safetensors").write_bytes(bomb[1])
    call("evaluate", run.path, "--lengths", "8").refused("weights.safetensors is missing, truncated or of another model")
    (begun.path / "checkpoint.safetensors").write_bytes(bomb[1])
    call("train", "plan.toml", "--store", "begun", "--no-progress").refused("checkpoint.safetensors", "remove it")


def with_note(data: bytes, **changes: Any) -> bytes:
    """A checkpoint whose note says otherwise."""
    size = int.from_bytes(data[:8], "little")
    note = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["lengthlab"]) | changes
    del note["sha256"]
    return bytes(save(load(data), metadata={"lengthlab": json.dumps(note)}))


NOTES: list[dict[str, Any]] = [
    *({"step": bad} for bad in (-1, 10**30, float("inf"), float("nan"), None, [], "x")),
    *({"spared": bad} for bad in ([], [-1, 0], [10**30, 0], 5, [[1]], [float("inf"), 0])),
    *({"seconds": bad} for bad in (float("nan"), float("inf"), -1, "x")),
    *({"looks": bad} for bad in (-1, float("inf"), "x")),
]


@pytest.mark.parametrize("note", NOTES, ids=repr)
def test_a_checkpoint_that_lies_about_where_it_is_is_named(call: Call, desk: Path, begun: Folder, note: dict[str, Any]) -> None:
    path = begun.path / "checkpoint.safetensors"
    path.write_bytes(with_note(path.read_bytes(), **note))
    call("train", "plan.toml", "--store", "begun", "--no-progress").refused("is truncated or not a checkpoint", "remove it")


def test_a_note_that_is_nested_deeply_is_named(call: Call, desk: Path, begun: Folder) -> None:
    path = begun.path / "checkpoint.safetensors"
    path.write_bytes(bytes(save(load(path.read_bytes()), metadata={"lengthlab": "[" * 200_000})))
    call("train", "plan.toml", "--store", "begun", "--no-progress").refused("is truncated or not a checkpoint")


def test_optimizer_state_of_another_shape_is_named(call: Call, desk: Path, begun: Folder) -> None:
    path = begun.path / "checkpoint.safetensors"
    data = path.read_bytes()
    found = dict(load(data))
    name = next(name for name in found if name.startswith("adam/exp_avg/"))
    found[name] = found[name].reshape(-1)[:1]
    size = int.from_bytes(data[:8], "little")
    path.write_bytes(with_note(save(found, metadata=json.loads(data[8 : 8 + size])["__metadata__"])))
    call("train", "plan.toml", "--store", "begun", "--no-progress").refused("does not fit the model", "remove it")


@dataclass(frozen=True)
class Trap:
    """What is put in place of a file, and what is said of it."""

    name: str
    put: Callable[[Path, Path], object]
    said: str


def huge(path: Path, secret: Path) -> None:
    """A terabyte of holes."""
    with open(path, "wb") as file:
        file.truncate(2**40)


TRAPS = [
    Trap("pipe", lambda path, secret: os.mkfifo(path), "is no plain file"),
    Trap("device", lambda path, secret: path.symlink_to("/dev/zero"), "leads out of its folder"),
    Trap("link", lambda path, secret: path.symlink_to(secret), "leads out of its folder"),
    Trap("link up", lambda path, secret: path.symlink_to("../../secret.json"), "leads out of its folder"),
    Trap("huge", huge, "no such file of ours has so many"),
]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
@pytest.mark.parametrize("name", ["run.json", "result.json", "log.jsonl", "weights.safetensors"])
def test_what_is_no_file_of_the_folder_is_named_and_not_read(
    call: Call, desk: Path, run: Folder, name: str, trap: Trap
) -> None:
    secret = desk / "secret.json"
    secret.write_text(json.dumps({"counts": [], "message": SECRET}))
    path = run.path / name
    path.unlink()
    trap.put(path, secret)
    said = []
    for typed in (("report", "runs", "--json"), ("status", "runs", "--json"), ("evaluate", run.path, "--lengths", "8")):
        done = call(*typed)
        assert done.code in (0, 2)
        assert "Traceback" not in done.err
        assert SECRET not in done.out + done.err
        said.append(done.out + done.err)
    if trap.name != "huge" or name != "weights.safetensors":  # those may be large, and are not what their header says
        told = "\n".join(said) + str(status_of(run).trouble)
        assert trap.said in told, told
    assert json.loads(secret.read_text())["message"] == SECRET


def test_a_log_of_one_endless_line_is_named(call: Call, desk: Path, run: Folder) -> None:
    with open(run.path / "log.jsonl", "wb") as file:
        file.truncate(2**29)
    assert "a line that is longer than any of ours" in str(status_of(run).trouble)


@pytest.mark.parametrize("name", [".lock", "log.jsonl", *CHECKPOINTS, "traceback.txt"])
def test_nothing_is_written_through_a_link_that_leads_out(call: Call, desk: Path, begun: Folder, name: str) -> None:
    victim = desk / "victim"
    victim.write_text(SECRET)
    (begun.path / name).unlink(missing_ok=True)
    (begun.path / name).symlink_to(victim)
    done = call("train", "plan.toml", "--store", "begun", "--no-progress")
    assert "Traceback" not in done.err
    assert done.code == (0 if name == "traceback.txt" else 2), done.err
    assert victim.read_text() == SECRET


def test_a_fence_that_is_a_link_is_taken_away_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "file").write_text(SECRET)
    (tmp_path / "1.x.writes").symlink_to(others)
    FolderPlace(tmp_path).do(Close("1.x.writes"))
    assert not (tmp_path / "1.x.writes").is_symlink()
    assert (others / "file").read_text() == SECRET


def test_code_in_a_run_folder_is_not_run_by_looking_at_it(call: Call, desk: Path, run: Folder) -> None:
    from lengthlab.store.ids import hash_of

    content = run.read_json("run.json")
    content["files"] = {"evil.py": f"open({str(desk / 'executed')!r}, 'w')"}
    content["task"] = {"kind": "evil.py:Task"}
    evil = run.path.parent / hash_of(content)
    shutil.copytree(run.path, evil)
    Folder(evil).write_json("run.json", content)
    for typed in (("report", "runs", "--json"), ("status", "runs"), ("evaluate", evil, "--lengths", "8"), ("why", evil)):
        assert "Traceback" not in call(*typed).err
    call("evaluate", evil, "--lengths", "8").refused("evil.py", "--trust")
    assert not (desk / "executed").exists()
