"""Runs that are trained in this process: as a worker would have trained them, and the process is left as it was found."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from time import sleep

import numpy as np
import pytest
import torch

import lengthlab as ll
from command import Call
from lengthlab.cli import cli
from lengthlab.device import device_named
from lengthlab.errors import LabError
from lengthlab.launch import try_all
from lengthlab.launch.in_process import seconds_here
from lengthlab.models import Lstm, Model, chain
from lengthlab.spec.run import Run
from lengthlab.store import Store
from lengthlab.training import measure, train
from lengthlab.training.engine import Engine
from lengthlab.training.precision import FP32
from lengthlab.training.state import TrainState
from own_parts import Faulty, Forgetful, Leaving
from small_runs import CPU, checkpoint_steps, counts, delayed_run, end_to_end_run, folder_of, identical, learned, weights

RUN = delayed_run(first=20, joint=20, last=10)


def own(part: object, **changes: object) -> Run:
    return replace(end_to_end_run(steps=5), model=Model("mine", 8, chain(Lstm(), part)), **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def by_a_worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a worker trained RUN."""
    store = tmp_path_factory.mktemp("worker")
    (outcome,) = try_all([RUN], store, "cpu", workers=1, progress=False)
    assert outcome.error is None
    return store


def assert_same(store: Path, other: Path, run: Run) -> None:
    assert identical(weights(store, run), weights(other, run))
    assert counts(store, run) == counts(other, run)
    assert learned(store, run) == learned(other, run)


@contextmanager
def as_set(put: Callable[[object], object], before: object, now: object) -> Iterator[None]:
    put(now)
    try:
        yield
    finally:
        put(before)


