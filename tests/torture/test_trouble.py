"""What a machine can get wrong, and a run: each ends in a line that says what and where, and what was kept is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from command import Call, Done
from desk import RUN, only_run
from lengthlab.spec.plan import read_plan
from lengthlab.store import Folder, Store
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS
from lengthlab.training import train
from lengthlab.training.checkpoint import save_checkpoint
from lengthlab.training.state import TrainState


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(RUN)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def half_written(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*") if path.name.endswith(".partial") or path.name == "result.json"]


@pytest.fixture
def finished(finished_once: Folder, store: Path) -> Folder:
    """The plan's run, finished, in a store of the test's own."""
    shutil.copytree(finished_once.path.parent, store)
    return Folder(store / finished_once.id)


def begun(plan: Path, store: Path, *overrides: str) -> Folder:
    """A run stopped after its first step."""
    run = only_run(plan, *overrides)
    folder = Store(store).folder(run.id)
    folder.write_json("run.json", run.to_json())
    state = TrainState(run, torch.device("cpu"))
    state.advance()
    save_checkpoint(state, folder, seconds=0.1)
    return folder


def test_a_checkpoint_of_another_run_is_named_and_left_alone(call: Call, plan: Path, store: Path, tmp_path: Path) -> None:
    mine, other = begun(plan, store), begun(plan, tmp_path / "others", "seed=1")
    shutil.copy(other.path / CHECKPOINT, mine.path / CHECKPOINT)
    call("train", plan, "--store", store).refused(str(mine.path / CHECKPOINT), f"belongs to run {other.id}")
    assert (mine.path / CHECKPOINT).read_bytes() == (other.path / CHECKPOINT).read_bytes()
    assert half_written(store) == []


def test_a_truncated_checkpoint_is_named_and_left_alone(call: Call, plan: Path, store: Path) -> None:
    path = begun(plan, store).path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-100])
    before = path.read_bytes()
    call("train", plan, "--store", store).refused(str(path), "truncated")
    assert path.read_bytes() == before
    assert half_written(store) == []


def test_a_damaged_checkpoint_beside_a_whole_one_is_told_where_a_process_of_its_own_trains_the_run(
    plan: Path, store: Path
) -> None:
    folder = begun(plan, store)
    first, second = (folder.path / name for name in CHECKPOINTS)
    second.write_bytes(first.read_bytes()[:-1])
    command = [sys.executable, "-m", "lengthlab", "train", plan, "--store", store, "--no-progress", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if "was damaged" in line)
    assert said.startswith(f"{second} was damaged and is removed (")
    assert said.endswith(f": going on from step 1, in {CHECKPOINT}")


def test_the_content_of_another_run_is_named_and_left_alone(call: Call, plan: Path, store: Path) -> None:
    folder, other = begun(plan, store), only_run(plan, "seed=1")
    folder.write_json("run.json", other.to_json())
    before = (folder.path / "run.json").read_bytes()
    call("train", plan, "--store", store).refused(str(folder.path / "run.json"), other.id)
    assert (folder.path / "run.json").read_bytes() == before
    assert half_written(store) == []


def test_a_loss_that_is_not_finite_stops_the_run_with_a_record(call: Call, plan: Path, store: Path) -> None:
    wild = ("schedule={name='end-to-end', joint=30, lr=1e30}",)
    run = only_run(plan, *wild)
    call("train", plan, "--store", store, "--set", *wild).refused("loss", run.id, run.label, "at step")
    record = json.loads((store / run.id / "failure.json").read_text())
    assert record["run"] == run.id
    assert "loss" in record["message"]
    assert half_written(store) == []


def test_when_one_of_several_runs_fails_the_others_finish_and_both_are_named(call: Call, plan: Path, store: Path) -> None:
    wild = RUN.replace("lr = 1e-3", "lr = 1e30").replace("joint = 5", "joint = 30") + "seed = 7\n"
    plan.write_text(wild + RUN)
    bad, good = read_plan(plan)
    done = call("train", plan, "--store", store)
    assert done.code == 1
    assert len(done.said) == 1
    assert bad.label in done.said[0]
    assert "loss" in done.said[0]
    assert good.model.name in done.out
    assert Store(store).folder(good.id).finished
    assert not Store(store).folder(bad.id).finished


def test_a_broken_folder_does_not_hold_up_the_other_runs(call: Call, plan: Path, store: Path, finished: Folder) -> None:
    broken = begun(plan, store, "seed=1")
    (broken.path / "run.json").write_text("{")
    done = call("train", plan, "--store", store, "--set", "seeds=[1, 0]")
    assert done.code == 1
    assert len(done.said) == 1
    assert str(broken.path / "run.json") in done.said[0]
    assert "hybrid-block" in done.out


LITTLE_DISK = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
runpy.run_module("lengthlab", run_name="__main__", alter_sys=True)
"""


