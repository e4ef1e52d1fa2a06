"""Trackers for real: what tensorboard, trackio and wandb wrote is what the runs' own logs say, whatever happens to anybody."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest
from read_back import Metrics, from_tensorboard, from_trackio, from_wandb

import lengthlab as ll
from lengthlab.integrations.follower import values_of
from lengthlab.launch import tracking
from lengthlab.spec.run import Run
from lengthlab.store import Store
from lengthlab.training import read_result
from small_runs import end_to_end_run

NAMES = ("tensorboard", "trackio", "wandb")


@pytest.fixture(autouse=True)
def no_settings_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("WANDB_", "TRACKIO_"))]:
        monkeypatch.delenv(name)


def told(store: Path, run: Run) -> Iterator[tuple[str, Metrics]]:
    """What each tracker has of a run."""
    for name, found in zip(NAMES, (from_tensorboard(store), from_trackio(store), from_wandb(store)), strict=True):
        (metrics,) = [metrics for key, metrics in found.items() if run.id[:12] in key]
        yield name, metrics


def assert_all_was_told(store: Path, runs: Sequence[Run], exact: bool = True) -> None:
    """Every line of the log, in order and once, and what was measured. Without `exact`, how fast it was may differ: of lines
    that were written again after a kill, the first were told.
    """
    for run in runs:
        folder = Store(store).folder(run.id)
        logged: Metrics = {}
        for line in folder.read_log():
            for metric, value in values_of(line).items():
                logged.setdefault(metric, []).append((line["step"], value))
        if not exact:
            del logged["train/samples_per_second"]
        result = read_result(folder)
        for name, metrics in told(store, run):
            for metric, points in logged.items():
                assert [step for step, _ in metrics[metric]] == [step for step, _ in points], (name, metric)
                assert [value for _, value in metrics[metric]] == pytest.approx([value for _, value in points], rel=1e-6)
            final = metrics["final/all"] if name == "tensorboard" else [(3, metrics["final/all/3"][-1][1])]
            assert final == [(3, pytest.approx(result.accuracy(length=3)))], name


def test_workers_side_by_side_and_what_was_finished_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs = [end_to_end_run(100, seed=100 + seed, label="$x$ <b>/../\x1b[31m") for seed in range(3)]
    ll.train(runs[0], tmp_path, progress=False)  # nobody was told of it
    ll.train_all(runs, tmp_path, workers=2, progress=False, track=NAMES)
    assert_all_was_told(tmp_path, runs)
    ll.train_all(runs, tmp_path, progress=False, track=NAMES)  # again: nothing is told twice
    assert_all_was_told(tmp_path, runs)
    assert {path.name for path in tmp_path.iterdir()} == {run.id for run in runs} | set(NAMES)
    assert not caplog.records


def test_a_killed_command_goes_on_and_tells_no_step_twice(tmp_path: Path) -> None:
    run = end_to_end_run(500, seed=100)
    Store(tmp_path).folder(run.id).write_json("run.json", run.to_json())
    code = "import sys, lengthlab as ll; from lengthlab.store import Store; from lengthlab.training.result import read_run\n"
    code += "ll.train(read_run(Store(sys.argv[1]).folder(sys.argv[2])), sys.argv[1], track=sys.argv[3:], progress=False)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path), run.id, *NAMES]) as process:
        wait_until(lambda: len(Store(tmp_path).folder(run.id).read_log()) > 2)
        process.send_signal(signal.SIGSTOP)  # a fast machine would be done before the trackers are there
        wait_until(lambda: all(sent(tmp_path, name, run) > 100 for name in NAMES))
        process.kill()
    assert not Store(tmp_path).folder(run.id).finished
    wait_until(lambda: all(released(tmp_path, name, run) for name in NAMES))
    ll.train(run, tmp_path, progress=False, track=NAMES)
    assert_all_was_told(tmp_path, [run], exact=False)


def sent(store: Path, name: str, run: Run) -> int:
    path = store / name / ".sent" / f"{run.id}.json"
    return int(json.loads(path.read_bytes())["step"]) if path.exists() else -1


def released(store: Path, name: str, run: Run) -> bool:
    from filelock import FileLock, Timeout

    try:
        with FileLock(store / name / ".sent" / f"{run.id}.lock", timeout=0):
            return True
    except Timeout:
        return False


def wait_until(holds: object, seconds: float = 120) -> None:
    end = monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert monotonic() < end, "it took too long"
        sleep(0.05)


def test_a_tracker_that_fails_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file in the way of a folder; a server that nobody answers for; a process that is killed."""
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "3")
    for name in ("tensorboard", "trackio"):
        (tmp_path / name).write_text("in the way")
    run = end_to_end_run(100, seed=100)
    result = ll.train(run, tmp_path, progress=False, track=NAMES)
    alone = ll.train(run, tmp_path / "alone", progress=False)
    assert result.counts == alone.counts
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3, said
    for name in NAMES:
        (line,) = [line for line in said if line.startswith(f"tracking by {name} is over: ")]
        assert "\n" not in line
        assert line.endswith("; the runs go on without it")


def test_a_tracker_that_dies_hangs_or_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = end_to_end_run(50, seed=100)
    monkeypatch.setattr(tracking, "PATIENCE", 0.5)
    for end in (signal.SIGKILL, signal.SIGSTOP):
        follower = tracking.Follower("tensorboard", tmp_path, {run.id: ("a run", "a setting")})
        os.kill(follower._process.pid, end)
        follower.let_go()
        assert not follower.end()
    with caplog.at_level(logging.WARNING), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [path for path in sys.path if ".trackers" not in path])
        patch.delitem(sys.modules, "wandb", raising=False)
        with tracking.tracked(["wandb"], [run], tmp_path, None):
            pass
    killed, cut, missing = [record.getMessage() for record in caplog.records]
    assert "its process ended with -9" in killed
    assert "was cut short" in cut
    assert "pip install 'lengthlab[wandb]'" in missing


def test_names_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    run = replace(end_to_end_run(50), seed=100)
    for wrong in ("mlflow", ["wandb", "mlflow"], 3):
        with pytest.raises(ll.LabError, match=r"tracker 'mlflow'|a name or a list of names"):
            ll.train(run, tmp_path / "runs", track=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()
