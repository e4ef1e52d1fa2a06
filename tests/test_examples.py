"""The examples work as they stand: as scripts, and from the command line."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import scripts
from lengthlab import read_plan
from lengthlab.cli import main
from lengthlab.experiments import hard_states
from lengthlab.spec.schedule import Schedule
from lengthlab.spec.source import load_reference
from lengthlab.tasks import IGNORE, Task
from lengthlab.training import train

EXAMPLES = Path(__file__).parent.parent / "examples"


def script(name: str, folder: Path) -> str:
    """What an example prints, run as a user would; it keeps its runs in the folder it is run in."""
    ran = scripts.script(folder, (EXAMPLES / name).read_text())
    assert ran.code == 0, ran.err
    assert ran.err.startswith("training on ")
    assert "Warning" not in ran.err
    assert len(list((folder / "runs").glob("*/result.json"))) > 0
    return ran.out


def test_the_task_example_learns_parity_far_beyond_its_training_length(tmp_path: Path) -> None:
    printed = re.findall(r"n=(\d+): (\d\.\d+)", script("parity_task.py", tmp_path))
    assert [int(n) for n, _ in printed] == [8, 16, 32]
    assert min(float(accuracy) for _, accuracy in printed) >= 0.9


def test_the_jamba_example_trains_end_to_end_and_delayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLES / "delay_in_jamba.py"))["main"].__globals__
    monkeypatch.setitem(example, "MEASURED", (2, 4))
    monkeypatch.setattr(sys, "argv", ["delay_in_jamba.py", "--steps", "4", "--first", "2"])
    threads = torch.get_num_threads()
    try:
        example["main"]()
    finally:
        torch.set_num_threads(threads)
    header, *rows = capsys.readouterr().out.splitlines()[-3:]
    assert header.split()[-2:] == ["2", "4"]
    assert [row.split(",")[0] for row in rows] == ["end to end", "delayed"]
    assert all(len(re.findall(r"[01]\.\d\d", row)) == 6 for row in rows)


def test_the_model_example_trains_both_of_its_models(tmp_path: Path) -> None:
    lines = script("three_lstms.py", tmp_path).splitlines()
    assert [line.split(":")[0] for line in lines] == ["three-lstms", "lstms-and-mean"]
    for line in lines:
        accuracies = re.findall(r"(\d\.\d+) at n=(\d+)", line)
        assert [int(n) for _, n in accuracies] == [4, 8, 16]
        assert float(accuracies[0][0]) >= 0.9


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Any]:
    """The rows that `lengthlab train` prints for an example, made small."""

    def rows(plan: str, *overrides: str) -> Any:
        changed = [word for override in (*overrides, "batch=4", "seed=0") for word in ("--set", override)]
        words = ["train", str(EXAMPLES / plan), "--store", str(tmp_path), "--json", *changed]
        monkeypatch.setattr(sys, "argv", ["lengthlab", *words])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert not left.value.code, err
        return json.loads(out)

    return rows


def test_a_task_of_ones_own_trains_from_the_command_line(rows: Callable[..., Any]) -> None:
    made = rows("parity.toml", "schedule.joint=5", "schedule.last=5", "model.width=8", "evaluate=[8, 32]")
    assert {(row["task"], row["model"]) for row in made} == {("parity", "lstm")}
    assert {(row["length"], row["question"]) for row in made} == {(n, q) for n in (8, 32) for q in ("parity", "all")}


def test_a_model_of_ones_own_trains_from_the_command_line(rows: Callable[..., Any]) -> None:
    made = rows("three_lstms.toml", "schedule.joint=5", "schedule.last=5", "model.width=8", "evaluate=[10]")
    assert {(row["task"], row["model"]) for row in made} == {("modulo", "three-lstms")}


SMALL = {
    "copy.toml": ("copy", "copy", ("schedule.joint=5", "schedule.last=5")),
    "addition.toml": ("coupled-addition", "sum", ("schedule.joint=5",)),
    "hard_state.toml": (
        "group-recall",
        "all",
        ("schedule.first=5", "schedule.joint=5", "schedule.last=5", "schedule.settle=5"),
    ),
    "gru_hybrid.toml": ("modulo-recall", "all", ("schedule.first=5", "schedule.joint=5", "schedule.last=5")),
}


def test_the_ways_of_opening_train_side_by_side(tmp_path: Path) -> None:
    runs = read_plan(EXAMPLES / "opening.toml")
    small = [replace(run, batch=4, evaluate=(3,), schedule=shorter(run.schedule)) for run in runs]
    accuracies = {run.schedule.name: train(run, tmp_path).accuracy(3) for run in small}
    assert list(accuracies) == ["end-to-end", "delayed", "by-chance", "by-window", "by-layers"]


def test_the_runs_of_the_hard_state_are_those_of_its_study() -> None:
    usual, kept = (hard_states.run(hard_states.state_arm("S4", way), "cpu") for way in ("open", hard_states.KEPT))
    assert [run.id for run in read_plan(EXAMPLES / "hard_state.toml")] == [usual.id, kept.id]


def shorter(schedule: Schedule) -> Schedule:
    return replace(schedule, phases=tuple(replace(phase, length=5) for phase in schedule.phases))


@pytest.mark.parametrize("file", SMALL)
def test_what_is_new_trains_from_the_command_line(file: str, rows: Callable[..., Any]) -> None:
    task, question, shorter = SMALL[file]
    made = rows(file, *shorter, "model.width=8", "evaluate=[3]")
    assert {row["task"] for row in made} == {task}
    assert question in {row["question"] for row in made}


def parity() -> Task:
    kind = load_reference("parity_task.py:Parity", EXAMPLES)
    assert isinstance(kind, type)
    made = kind()
    assert isinstance(made, Task)
    return made


@settings(max_examples=50)
@given(seed=st.integers(0, 2**31), shortest=st.integers(1, 6), more=st.integers(0, 6))
def test_the_task_example_solves_what_it_samples(seed: int, shortest: int, more: int) -> None:
    task = parity()
    batch = task.sample(8, (shortest, shortest + more), torch.Generator().manual_seed(seed))
    for tokens, target in zip(batch.tokens_BT, batch.target["parity"].tolist(), strict=True):
        words = task.decode(tokens)
        ((at, token),) = ((place, token) for place, token in enumerate(target) if token != IGNORE)
        assert shortest <= len(words) - 3 <= shortest + more
        assert (words[at], words[at + 1]) == ("<parity>", task.words[token])
        assert task.solve(words[:-1]) == {"parity": (words[-1],)}
        assert words[-1] == str(sum(word == "1" for word in words[1:-2]) % 2)
