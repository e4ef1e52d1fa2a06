"""Run folders: whole files or none, one process at a time, and nobody else's things touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.store import Folder, Store, named_folders
from lengthlab.store.lease import HOST
from lengthlab.store.rows import rows_in
from lengthlab.training import train
from small_runs import (
    counts,
    delayed_run,
    end_to_end_run,
    files_in,
    folder_of,
    identical,
    learned,
    start_worker,
    wait_for,
    weights,
)


def run_folder(store: Path, run_id: str) -> Folder:
    folder = Folder(store / run_id)
    folder.write_json("run.json", {})
    return folder


# Whole files


def test_who_reads_while_another_writes_never_meets_half_a_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "0123456789ab")
    folder.write_json("result.json", {"number": 0, "long": []})
    finished = threading.Event()

    def write() -> None:
        # Long enough for a file written in place to be met half-way: many times the size of a buffer.
        for number in range(50):
            folder.write_json("result.json", {"number": number, "long": [number] * 10_000})
        finished.set()

    writer = threading.Thread(target=write)
    writer.start()
    met = set()
    while not finished.is_set():
        data = folder.read_json("result.json")
        assert set(data["long"]) <= {data["number"]}
        met.add(data["number"])
    writer.join()
    assert len(met) > 1


FULL_DISK = """
import resource, sys
from pathlib import Path
from lengthlab.store import Folder

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    Folder(Path(sys.argv[1])).write_json("result.json", {"long": "x" * 5000})
except OSError as error:
    print(error.strerror)
"""


def test_a_write_that_fails_leaves_the_old_file_whole_and_nothing_beside_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "0123456789ab")
    folder.write_json("result.json", {"old": True})
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(folder.path)], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert [path.name for path in folder.path.iterdir()] == ["result.json"]
    assert folder.read_json("result.json") == {"old": True}


WHOLE = json.dumps({"run": "0123456789ab", "counts": [{"length": 3}]}).encode()


@given(st.one_of(st.integers(0, len(WHOLE) - 1).map(lambda cut: WHOLE[:cut]), st.just(b"[1, 2]"), st.just(b"\xff\xfe{}")))
def test_a_truncated_or_foreign_file_is_named_and_left_alone(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = Folder(tmp_path_factory.mktemp("store"))
    (folder.path / "result.json").write_bytes(data)
    with pytest.raises(LabError, match=r"result\.json is truncated or foreign") as raised:
        folder.read_json("result.json")
    assert str(folder.path) in str(raised.value)
    assert (folder.path / "result.json").read_bytes() == data


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"result\.json is missing"):
        Folder(tmp_path).read_json("result.json")


def test_rows_of_something_else_than_a_result_are_refused_with_the_folder_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"0123456789ab/result\.json is not the result of a run"):
        rows_in({"counts": []}, where=str(tmp_path / "0123456789ab" / "result.json"))


# The log


def test_the_log_leaves_out_a_line_that_is_still_being_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.read_log() == []
    for step in (50, 100):
        folder.append_log({"step": step})
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"step": 15')
    assert folder.read_log() == [{"step": 50}, {"step": 100}]


@given(steps=st.lists(st.integers(1, 100), max_size=8), kept=st.integers(0, 100))
def test_a_trimmed_log_holds_the_lines_up_to_a_step_and_can_be_added_to(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], kept: int
) -> None:
    folder = Folder(tmp_path_factory.mktemp("run"))
    for step in steps:
        folder.append_log({"step": step})
    folder.trim_log(kept)
    folder.append_log({"step": 101})
    assert folder.read_log() == [{"step": step} for step in steps if step <= kept] + [{"step": 101}]


@pytest.mark.parametrize("line", ["3", '{"loss": 1}', "somebody's notes"])
def test_a_log_that_is_not_ours_is_named_and_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "log.jsonl").write_text(f"{line}\n")
    with pytest.raises(LabError, match=r"log\.jsonl"):
        Folder(tmp_path).trim_log(0)
    assert (tmp_path / "log.jsonl").read_text() == f"{line}\n"


# Finding runs


def test_a_run_is_found_by_the_start_of_its_id(tmp_path: Path) -> None:
    for run_id in ("aa11", "aa22", "bb33"):
        run_folder(tmp_path, run_id)
    assert Store(tmp_path).find("b").id == "bb33"
    assert Store(tmp_path).find("aa2").id == "aa22"


def test_a_start_that_no_run_or_several_runs_have_is_refused(tmp_path: Path) -> None:
    for run_id in ("aa11", "aa22"):
        run_folder(tmp_path, run_id)
    with pytest.raises(LabError, match="has an id that starts with 'cc'"):
        Store(tmp_path).find("cc")
    with pytest.raises(LabError, match=r"several runs .* start with 'aa'"):
        Store(tmp_path).find("aa")


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no store at"):
        Store(tmp_path / "nowhere").folders()
    assert list(tmp_path.iterdir()) == []


def test_names_mean_run_folders_or_whole_stores(tmp_path: Path) -> None:
    for run_id in ("aa11", "bb22"):
        run_folder(tmp_path / "one", run_id)
    run_folder(tmp_path / "two", "cc33")
    named = named_folders([str(tmp_path / "two" / "cc33"), str(tmp_path / "one")])
    assert [folder.id for folder in named] == ["cc33", "aa11", "bb22"]


def test_names_that_mean_no_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match="no runs in"):
        named_folders([str(tmp_path / "empty")])
    with pytest.raises(LabError, match="neither a run folder nor a store"):
        named_folders([str(tmp_path / "missing")])


def test_a_place_below_a_file_cannot_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(LabError, match="is not writable: Not a directory"):
        Store(tmp_path / "file" / "store").prepare()
    assert files_in(tmp_path) == {"file": b"mine"}


def test_a_prepared_store_is_empty(tmp_path: Path) -> None:
    Store(tmp_path / "deep" / "store").prepare()
    assert list((tmp_path / "deep" / "store").iterdir()) == []


# Several processes

SAME, OTHER = delayed_run(), end_to_end_run(steps=60, seed=7)
FOREIGN = {"notes.txt": b"mine", "table.csv/part": b"\x00\x01", "run.json": b"not a run", "drafts/result.json": b"{"}


@dataclass(frozen=True)
class Shared:
    """A store in which three processes worked at once, two of them on the same run."""

    store: Path
    codes: list[int]
    waits: str
    """What the second process on the same run said meanwhile."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    store = tmp_path_factory.mktemp("shared")
    for name, data in FOREIGN.items():
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_bytes(data)
    first = start_worker(store, SAME)
    wait_for(lambda: folder_of(store, SAME).read_log())
    # Held still while it has the run, so that the second surely comes upon a run that is in other hands.
    first.send(signal.SIGSTOP)
    try:
        said = store / "second.log"
        second = start_worker(store, SAME, before=f"import logging; logging.basicConfig(filename={str(said)!r})")
        other = start_worker(store, OTHER)
        wait_for(lambda: said.exists() and said.read_text().endswith("\n"))
        wait_for(lambda: folder_of(store, OTHER).finished)
    finally:
        first.send(signal.SIGCONT)
    codes = [worker.wait() for worker in (first, second, other)]
    return Shared(store, codes, said.read_text())


