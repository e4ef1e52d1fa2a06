"""The index of a store: the answers are the same with and without it, and of files that changed nothing is taken from it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command import Call
from lengthlab.report.cache import FILE as MADE
from lengthlab.report.cache import key_of, made_before
from lengthlab.report.curves import read_curves
from lengthlab.report.sources import read_sources
from lengthlab.store import Folder, Status, Store, Watch
from lengthlab.store.holders import holders_of
from lengthlab.store.index import FEWEST, FILE, Index

NUMBER = FEWEST + 10


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of finished runs, as training leaves them."""
    root = tmp_path_factory.mktemp("written") / "runs"
    for number in range(NUMBER):
        write(Store(root).folder(f"{number:020x}"), number)
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """One's own copy."""
    return Path(shutil.copytree(written, tmp_path / "runs"))


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now are taken in."""
    monkeypatch.setattr("lengthlab.store.index.SETTLED", 0)


def write(folder: Folder, number: int, correct: int = 5) -> None:
    phases = {"name": "delayed", "phases": [{"length": 10, "lr": 0.001 * (1 + number % 3)}]}
    about = {"task": {"name": "copy"}, "model": {"name": "lstm", "width": 8}, "schedule": phases}
    folder.write_json("run.json", {"results": 2, **about, "lengths": [1, 4], "batch": 4, "seed": number // 3, "files": {}})
    counts = [{"length": length, "question": "all", "correct": correct, "total": 10 + number} for length in (4, 8)]
    names = {"run": folder.path.name, "model": "lstm", "task": "copy", "training": "delayed", "seed": number // 3}
    made = {"settings": str(number % 3), "lengths": [1, 4], "steps": 10, "ends": [10], "batch": 4, "chance": {"all": 0.1}}
    told = {"seconds": 0.2, "hardware": "cpu", "precision": "fp32", "versions": {"torch": "2"}, "date": "2026-01-01T00:00:00"}
    folder.append_log({"step": 10, "loss": 1.5, "phase": 1, "samples_per_second": 80.0, "accuracy": {"4": 0.5}})
    folder.write_json("result.json", names | made | told | {"counts": counts})


def statuses(root: Path) -> tuple[Status, ...]:
    return Watch(Store(root)).look().statuses


def test_the_same_answers_with_and_without(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, curves = statuses(root), read_curves(Store(root).folders())
    assert (root / FILE).exists()
    assert len(curves[0]) == NUMBER
    opened: list[str] = []
    real = Folder.read_json

    def noted(folder: Folder, name: str) -> dict[str, Any]:
        opened.append(name)
        return real(folder, name)

    monkeypatch.setattr(Folder, "read_json", noted)
    assert statuses(root) == before
    assert read_curves(Store(root).folders()) == curves
    assert opened == []  # all of it was in the index


def test_a_changed_result_is_noticed(root: Path) -> None:
    statuses(root)
    changed = Store(root).folders()[7]
    shutil.rmtree(changed.path)
    write(changed, 7, correct=9)
    known = {curve.first.run: curve.first.correct for curve in read_curves(Store(root).folders())[0]}
    assert known[changed.id] == 9
    assert sum(known.values()) == 5 * (NUMBER - 1) + 9
    result = changed.path / "result.json"
    there = os.stat(result)
    result.write_bytes(result.read_bytes().replace(b'"correct": 9', b'"correct": 8'))  # in place, of the same size and time
    os.utime(result, ns=(there.st_atime_ns, there.st_mtime_ns))
    assert {curve.first.run: curve.first.correct for curve in read_curves(Store(root).folders())[0]}[changed.id] == 8


def test_a_longer_log_is_read_whole(root: Path) -> None:
    statuses(root)
    watch = Watch(Store(root))
    watch.look()
    folder = Store(root).folders()[3]
    folder.append_log({"step": 12, "loss": 0.5})
    (now,) = [status for status in watch.look().statuses if status.run == folder.id]
    assert (now.step, now.loss) == (12, 0.5)
    assert now == next(each for each in statuses(root) if each.run == folder.id)


@pytest.mark.parametrize("part", ["version", "identity", "entry", "parts", "log"])
def test_a_foreign_index_is_no_index(root: Path, part: str) -> None:
    before, curves = statuses(root), read_curves(Store(root).folders())
    found = json.loads((root / FILE).read_bytes())
    if part == "version":
        found["version"] = 0
        found["parts"] = ["nonsense"] * len(found["parts"])
    for run in found["runs"].values():
        if part == "identity":
            run["result.json"] = [["x"], {"seed": "hostile"}]
        if part == "entry":
            run["result.json"], run["run.json"] = [None, 5], {"a": []}
        if part == "log":
            run["log.jsonl"][1] = {"lines": "many", "last": [], "pace": 3, "notes": None, "foreign": {}}
    if part == "parts":
        found["parts"] = []
    (root / FILE).write_text(json.dumps(found))
    assert statuses(root) == before
    assert read_curves(Store(root).folders()) == curves


@pytest.mark.parametrize("data", [b"", b'{"version": 1, "parts": [', b"[" * 100_000, b"\xff\x00", b"[]", b'{"version":1}'])
def test_a_torn_index_is_made_anew(root: Path, data: bytes) -> None:
    (root / FILE).write_bytes(data)
    assert {status.state for status in statuses(root)} == {"finished"}
    assert json.loads((root / FILE).read_bytes())["version"] == 1


def test_two_writers_at_once(root: Path) -> None:
    before = holders_of(Store(root))
    (root / FILE).unlink()
    code = f"""if True:
        from lengthlab.store import Store, index
        from lengthlab.store.holders import holders_of
        index.SETTLED = 0
        for _ in range(5):
            (Store({str(root)!r}).root / index.FILE).unlink(missing_ok=True)
            assert len([each for each in holders_of(Store({str(root)!r})).statuses if each.state == "finished"]) == {NUMBER}"""
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert holders_of(Store(root)) == before
    assert [each.name for each in root.iterdir() if not each.is_dir()] == [FILE]


def test_small_and_read_only_stores_are_left_alone(root: Path) -> None:
    for folder in Store(root).folders()[FEWEST - 1 :]:
        shutil.rmtree(folder.path)
    statuses(root)
    assert not (root / FILE).exists()
    index = Index(root, runs=NUMBER)
    for folder in Store(root).folders():
        index.read_json(folder, "result.json")
    root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        index.save()
    finally:
        root.chmod(stat.S_IRWXU)
    assert os.geteuid() == 0 or not (root / FILE).exists()


def test_a_report_of_many_is_not_written_twice(root: Path, tmp_path: Path, call: Call) -> None:
    page = tmp_path / "page"
    first, again = (call("report", root, "--out", page).out for _ in range(2))
    assert f"wrote {page / 'table.csv'}" in first
    assert f"{page / 'table.csv'} is as these runs are" in again
    key = json.loads((page / MADE).read_bytes())["key"]
    assert key_of(read_sources([str(root)]), "another command") != key
    assert made_before(page, key)
    (page / "table.csv").write_text("somebody else's")
    assert not made_before(page, key)
    (page / MADE).write_text('{"key": "", "files": {"/etc/passwd": []}}')
    assert not made_before(page, "")
