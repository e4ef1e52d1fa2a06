"""What a user can get wrong, and what a machine can: each ends in one line that says what and where, and nothing is spoilt."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from command import Call, Done
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.store import Folder, Store
from lengthlab.store.folder import CHECKPOINT
from lengthlab.training import train
from lengthlab.training.checkpoint import save_checkpoint
from lengthlab.training.state import TrainState

RUN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, keys = 16 }
model = { name = "hybrid-block", width = 16, blocks = 1, heads = 2, mlp = 1 }
schedule = { name = "delayed", first = 5, joint = 5, lr = 1e-3 }
lengths = [1, 4]
batch = 4
evaluate = [4]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(RUN)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def only_run(plan: Path, *overrides: str) -> Run:
    (run,) = read_plan(plan, overrides)
    return run


def half_written(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*") if path.name.endswith(".partial") or path.name == "result.json"]


@pytest.mark.parametrize(
    "bad",
    [
        *("task.modulus=0", "task.modulus=-2", "task.values=0", "task.values=-1", "task.keys=0", "task.keys=-16"),
        *("model.width=0", "model.width=-16", "model.blocks=0", "model.blocks=-1", "model.heads=0", "model.heads=-2"),
        *("model.mlp=0", "model.mlp=-1", "model.scores={name='log-n', first=0}", "model.positions={name='rope', base=-1}"),
        *("schedule.first=0", "schedule.first=-5", "schedule.joint=0", "schedule.joint=-5", "schedule.last=-1"),
        *("schedule.first={accuracy=0}", "schedule.first={times=0}", "schedule.first={every=0}", "schedule.first={limit=-1}"),
        *("schedule.first='0 epochs'", "schedule.first='-1 epochs'", "schedule.first='inf epochs'"),
        *("schedule.lr=-1e-3", "schedule.lr=nan", "schedule.lr=inf", "schedule.first_lr=-1", "schedule.last_lr=-1"),
        *("batch=0", "batch=-4", "seed=-1", "seeds=[0, -1]", "seeds=[]"),
        *("lengths=[0, 4]", "lengths=[-1, 4]", "lengths=[4, 1]", "lengths=[4]", "evaluate=[0]", "evaluate=[4, -8]"),
    ],
)
def test_a_number_out_of_range_is_refused_before_anything_is_written(call: Call, plan: Path, store: Path, bad: str) -> None:
    last_lr_needs = ("--set", "schedule.last=5") if "last_lr" in bad else ()
    done = call("train", plan, "--store", store, "--set", bad, *last_lr_needs)
    done.refused(f"{plan}, run 1: ")
    assert not store.exists()


@pytest.mark.parametrize(
    "bad",
    [
        *("task.modulus=2.5", "task.keys='many'", "model.width=true", "model.positions=5", "schedule.lr='fast'"),
        *(
            "schedule.first='5 years'",
            "schedule.asks='modulo'",
            "schedule.covers=['part']",
            "schedule.first={looks=true}",
            "task.name=['modulo']",
        ),
        *("batch=[4]", "lengths=4", "seeds=0", "evaluate=[4.5]", "task=5", "model={width=16}"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(call: Call, plan: Path, store: Path, bad: str) -> None:
    call("train", plan, "--store", store, "--set", bad).refused(f"{plan}, run 1: ")
    assert not store.exists()


def test_heads_that_do_not_divide_the_width_are_refused(call: Call, plan: Path, store: Path) -> None:
    call("train", plan, "--store", store, "--set", "model.heads=3").refused("heads = 3", "width = 16")
    assert not store.exists()


@pytest.mark.parametrize("bad", ["lengths=[1, 17]", "evaluate=[4, 17]", "task.keys=3"])
def test_a_length_that_the_keys_cannot_serve_is_refused(call: Call, plan: Path, store: Path, bad: str) -> None:
    call("train", plan, "--store", store, "--set", bad).refused(str(plan), "task.keys")
    assert not store.exists()


@pytest.mark.parametrize(
    ("bad", "right"),
    [
        ("task.name=modulo-recal", "'modulo-recall'"),
        ("model.name=sandwhich", "'sandwich'"),
        ("schedule.name=delay", "'delayed'"),
        ("model.positions=ropes", "'rope'"),
        ("model.scores=logn", "'log-n'"),
        ("schedule.asks=['modul']", "modulo, recall"),
        ("task.modullus=2", "'modulus'"),
        ("model.widht=8", "'width'"),
        ("schedule.frist=5", "'first'"),
        ("schedule.first={limits=500}", "'limit'"),
        ("schedule.first={question='modul'}", "modulo"),
        ("bacth=4", "'batch'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_right_one(
    call: Call, plan: Path, store: Path, bad: str, right: str
) -> None:
    call("train", plan, "--store", store, "--set", bad).refused(f"{plan}, run 1: ", right)
    assert not store.exists()


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (("tasks", "modulo-recal"), "'modulo-recall'"),
        (("models", "lstn"), "'lstm'"),
        (("experiments", "dmeo"), "'demo'"),
    ],
)
def test_an_unknown_card_is_refused_with_the_nearest_right_one(call: Call, words: tuple[str, ...], right: str) -> None:
    call(*words).refused(words[1], right)


def test_a_schedule_that_does_not_fit_the_model_is_refused(call: Call, plan: Path, store: Path) -> None:
    done = call("train", plan, "--store", store, "--set", "model={name='lstm', width=16}")
    done.refused("lstm", "attention")
    assert not store.exists()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[[run]\n", "not valid TOML"),
        ("", "[[run]]"),
        ("[run]\nbatch = 4\n", "[[run]]"),
        ("run = [1, 2]\n", "run"),
        ("[[run]]\nbatch = 4\n", "'task' is missing"),
        ("[[runs]]\nbatch = 4\n", "'runs'"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(call: Call, plan: Path, store: Path, text: str, word: str) -> None:
    plan.write_text(text)
    call("train", plan, "--store", store).refused(str(plan), word)
    assert plan.read_text() == text
    assert not store.exists()


def test_a_file_that_is_not_text_is_refused(call: Call, plan: Path) -> None:
    plan.write_bytes(b"\xff\xfe\x00")
    call("train", plan).refused(str(plan))


def test_a_missing_file_and_a_folder_are_refused(call: Call, tmp_path: Path) -> None:
    call("train", tmp_path / "nowhere.toml").refused("nowhere.toml", "No such file")
    call("train", tmp_path).refused(str(tmp_path), "directory")


@pytest.mark.parametrize("bad", ["batch", "=4", "batch.size=4", "task.name.first=1", "lengths.first=1"])
def test_a_set_that_cannot_be_applied_is_refused(call: Call, plan: Path, store: Path, bad: str) -> None:
    call("train", plan, "--store", store, "--set", bad).refused(bad.split("=")[0])
    assert not store.exists()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = (\n", "SyntaxError"),
        ("raise ValueError('not today')\n", "not today"),
        ("class Other: ...\n", "'Mine'"),
        ("Mine = 5\n", "Mine"),
        ("class Mine: ...\n", "is not a task"),
        ("def Mine():\n    raise ValueError('no such thing')\n", "no such thing"),
    ],
)
def test_a_file_of_ones_own_that_gives_no_task_is_refused(call: Call, plan: Path, store: Path, text: str, word: str) -> None:
    (plan.parent / "mine.py").write_text(text)
    call("train", plan, "--store", store, "--set", "task=mine.py:Mine").refused("mine.py", word)
    assert not store.exists()


def test_a_file_of_ones_own_that_is_not_there_is_refused(call: Call, plan: Path) -> None:
    call("train", plan, "--set", "model=mine.py:three").refused("mine.py", "cannot be read")


NOT_HERE = ["cuda:99", "abacus", *([] if torch.cuda.is_available() else ["cuda"])]


@pytest.mark.parametrize("device", NOT_HERE)
def test_a_device_that_is_not_there_is_refused_before_anything_is_written(
    call: Call, plan: Path, store: Path, device: str
) -> None:
    done = call("train", plan, "--store", store, "--device", device)
    done.refused(f"'{device}'", "not available")
    assert done.err.splitlines() == done.said
    call("demo", "--store", store, "--device", device).refused(f"'{device}'")
    assert not store.exists()


def test_a_store_that_cannot_be_written_to_is_refused(call: Call, plan: Path) -> None:
    below_a_file = plan / "runs"
    done = call("train", plan, "--store", below_a_file)
    done.refused(f"store '{below_a_file}' is not writable", "Not a directory")
    assert plan.read_text() == RUN


def test_a_report_that_cannot_be_written_is_refused(call: Call, plan: Path, finished: Folder) -> None:
    done = call("report", finished.path, "--out", plan / "out")
    assert done.code == 2
    assert len(done.said) == 1
    assert str(plan) in done.said[0]


@pytest.mark.parametrize("words", [("evaluate", "abc", "--lengths", "4", "--store"), ("report",)])
def test_a_store_that_is_not_there_is_refused(call: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    call(*words, tmp_path / "nowhere").refused("nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_store_without_runs_is_refused(call: Call, tmp_path: Path) -> None:
    call("report", tmp_path).refused("no runs", str(tmp_path))


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "plan.toml").write_text(RUN)
    return train(only_run(folder / "plan.toml"), folder / "runs").folder


@pytest.fixture
def finished(finished_once: Folder, store: Path) -> Folder:
    """The plan's run, finished, in a store of the test's own."""
    shutil.copytree(finished_once.path.parent, store)
    return Folder(store / finished_once.id)


@pytest.mark.parametrize("lengths", ["", "0", "-4", "4,", "four", "4;8", "1.5", "17"])
def test_a_length_that_cannot_be_measured_is_refused(call: Call, finished: Folder, lengths: str) -> None:
    before = (finished.path / "result.json").read_bytes()
    done = call("evaluate", finished.path, f"--lengths={lengths}")
    done.refused("length")
    assert done.err.splitlines() == done.said
    assert (finished.path / "result.json").read_bytes() == before


@pytest.mark.parametrize("samples", ["0", "-1", "many"])
def test_a_number_of_samples_that_makes_no_sense_is_refused(call: Call, finished: Folder, samples: str) -> None:
    done = call("evaluate", finished.path, "--lengths", "4", "--samples", samples)
    done.refused("samples", samples)
    assert done.err.splitlines() == done.said


@pytest.mark.parametrize("words", [("trian",), ("train",), ("train", "a.toml", "--sede", "4"), ("demo", "--seed", "-1")])
def test_a_command_that_is_not_understood_is_refused_in_one_line(call: Call, words: tuple[str, ...]) -> None:
    done = call(*words)
    done.refused()
    assert done.err.splitlines() == done.said


def test_an_id_that_no_run_or_several_runs_have_is_refused(call: Call, finished: Folder, store: Path) -> None:
    call("evaluate", "zzz", "--store", store, "--lengths", "4").refused("'zzz'", str(store))
    shutil.copytree(finished.path, store / f"{finished.id[:6]}000000")
    call("evaluate", finished.id[:6], "--store", store, "--lengths", "4").refused(finished.id[:6], "several")


def test_an_unfinished_run_cannot_be_evaluated_or_reported(call: Call, finished: Folder) -> None:
    finished.remove("result.json")
    call("evaluate", finished.path, "--lengths", "4").refused(finished.id, "not finished")
    done = call("report", finished.path)
    assert done.code == 2
    assert "not finished" in done.said[0]


@pytest.mark.parametrize("name", ["run.json", "result.json", "weights.safetensors"])
@pytest.mark.parametrize("words", [("evaluate", "--lengths", "8"), ("train",)])
def test_a_truncated_file_of_a_finished_run_is_named_and_left_alone(
    call: Call, plan: Path, finished: Folder, name: str, words: tuple[str, ...]
) -> None:
    path = finished.path / name
    path.write_bytes(path.read_bytes()[:20])
    where = (plan, "--store", finished.path.parent, "--set", "evaluate=[8]") if words == ("train",) else (finished.path,)
    call(*words, *where).refused(str(path))
    assert path.stat().st_size == 20
    assert not list(finished.path.glob(".*.partial"))


def test_a_report_names_a_truncated_result_and_leaves_it_alone(call: Call, finished: Folder) -> None:
    path = finished.path / "result.json"
    path.write_bytes(path.read_bytes()[:20])
    done = call("report", finished.path)
    assert done.code == 2
    assert str(path) in done.said[0]
    assert path.stat().st_size == 20


def test_a_run_folder_under_another_runs_name_is_refused(call: Call, finished: Folder) -> None:
    moved = finished.path.rename(finished.path.parent / "000000000000")
    call("evaluate", moved, "--lengths", "8").refused(str(moved), finished.id)


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
    command = [sys.executable, "-B", "-c", LITTLE_DISK, str(limit), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
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
    assert call("train", plan, "--store", store, "--workers", 1).code == 0


def test_a_file_of_ones_own_that_needs_its_neighbour_is_refused(call: Call, plan: Path, store: Path) -> None:
    of_ones_own(plan, "broken")
    (plan.parent / "own.py").write_text("import neighbour_of_mine\n")
    call("train", plan, "--store", store).refused("own.py cannot be loaded", "neighbour_of_mine", "stands alone")