# What a user may have set before training, and a look whether it still is.
SETTINGS: dict[str, tuple[Callable[[], AbstractContextManager[object]], Callable[[], object]]] = {
    "nothing": (nullcontext, lambda: None),
    "double precision": (lambda: as_set(torch.set_default_dtype, torch.float32, torch.float64), torch.get_default_dtype),  # type: ignore[arg-type]
    "threads": (lambda: as_set(torch.set_num_threads, 1, 2), torch.get_num_threads),  # type: ignore[arg-type]
    "determinism": (
        lambda: as_set(torch.use_deterministic_algorithms, False, True),  # type: ignore[arg-type]
        torch.are_deterministic_algorithms_enabled,
    ),
    "products": (
        lambda: as_set(torch.set_float32_matmul_precision, "highest", "medium"),  # type: ignore[arg-type]
        torch.get_float32_matmul_precision,
    ),
    "another device": (lambda: torch.device("meta"), torch.get_default_device),
    "no gradients": (torch.no_grad, torch.is_grad_enabled),
    "inference": (torch.inference_mode, torch.is_inference_mode_enabled),
    "autocast": (lambda: torch.autocast("cpu", torch.bfloat16), lambda: torch.is_autocast_enabled("cpu")),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_run_trained_here_is_what_a_worker_makes_of_it_whatever_is_set(
    setting: str, tmp_path: Path, by_a_worker: Path
) -> None:
    enter, look = SETTINGS[setting]
    with enter():
        before = look()
        (outcome,) = try_all([RUN], tmp_path, "cpu", progress=False)
        assert look() == before
    assert outcome.error is None
    assert_same(tmp_path, by_a_worker, RUN)


def test_no_random_numbers_of_the_process_are_used_up(tmp_path: Path) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state(), random.getstate(), json.dumps(np.random.get_state(legacy=False), default=np.ndarray.tolist)
    assert try_all([own(Forgetful())], tmp_path, "cpu", progress=False)[0].error is None
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert json.dumps(np.random.get_state(legacy=False), default=np.ndarray.tolist) == before[2]


def test_small_runs_start_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")  # a worker could not even start
    runs = [end_to_end_run(steps=5, seed=seed) for seed in range(3)]
    assert [outcome.error for outcome in try_all(runs, tmp_path, "cpu", progress=False)] == [None] * 3


def test_what_lasts_longer_goes_on_in_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_here(monkeypatch)
    monkeypatch.setattr("lengthlab.launch.in_process.START_SECONDS", 0.3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs = [end_to_end_run(steps=5, seed=1), end_to_end_run(steps=60)]  # the second is begun here
    assert [outcome.error for outcome in try_all(runs, tmp_path / "both", "cpu", progress=False)] == [None, None]
    monkeypatch.undo()
    for run in runs:
        train(run, tmp_path / "alone", "cpu")
        assert_same(tmp_path / "both", tmp_path / "alone", run)


def slow_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of this process that is long enough for patience to end."""
    advance = TrainState.advance

    def slow(state: TrainState) -> float:
        sleep(0.5 if state.step == 10 else 0.0)
        return advance(state)

    monkeypatch.setattr(TrainState, "advance", slow)


def test_whoever_trains_for_a_while_keeps_what_was_learned_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_here(monkeypatch)
    run = end_to_end_run(steps=60)
    Engine(Store(tmp_path), CPU, FP32, lambda run, error: pytest.fail(str(error))).train([run], seconds=0.3)
    folder = folder_of(tmp_path, run)
    assert not folder.finished
    assert not folder.held
    assert 0 < max(checkpoint_steps(tmp_path, run)) <= 12


@pytest.mark.parametrize(
    ("runs", "device", "at_a_time", "seconds"),
    [
        ([RUN], "cpu", 2, inf),
        ([RUN], "cuda", 1, 0.0),
        ([own(Faulty())], "cpu", 2, inf),
        ([RUN, end_to_end_run()], "cpu", 2, 3.0),
        ([RUN, end_to_end_run()], "cpu", 1, inf),
        ([RUN, own(Faulty())], "cpu", 2, 0.0),
    ],
)
def test_what_is_trained_here_and_for_how_long(
    runs: list[Run], device: str, at_a_time: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lengthlab.launch.in_process.START_SECONDS", 3.0)
    assert seconds_here(runs, torch.device(device), at_a_time) == seconds


def test_code_that_leaves_ends_its_run_and_not_the_process(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"sys\.exit\(0\) is called"):
        try_all([own(Leaving())], tmp_path, "cpu", progress=False)


def test_what_users_code_prints_while_it_trains_is_no_part_of_the_rows(call: Call, tmp_path: Path) -> None:
    (tmp_path / "talking.py").write_text(TALKING)
    (tmp_path / "run.toml").write_text(PLAN)
    done = call("train", tmp_path / "run.toml", "--store", tmp_path / "runs", "--json")
    assert done.code == 0, done.err
    assert {row["model"] for row in json.loads(done.out)} == {"talking"}
    assert "I am read" in done.err


TALKING = """
from torch import nn

class Talking(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, vocabulary)

    def forward(self, tokens):
        print("I am read")
        return self.table(tokens)
"""
PLAN = """
[[run]]
task = { name = "modulo", modulus = 2, values = 2, keys = 8 }
model = "talking.py:Talking"
schedule = { name = "end-to-end", joint = 2 }
lengths = [1, 2]
batch = 2
evaluate = [2]
"""


def test_auto_is_a_device_and_the_default() -> None:
    best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert device_named("auto").type == device_named().type == best
    takers = [ll.train, ll.train_all, train, measure]
    assert [inspect.signature(taker).parameters["device"].default for taker in takers] == ["auto"] * len(takers)
    options = [each for command in cli.commands.values() for each in command.params if each.name == "device"]
    assert len(options) == 7
    assert {option.default for option in options} == {"auto"}


def test_both_ways_to_train_are_silent_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, other = end_to_end_run(steps=2), end_to_end_run(steps=2, seed=1)
    ll.train(run, tmp_path, progress=False)
    ll.train_all([other], tmp_path, progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_short_run_says_where_and_how_it_ended_and_a_finished_one_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = end_to_end_run(steps=2)
    ll.train(run, tmp_path, "cpu")
    where, end = capsys.readouterr().err.splitlines()
    assert where == "training on cpu, 1 thread"
    assert end.startswith("hybrid-block, end-to-end: finished  step 2/2  loss ")
    ll.train(run, tmp_path, "cpu")
    ll.train_all([run], tmp_path, "cpu")
    assert capsys.readouterr().err == ""


NOTEBOOK = """
import tempfile
import lengthlab as ll
task, model = ll.tasks.ModuloRecall(modulus=2, keys=8), ll.models.lstm(width=8)
runs = [ll.Run(task, model, ll.end_to_end(60), lengths=(1, 2), batch=4, seed=seed, evaluate=(2,)) for seed in (0, 1)]
results = ll.train_all(runs, tempfile.mkdtemp(), "cpu")
"""


def test_in_a_notebook_one_table_below_the_cell_is_kept_up_to_date() -> None:
    client, format_ = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = format_.v4.new_notebook(cells=[format_.v4.new_code_cell(NOTEBOOK)])
    client.NotebookClient(notebook, timeout=120).execute()
    (shown,) = notebook.cells[0].outputs
    assert shown.output_type == "display_data"
    for words in ("training on cpu", "seed 0", "seed 1", "2 of 2 runs finished"):
        assert words in shown.data["text/html"]