def with_little_disk(limit: int, *words: object) -> Done:
    """The command line where no file may grow past `limit` bytes, its workers included: writes fail as on a full disk."""
    command = [sys.executable, "-c", LITTLE_DISK, str(limit), *map(str, words)]
    # A module compiled here would be cut off, too, and be what the next process imports.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_disk_that_fills_up_while_training_loses_nothing_that_was_kept(plan: Path, store: Path) -> None:
    folder = begun(plan, store)
    before = (folder.path / CHECKPOINT).read_bytes()
    with_little_disk(8_000, "train", plan, "--store", store).refused(str(folder.path), "File too large")
    assert (folder.path / CHECKPOINT).read_bytes() == before
    assert half_written(store) == []
    assert train(only_run(plan), store).count(4).total == 1000


def test_a_disk_that_is_full_from_the_start_is_named(plan: Path, store: Path) -> None:
    with_little_disk(100, "train", plan, "--store", store).refused(str(store), "File too large")
    assert [path for path in store.rglob("*") if path.is_file()] == []


OWN = """
from dataclasses import dataclass
import sys
from torch import nn
from lengthlab.models import Lstm, Model, chain

@dataclass(frozen=True)
class Broken:
    def build(self, width):
        raise RuntimeError("no such\\nthing")

@dataclass(frozen=True)
class Talkative:
    def build(self, width):
        return Talks()

class Talks(nn.Module):
    def forward(self, x):
        print("x" * 20_000, file=sys.stderr)
        return x

def broken() -> Model:
    return Model("broken", 16, Broken())

def talkative() -> Model:
    return Model("talkative", 16, chain(Lstm(), Talkative()))
"""


def of_ones_own(plan: Path, name: str) -> None:
    (plan.parent / "own.py").write_text(OWN)
    plan.write_text(f"""[[run]]
task = {{ name = "modulo-recall", keys = 16 }}
model = "own.py:{name}"
schedule = {{ name = "end-to-end", joint = 20 }}
lengths = [1, 4]
batch = 4
evaluate = [4]
""")


def test_a_model_of_ones_own_that_cannot_be_built_ends_in_one_line(call: Call, plan: Path, store: Path) -> None:
    of_ones_own(plan, "broken")
    call("train", plan, "--store", store).refused("model 'broken' cannot be built", "RuntimeError: no such thing")
    assert not store.exists()


def test_a_worker_that_says_more_than_a_pipe_holds_still_finishes(call: Call, plan: Path, store: Path) -> None:
    of_ones_own(plan, "talkative")
    assert call("train", plan, "--store", store).code == 0


def test_a_file_of_ones_own_that_needs_its_neighbour_is_refused(call: Call, plan: Path, store: Path) -> None:
    of_ones_own(plan, "broken")
    (plan.parent / "own.py").write_text("import neighbour_of_mine\n")
    call("train", plan, "--store", store).refused("own.py cannot be loaded", "neighbour_of_mine", "stands alone")
