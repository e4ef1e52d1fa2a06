"""Where runs are, from their folders alone: right, whatever is written to them, and without reading anything twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lengthlab.launch import progress as progress_of_runs
from lengthlab.launch.progress import Lines, Progress
from lengthlab.launch.table import plain, table
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Epochs, Mastered, Phase, Schedule, end_to_end
from lengthlab.store import Folder, Status, Store, Watch
from lengthlab.store import log as log_of_a_run
from lengthlab.store.log import Summary, Tail
from lengthlab.store.phases import phases_in
from lengthlab.store.status import Accuracy, State, seconds_left_in_all
from lengthlab.store.watch import status_of
from lengthlab.tasks import ModuloRecall
from lengthlab.training import measure, train
from small_runs import LR, delayed_run, end_to_end_run, folder_of, small_run, start_worker, train_until_killed, wait_for

RUN = delayed_run(first=100, joint=50, last=50)


def begun(store: Path, *lines: dict[str, Any], run: Run = RUN) -> Folder:
    """The folder of a run with such a log."""
    folder = folder_of(store, run)
    folder.write_json("run.json", run.to_json())
    for line in lines:
        folder.append_log(line)
    return folder


def line(step: int, phase: int = 1, **more: Any) -> dict[str, Any]:
    return {"step": step, "phase": phase, "loss": 1.5, "lr": LR, "samples_per_second": 4.0, "seconds": 1.0, **more}


# The log, as it grows

LINES = st.one_of(
    st.integers(0, 500).map(lambda step: json.dumps(line(step)).encode()),
    st.integers(0, 500).map(lambda step: json.dumps(line(step, 2, accuracy={"3": 0.5, "9": 0.25}, skipped=7)).encode()),
    st.sampled_from(
        [b"", b"3", b"somebody's notes", b"\xff\x00", b'{"loss": 1}', b'{"step": "5"}', b'{"step": 1},{"step": 2}', b"[" * 5000]
    ),
    st.sampled_from([b'{"step": 1, "loss": null}', b'{"step": 1, "accuracy": 3}', b'{"step": 1', b"]", b"[1, 2]", b"{}"]),
)
WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(LINES, max_size=4)),
        st.tuples(st.just("half"), LINES),
        st.tuples(st.just("replace"), st.integers(0, 3)),
        st.tuples(st.just("cut"), st.integers(0, 400)),
        st.tuples(st.just("remove"), st.none()),
    ),
    max_size=12,
)


def write(path: Path, what: str, value: Any) -> None:
    there = path.read_bytes() if path.exists() else b""
    if what == "append":
        with open(path, "ab") as file:
            file.write(b"".join(each + b"\n" for each in value))
    elif what == "half":
        with open(path, "ab") as file:
            file.write(value[: len(value) // 2])
    elif what == "replace":  # as a resumed run does
        Folder(path.parent).write(path.name, b"".join(each + b"\n" for each in there.split(b"\n")[:value]))
    elif what == "cut" and path.exists():
        os.truncate(path, min(value, len(there)))
    elif what == "remove":
        path.unlink(missing_ok=True)


def read_anew(path: Path) -> Summary:
    tail = Tail(path)
    tail.read()
    return tail.summary


def by_hand(path: Path) -> tuple[int, int | None, int | None]:
    """Whole lines, the last step, the first foreign line: read one by one, with the parser alone."""
    data = path.read_bytes() if path.exists() else b""
    steps, foreign = [], None
    for number, each in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            steps.append(log_of_a_run.parse(each)["step"])
        except ValueError:
            foreign = foreign or number
    return len(data.split(b"\n")) - 1, steps[-1] if steps else None, foreign


@settings(max_examples=300)
@given(WRITES)
def test_a_log_read_as_it_grows_is_the_log_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("run") / "log.jsonl"
    tail = Tail(path)
    for what, value in writes:
        write(path, what, value)
        tail.read()
        assert tail.summary == read_anew(path)
        found = tail.summary
        assert (found.lines, found.last.step if found.last else None, found.foreign) == by_hand(path)
    shutil.rmtree(path.parent)


def test_lines_longer_than_what_is_read_at_a_time_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_of_a_run, "CHUNK", 7)
    folder = begun(tmp_path, line(50), line(100))
    tail = Tail(folder.path / "log.jsonl")
    tail.read()
    folder.append_log(line(150))
    tail.read()
    assert (tail.summary.lines, tail.summary.last and tail.summary.last.step) == (3, 150)


def bytes_read() -> int:
    """All that this process has read so far."""
    (found,) = [each for each in Path("/proc/self/io").read_text().splitlines() if each.startswith("rchar")]
    return int(found.split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process reads")
@pytest.mark.parametrize(("runs", "lines"), [(500, 200), (5, 10_000)])
def test_a_watch_reads_every_line_once(tmp_path: Path, runs: int, lines: int) -> None:
    # Bytes are counted, not seconds. 500 × 10,000 at once would only be slower to write: each log is read by itself.
    text = "".join(json.dumps(line(50 * number)) + "\n" for number in range(lines))
    content = json.dumps(RUN.to_json())
    for number in range(runs):
        folder = tmp_path / f"{number:020x}"
        folder.mkdir()
        (folder / "run.json").write_text(content)
        (folder / "log.jsonl").write_text(text)
    watch, all_of_it = Watch(Store(tmp_path)), runs * (len(text) + len(content))
    before = bytes_read()
    watch.look()
    assert bytes_read() - before < 1.01 * all_of_it + 10_000

    before = bytes_read()
    for _ in range(20):
        assert not watch.look().changed
    assert bytes_read() - before < 10_000  # a few at each count of the bytes, none of them a log's

    before, looks, added = bytes_read(), 10, json.dumps(line(50 * lines)) + "\n"
    grown = sorted(tmp_path.iterdir())[: runs // 5]
    for _ in range(looks):
        for folder in grown:
            with open(folder / "log.jsonl", "a") as file:
                file.write(added)
        watch.look()
    # What was added, and as much again to see that it was added to the same file.
    assert bytes_read() - before < looks * len(grown) * (len(added) + log_of_a_run.SEAM) + 10_000


# States


def test_a_run_that_nobody_has_begun_waits(tmp_path: Path) -> None:
    status = status_of(begun(tmp_path))
    assert (status.run, status.state, status.phase, status.phases) == (RUN.id, "waiting", None, 3)
    assert (status.task, status.model, status.training, status.seed) == ("modulo-recall", "hybrid-block", "delayed", 0)
    assert (status.step, status.steps, status.at_most) == (0, 200, False)
    assert (status.loss, status.in_range, status.beyond, status.seconds_left) == (None, None, None, None)
    assert not (tmp_path / RUN.id / ".lock").exists()


def test_a_folder_that_is_not_there_waits_and_is_not_made(tmp_path: Path) -> None:
    assert status_of(folder_of(tmp_path, RUN)).state == "waiting"
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_a_process_has_is_in_training(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    with folder.lock():
        assert (status_of(folder).state, status_of(folder).phase) == ("training", 1)
        folder.append_log(line(50, accuracy={"3": 0.5, "9": 0.25}))
        folder.append_log(line(100))
        status = status_of(folder)
    assert (status.state, status.phase, status.off, status.step, status.steps) == ("training", 2, (), 100, 200)
    assert (status.loss, status.in_range, status.beyond) == (1.5, Accuracy(3, 0.5), Accuracy(9, 0.25))


def test_a_run_with_all_steps_made_is_measured(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(200, 3))
    with folder.lock():
        assert (status_of(folder).state, status_of(folder).phase) == ("measuring", None)
    assert status_of(folder).state == "stopped"


def test_a_run_that_nobody_goes_on_with_is_stopped(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(50))
    status = status_of(folder)
    assert (status.state, status.phase, status.off, status.seconds_left) == ("stopped", 1, ("attention",), None)


def test_a_killed_run_is_stopped_goes_on_and_is_finished(tmp_path: Path) -> None:
    run = delayed_run()
    watch = Watch([folder_of(tmp_path, run)])
    assert watch.look().statuses[0].state == "waiting"
    train_until_killed(run, tmp_path, step=110, checkpoint_seconds=0)
    folder_of(tmp_path, run).append_log(line(5_000))  # past the checkpoint: a resumed run forgets it
    (status,) = watch.look().statuses
    assert (status.state, status.step) == ("stopped", 5_000)
    worker = start_worker(tmp_path, run)
    seen: list[Status] = []
    wait_for(lambda: seen.append(watch.look().statuses[0]) or seen[-1].state == "finished")
    assert worker.wait() == 0
    states = list(dict.fromkeys(status.state for status in seen))
    assert states[-1] == "finished"
    assert set(states) <= {"stopped", "training", "measuring", "finished"}
    assert (seen[-1].step, seen[-1].steps) == (run.steps, run.steps)
    assert not watch.look().changed


def test_a_process_that_is_killed_lets_go_of_its_run(tmp_path: Path) -> None:
    run = end_to_end_run(steps=100_000)
    watch = Watch([folder_of(tmp_path, run)])
    worker = start_worker(tmp_path, run)
    wait_for(lambda: watch.look().statuses[0].step > 0)
    assert watch.look().statuses[0].state == "training"
    worker.send(signal.SIGKILL)
    worker.wait()
    assert watch.look().statuses[0].state == "stopped"


def test_a_finished_run_that_is_measured_again_or_taken_back_shows_it(tmp_path: Path) -> None:
    run = end_to_end_run()
    train(run, tmp_path)
    watch = Watch(Store(tmp_path))
    (status,) = watch.look().statuses
    assert (status.state, status.in_range and status.in_range.length, status.beyond) == ("finished", 3, None)
    assert not watch.look().changed
    folder = folder_of(tmp_path, run)
    result = measure(folder, [9], samples=50)
    look = watch.look()
    assert look.changed == {run.id}
    assert look.statuses[0].beyond == Accuracy(9, result.accuracy(9))
    folder.remove("result.json")
    look = watch.look()
    assert (look.changed, look.statuses[0].state) == ({run.id}, "stopped")


def test_a_failure_shows_its_reason_until_it_is_removed(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(50))
    watch = Watch([folder])
    watch.look()
    folder.write_json("failure.json", {"run": RUN.id, "step": 51, "message": "the loss is nan"})
    (status,) = watch.look().statuses
    assert (status.state, status.failure, status.step) == ("failed", "the loss is nan", 50)
    folder.remove("failure.json")
    assert (watch.look().statuses[0].state, watch.look().statuses[0].failure) == ("stopped", None)


def test_runs_that_come_and_go_are_changes(tmp_path: Path) -> None:
    watch = Watch(Store(tmp_path))
    assert watch.look().statuses == ()
    one, other = begun(tmp_path), begun(tmp_path, run=end_to_end_run())
    assert watch.look().changed == {one.id, other.id}
    shutil.rmtree(one.path)
    look = watch.look()
    assert (look.changed, [status.run for status in look.statuses]) == ({one.id}, [other.id])


def test_a_result_written_between_two_looks_is_never_taken_for_a_stop(tmp_path: Path) -> None:
    """The lock is looked at before the files: what a process leaves behind is there before it lets go."""
    folder = begun(tmp_path, line(200, 3))
    looked: list[str] = []

    class Leaving(Folder):
        @property
        def held(self) -> bool:
            looked.append("lock")
            self.write_json("result.json", {"counts": []})  # and let go, right after we looked
            return True

    assert (status_of(Leaving(folder.path)).state, looked) == ("finished", ["lock"])


@pytest.mark.parametrize("name", ["run.json", "result.json", "failure.json"])
@pytest.mark.parametrize(
    "data", [b"", b"[1]", b'{"lengths": 3, "batch": [], "counts": [3], "schedule": 7}', b"\xff", b"[" * 5000]
)
def test_a_foreign_file_is_its_own_runs_trouble(tmp_path: Path, name: str, data: bytes) -> None:
    good = begun(tmp_path, line(50), run=end_to_end_run())
    bad = begun(tmp_path, line(50))
    (bad.path / name).write_bytes(data)
    statuses = {status.run: status for status in Watch(Store(tmp_path)).look().statuses}
    assert statuses[good.id].trouble is None
    status = statuses[bad.id]
    if name == "failure.json":
        assert status.state == "failed"
        assert status.failure
    elif name == "run.json":
        assert name in str(status.trouble)
        assert status.step == 50
    else:
        assert status.state == "finished"
    json.dumps(status.to_json(), allow_nan=False)


def test_a_foreign_line_is_named_and_the_lines_around_it_count(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(50))
    with open(folder.path / "log.jsonl", "a") as file:
        file.write("somebody's notes\n")
    folder.append_log(line(100))
    status = status_of(folder)
    assert status.step == 100
    assert status.trouble == f"line 2 of {folder.path / 'log.jsonl'} is foreign"


def test_who_may_only_read_sees_whether_a_run_is_at_work(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(50))
    with folder.lock():
        os.chmod(folder.path / ".lock", 0o444)
        assert folder.held
    assert not folder.held


def test_looking_whether_a_run_is_held_holds_nobody_up(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lengthlab.store import Folder\nwhile True: Folder(Path(sys.argv[1])).held"
    )
    folder = begun(tmp_path)
    with folder.lock():
        pass
    process = subprocess.Popen([sys.executable, "-c", code, str(folder.path)])
    try:
        for _ in range(300):
            with folder.lock(wait=False):
                pass
    finally:
        process.kill()
        process.wait()


# Phases and time


@given(
    phases=st.lists(
        st.one_of(
            st.integers(1, 10**6),
            st.floats(0.01, 2_000).map(Epochs),
            st.integers(2, 100).map(lambda n: Mastered("modulo", every=50, limit=100 * n)),
        ),
        min_size=1,
        max_size=4,
    ),
    batch=st.integers(1, 300),
    clock=st.integers(0, 10**6),
)
def test_the_phases_of_a_folder_are_those_of_its_run(phases: Sequence[int | Epochs | Mastered], batch: int, clock: int) -> None:
    run = small_run(Schedule("mine", tuple(Phase(length) for length in phases)), batch=batch)
    found = phases_in(json.loads(json.dumps(run.to_json())))
    assert (found.ends, found.steps, found.at(clock)) == (run.ends, run.steps, run.phase_at(clock))
    ahead = run.schedule.phases[run.phase_at(clock) :]
    assert found.open_ended(clock) == any(isinstance(phase.length, Mastered) for phase in ahead)
    assert sum(found.left(clock)) == max(0, run.steps - clock)


@pytest.mark.parametrize("questions", [("modulo", "recall"), ("modulo",), ("recall",)])
def test_the_names_of_a_folder_are_those_of_its_run(tmp_path: Path, questions: tuple[str, ...]) -> None:
    run = small_run(end_to_end(5), task=ModuloRecall(2, 4, 12, questions))
    status = status_of(begun(tmp_path, run=run))
    assert status.names == (run.task.name, run.model.name, run.schedule.name, f"seed {run.seed}")


def seconds_left(folder: Folder, *others: Folder) -> tuple[float | None, bool]:
    with folder.lock():
        status = Watch([folder, *others]).look().statuses[0]
    return status.seconds_left, status.at_least


def test_the_time_left_is_that_of_the_phases_to_come_as_far_as_they_are_known(tmp_path: Path) -> None:
    # A step of 4 samples takes 1 second with attention off, and 3 with it.
    off, on = {"samples_per_second": 4.0}, {"samples_per_second": 4 / 3}
    first = begun(tmp_path, line(90, 1, **off))
    assert seconds_left(first) == (110, True)  # nobody has been in the phases to come
    ahead = begun(tmp_path, line(50, 1, **off), line(120, 2, **on), run=delayed_run(100, 50, 50, seed=1))
    assert seconds_left(ahead) == (pytest.approx(80 * 3), False)  # the last phase has the same parts on
    assert seconds_left(first, ahead) == (pytest.approx(10 + 100 * 3), False)  # another seed has been there
    other = begun(tmp_path, line(50, 1, **off), line(120, 2, **on), run=delayed_run(100, 50, 50, batch=5))
    assert seconds_left(first, other) == (110, True)  # other settings tell nothing


def test_the_time_left_scales_what_another_run_met_by_ones_own_pace(tmp_path: Path) -> None:
    slow = begun(tmp_path, line(90, 1, samples_per_second=2.0))
    quick = [line(50, 1, samples_per_second=40.0), line(120, 2, samples_per_second=20.0)]
    ahead = begun(tmp_path, *quick, run=delayed_run(100, 50, 50, seed=1))
    assert seconds_left(slow, ahead) == (pytest.approx(10 * 2 + 100 * 4), False)


def test_the_time_left_follows_the_last_lines(tmp_path: Path) -> None:
    folder = begun(tmp_path, line(5, samples_per_second=0.001), *(line(10 * number) for number in range(1, 6)))
    assert seconds_left(folder)[0] == 150


# What people see

BUSY = Status(
    *("0" * 20, "training", "modulo-recall", "hybrid-block", "delayed", 0),
    **{"phase": 1, "phases": 3, "off": ("attention", "mlp"), "step": 123_450, "steps": 1_330_000, "at_most": True},
    **{"loss": 1.25, "in_range": Accuracy(25, 0.75), "beyond": Accuracy(100, 0.5), "seconds_left": 81_000.0},
)


def drawn(status: Status, label: str, width: int) -> list[str]:
    console = Console(width=width, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(table([status], {status.run: label}, width, 20))
    return capture.get().splitlines()


@pytest.mark.parametrize("label", ["lstm-on-attention delayed seed 0", "短い名前の模型 " * 4, "a"])
def test_a_terminal_of_80_columns_has_room_for_every_number(label: str) -> None:
    head, row = drawn(BUSY, label, 80)
    assert all(name in head for name in ("run", "phase", "step", "loss", "in range", "beyond", "time left"))
    for cell in ("1/3, ", "123,450/≤1,330,000", "1.2500", "0.75 n=25", "0.50 n=100", "≤22 h 30 min"):
        assert cell in row
    assert row.startswith(label[:2])


def test_names_are_text_and_neither_markup_nor_orders_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "[bold]x[/] :smile: [/nothing]"
    _, row = drawn(BUSY, name, 160)
    assert row.startswith(name)
    failed = Status("0" * 20, "failed", failure="no [/x] here\x1b[2J")
    assert drawn(failed, name, 160)[-1] == f"{name}: no [/x] here\\x1b[2J"
    assert plain(failed) == "failed  no [/x] here\\x1b[2J"
    run = small_run(Schedule(name + "\x1b[2J", (Phase(5),)))
    folder_of(tmp_path, run).write_json("run.json", run.to_json())
    with Progress([run], tmp_path, "training"):
        pass
    said = capsys.readouterr().err
    assert name in said
    assert "\x1b" not in said


LABELS = {"a" * 20: "seed 0", "b" * 20: "seed 1", "c" * 20: "seed 2"}


def three(*states: State) -> list[Status]:
    """Runs of the same settings, 100 of 200 steps made where they are at work, a second each."""
    made = {"training": (100, 100.0), "waiting": (0, None)}
    return [
        Status(run, state, "t", "m", "d", seed, phase=1, phases=2, step=made.get(state, (200, None))[0], steps=200,
               seconds_left=made.get(state, (200, None))[1])
        for seed, (run, state) in enumerate(zip(LABELS, states, strict=True))
    ]  # fmt: skip


def test_plain_lines_are_few_and_tell_changes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(Console(stderr=True, highlight=False), LABELS, "training on cpu, 2 threads")
    for _ in range(50):
        lines.show(three("training", "training", "waiting"))
    assert capsys.readouterr().err == ""  # it may be over in a moment
    monkeypatch.setattr(progress_of_runs, "QUIET_SECONDS", -1.0)
    for _ in range(50):
        lines.show(three("training", "training", "waiting"))
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == ["training on cpu, 2 threads", "seed 0", "seed 1"]
    for _ in range(50):
        lines.show(three("finished", "training", "training"))
    said = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in said] == ["seed 0: finished", "seed 2: phase 1/2"]
    monkeypatch.setattr(progress_of_runs, "PLAIN_SECONDS", -1.0)
    lines.show(three("finished", "training", "training"))
    assert capsys.readouterr().err.splitlines() == ["1 of 3 runs finished, 2 at work, about 1 min 40 s left"]


def test_the_time_left_of_all_counts_those_that_wait_and_those_at_work_at_a_time() -> None:
    assert seconds_left_in_all(three("training", "waiting", "waiting")) == 100 + 200 + 200
    assert seconds_left_in_all(three("training", "training", "waiting")) == (100 + 100 + 200) / 2
    assert seconds_left_in_all(three("training", "training", "training")) == 100
    assert seconds_left_in_all(three("finished", "measuring", "failed")) == 0
    assert seconds_left_in_all(three("finished", "waiting", "waiting")) is None


@pytest.mark.parametrize("states", [("training", "waiting", "training"), ("finished", "training", "failed")])
def test_rows_keep_their_order_and_below_them_is_the_time_left_of_all(states: tuple[State, ...]) -> None:
    console = Console(width=80, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(table(three(*states), LABELS, 80, 20))
    _, *rows, below = capture.get().splitlines()
    assert [row[:6] for row in rows] == list(LABELS.values())
    assert below.strip().endswith(" left")


def test_a_run_that_a_worker_gave_up_and_one_that_waits_to_go_on_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = delayed_run(100, 50, 50, seed=1)
    begun(tmp_path, line(50))
    begun(tmp_path, line(50), run=other)
    with Progress([RUN, other], tmp_path, "training on cpu, 2 threads") as progress:
        progress.tell({RUN.id: "out of memory"})
    assert capsys.readouterr().err.splitlines() == [
        "training on cpu, 2 threads",
        "seed 0: failed  out of memory",
        "seed 1: waiting  step 50/200  loss 1.5000",
    ]


def test_who_looks_on_does_not_stop_who_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(watch: Watch) -> None:
        raise OSError(5, "no such disk", "runs")

    monkeypatch.setattr(Watch, "look", unreadable)
    monkeypatch.setattr(progress_of_runs, "REFRESH_SECONDS", 0.01)
    with Progress([RUN], tmp_path, "training") as progress:
        wait_for(lambda: progress._over.is_set())
    assert "no progress can be shown: runs: no such disk" in capsys.readouterr().err


def test_watching_needs_no_torch() -> None:
    code = "import sys, lengthlab.store.watch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