def test_two_processes_on_one_run_give_one_right_result(shared: Shared, tmp_path: Path) -> None:
    assert shared.codes == [0, 0, 0]
    train(SAME, tmp_path)
    assert identical(weights(shared.store, SAME), weights(tmp_path, SAME))
    assert counts(shared.store, SAME) == counts(tmp_path, SAME)
    assert learned(shared.store, SAME) == learned(tmp_path, SAME)


def test_the_second_process_says_that_it_waits(shared: Shared) -> None:
    assert shared.waits == f"WARNING:lengthlab:run {SAME.id} is in the hands of another process; waiting for it\n"


def test_a_process_on_another_run_of_the_store_does_not_wait(shared: Shared, tmp_path: Path) -> None:
    # It finished while the first was held still: the fixture would have waited in vain otherwise.
    train(OTHER, tmp_path)
    assert identical(weights(shared.store, OTHER), weights(tmp_path, OTHER))


def test_foreign_files_in_a_store_are_neither_seen_nor_touched(shared: Shared) -> None:
    assert {folder.id for folder in Store(shared.store).folders()} == {SAME.id, OTHER.id}
    assert {name: (shared.store / name).read_bytes() for name in FOREIGN} == FOREIGN


RUSH = """
import sys
from pathlib import Path
from lengthlab.store import Folder

folder = Folder(Path(sys.argv[1]))
for number in range(300):
    if sys.argv[2] == "lock":
        with folder.lock():
            pass
    else:
        folder.write_json("run.json", {"number": number})
"""


def test_a_process_that_takes_the_lock_does_not_sweep_away_what_another_is_writing(tmp_path: Path) -> None:
    # `train_all` writes run.json before any worker holds the lock, so a writer and a lock may well meet.
    both = [
        subprocess.Popen([sys.executable, "-c", RUSH, str(tmp_path), what], stderr=subprocess.PIPE, text=True)
        for what in ("lock", "write")
    ]
    said = [process.communicate(timeout=120)[1] for process in both]
    assert said == ["", ""]
    assert Folder(tmp_path).read_json("run.json") == {"number": 299}


def test_what_another_machine_is_writing_is_left_alone_until_it_has_been_silent_for_long(tmp_path: Path) -> None:
    there, mine = tmp_path / ".run.json.elsewhere.1.partial", tmp_path / f".run.json.{HOST}.0x.partial"
    old = tmp_path / ".result.json.elsewhere.1.partial"
    for path in (there, mine, old):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    with Folder(tmp_path).lock():
        pass
    assert (there.exists(), mine.exists(), old.exists()) == (True, False, False)


def test_a_log_of_any_bytes_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'\xff\x00\n{"step": 1}\n')
    with pytest.raises(LabError, match=r"log\.jsonl is foreign"):
        Folder(tmp_path).read_log()


# Without torch

LIGHT = """
import importlib, pkgutil, sys
import lengthlab.report
names = [f"lengthlab.report.{module.name}" for module in pkgutil.iter_modules(lengthlab.report.__path__)]
for name in ["lengthlab.store", "lengthlab.store.rows", "lengthlab.store.watch", *names]:
    importlib.import_module(name)
print(len(names), "torch" in sys.modules)
"""


def test_store_rows_and_reports_need_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    number, torch_too = done.stdout.split()
    assert int(number) >= 3
    assert torch_too == "False"
