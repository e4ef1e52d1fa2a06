"""A disk that goes wrong: full, read-only, failing, slow, with renames in two halves, with a clock that jumps. What was kept is
whole, and the same command ends in the same result once the disk is well. By hand, every call: LENGTHLAB_CASES=10000.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

from command import Done
from desk import RUN, only_run
from disk_faults import go_wrong
from lengthlab.cli import main
from lengthlab.launch import in_process
from lengthlab.store import Folder
from lengthlab.store.watch import status_of
from lengthlab.training import train
from small_runs import counts, identical, weights

MANY = int(os.environ.get("LENGTHLAB_CASES", "200")) >= 10_000
CALLS = range(1, 61) if MANY else (1, 3, 9, 18, 26)
SIZES = range(4, 84, 4) if MANY else (4, 12, 28)
"""Kilobytes, in pages of 4: what the run keeps is some 60."""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(RUN)
    return path


def faulty(folder: Path, fault: str, *words: object) -> Done:
    """`lengthlab WORDS` with a fault below `folder`, forked from a process that has imported torch."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["lengthlab.training.engine", "torch._dynamo"])
    said = folder.parent / "said.txt"
    process = forks.Process(target=_be, args=(str(said), fault, str(folder), tuple(map(str, words))))
    process.start()
    process.join(120)
    process.kill()
    assert process.exitcode is not None, "it does not end"
    return Done(process.exitcode, "", said.read_text())


def _be(said: str, fault: str, folder: str, words: tuple[str, ...]) -> None:
    number = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(number, 1), os.dup2(number, 2)
    go_wrong(fault, folder)
    in_process.START_SECONDS = inf
    sys.argv[:] = ["lengthlab", *words]
    main()


def told_in_a_line(done: Done, *words: str) -> None:
    assert done.code in (1, 2), done.err
    assert "Traceback" not in done.err
    assert len(done.said) == 1, done.err
    for word in words:
        assert word in done.said[0]


def as_ever(plan: Path, store: Path, right: Folder) -> None:
    """The same command, now that the disk is well."""
    run = only_run(plan)
    train(run, store)
    assert identical(weights(store, run), weights(right.path.parent, run))
    assert counts(store, run) == counts(right.path.parent, run)
    assert not [path for path in store.rglob("*.partial") if f".{os.getpid()}." not in path.name]


@pytest.mark.parametrize("kind", ["eio", "eio-once"])
def test_an_error_of_the_disk_at_any_call_is_told_in_a_line_and_loses_nothing(
    plan: Path, finished_once: Folder, tmp_path: Path, kind: str
) -> None:
    told = 0
    for number in CALLS:
        store = tmp_path / f"{kind}-{number}"
        done = faulty(store, f"{kind}:{number}", "train", plan, "--store", store)
        if done.code:
            told_in_a_line(done, "Input/output error", store.name)
            told += 1
        as_ever(plan, store, finished_once)
        shutil.rmtree(store)
    assert told > 2


@pytest.mark.parametrize("fault", ["slow", "halves"])
def test_slow_writes_and_renames_in_halves_change_nothing(
    plan: Path, finished_once: Folder, tmp_path: Path, fault: str
) -> None:
    store = tmp_path / "store"
    done = faulty(store, fault, "train", plan, "--store", store)
    assert done.code == 0, done.err
    run = only_run(plan)
    assert status_of(Folder(store / run.id)).state == "finished"
    as_ever(plan, store, finished_once)


def test_a_clock_that_jumps_changes_nothing(plan: Path, finished_once: Folder, tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-m", "disk_faults", "clock", str(store), "lengthlab", "train", str(plan), "--store", str(store)]
    paths = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    as_ever(plan, store, finished_once)


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Where small file systems can be mounted."""
    (tmp_path / "try").mkdir()
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path / "try")]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine lets nobody mount a file system: {error}")
    return tmp_path / "disks"


def test_a_disk_that_is_full_or_read_only_is_told_in_a_line_and_loses_nothing(
    plan: Path, finished_once: Folder, disks: Path
) -> None:
    disks.mkdir()
    sizes = [*map(str, SIZES), "ro"]
    words = ["unshare", "-rm", sys.executable, str(Path(__file__).parents[1] / "small_disk.py"), str(disks), *sizes, "--"]
    words += ["train", str(plan), "--store", str(disks / "disk" / "runs")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["size"] for each in found] == sizes
    for each in found:
        if each["code"]:
            why = "is not writable" if each["size"] == "ro" else "No space left on device"
            told_in_a_line(Done(each["code"], "", each["said"]), why, "runs")
        if each["size"] != "ro":
            as_ever(plan, disks / each["size"] / "runs", finished_once)
    assert [each["code"] for each in found if each["size"] in ("4", "12", "ro")] == [2, 2, 2]
