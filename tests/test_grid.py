"""A grid of settings: from Python and from TOML, with what all runs share said once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.spec.grid import Choice, label_of
from lengthlab.spec.plan import merged

SWEEP = """
[defaults]
task = { name = "modulo-recall", keys = 32 }
model.width = 16
schedule = { name = "delayed", first = 20, joint = 30 }
lengths = [1, 4]
seeds = [0, 1, 2]
[grid]
model.name = ["attention-on-lstm", "hybrid-block"]
schedule.lr = [1e-4, 3e-4, 1e-3]
"""


def plan(folder: Path, text: str, *overrides: str) -> list[ll.Run]:
    (folder / "sweep.toml").write_text(text)
    return ll.read_plan(folder / "sweep.toml", overrides)


def complaint(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(LabError) as caught:
        plan(folder, text, *overrides)
    return str(caught.value)


def test_two_models_three_rates_and_three_seeds_are_ten_lines_of_toml(tmp_path: Path) -> None:
    runs = plan(tmp_path, SWEEP)
    assert len(SWEEP.strip().splitlines()) <= 10
    assert len({run.id for run in runs}) == 18
    told = {(run.model.name, run.schedule.phases[0].rates["rest"], run.seed) for run in runs}
    assert told == {
        (model, lr, seed) for model in ("attention-on-lstm", "hybrid-block") for lr in (1e-4, 3e-4, 1e-3) for seed in (0, 1, 2)
    }
    assert {run.model.width for run in runs} == {16}  # type: ignore[attr-defined]


def test_python_makes_the_same_runs_of_the_same_grid(tmp_path: Path) -> None:
    made = ll.grid(
        task=ll.tasks.ModuloRecall(keys=32),
        model=[ll.models.attention_on_lstm(width=16), ll.models.hybrid_block(width=16)],
        schedule=[ll.delayed(20, 30, lr=lr) for lr in (1e-4, 3e-4, 1e-3)],
        lengths=(1, 4),
        seeds=range(3),
    )
    assert [run.id for run in made] == [run.id for run in plan(tmp_path, SWEEP)]


def test_each_run_has_what_all_share_and_what_is_its_own(tmp_path: Path) -> None:
    text = SWEEP.split("[grid]")[0] + '[[run]]\nmodel = "lstm"\nseed = 7\n[[run]]\nmodel.name = "transformer"\nbatch = 4\n'
    first, *rest = plan(tmp_path, text.replace('name = "delayed", first = 20, joint = 30', 'name = "end-to-end", joint = 9'))
    assert (first.model.name, first.seed, first.batch) == ("lstm", 7, 256)
    assert [(run.model.name, run.seed, run.batch) for run in rest] == [("transformer", seed, 4) for seed in (0, 1, 2)]


def test_a_run_has_a_grid_of_its_own(tmp_path: Path) -> None:
    defaults = SWEEP.split("[grid]")[0].replace("seeds = [0, 1, 2]", "")
    text = defaults + '[[run]]\nmodel = "hybrid-block"\n[run.grid]\nbatch = [4, 8]\n[[run]]\nmodel = "attention-on-lstm"\n'
    assert [(run.model.name, run.batch) for run in plan(tmp_path, text)] == [
        ("hybrid-block", 4),
        ("hybrid-block", 8),
        ("attention-on-lstm", 256),
    ]


def test_a_choice_may_be_a_table_with_a_label(tmp_path: Path) -> None:
    wide = 'model = [{ label = "wide", name = "hybrid-block", width = 32 }, { label = "narrow", name = "hybrid-block" }]'
    text = SWEEP.replace('model.name = ["attention-on-lstm", "hybrid-block"]', wide).replace("[0, 1, 2]", "[0]")
    runs = plan(tmp_path, text)
    assert [run.label for run in runs][:4] == ["wide, lr 0.0001", "wide, lr 0.0003", "wide, lr 0.001", "narrow, lr 0.0001"]
    assert [run.model.width for run in runs] == [32, 32, 32, 16, 16, 16]  # type: ignore[attr-defined]


def test_what_the_command_line_says_holds_for_every_run_and_runs_that_become_one_are_one(tmp_path: Path) -> None:
    runs = plan(tmp_path, SWEEP, "schedule.lr=0.01", "seeds=[5]")
    assert [(run.model.name, run.seed) for run in runs] == [("attention-on-lstm", 5), ("hybrid-block", 5)]
    assert {run.schedule.phases[0].rates["rest"] for run in runs} == {0.01}


def test_seeds_may_be_a_choice_of_the_grid(tmp_path: Path) -> None:
    text = SWEEP.replace("seeds = [0, 1, 2]\n", "") + "seeds = [3, 4]\n"
    assert sorted({run.seed for run in plan(tmp_path, text)}) == [3, 4]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "schedule.lr = 1e-4", "grid.schedule.lr must be a list of what is to be tried"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "schedule.lr = []", "grid.schedule.lr must be a list of what is to be tried"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "schedule.rate = [1]", "unknown key 'schedule.rate'"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "batch.size = [1]", "batch"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "bach = [1]", "unknown key 'bach'; did you mean 'batch'?"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "lengths = [1, 4]", "lengths"),
        ("schedule.lr = [1e-4, 3e-4, 1e-3]", "batch = [4, -1]", "batch -1: batch must be"),
        ("model.width = 16", "model.widht = 16", "did you mean 'width'?"),
        ("[defaults]", "[default]", "unknown key 'default'"),
        ("[grid]", "[grids]", "unknown key 'grids'"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_with_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    said = complaint(tmp_path, SWEEP.replace(old, new))
    assert told in said
    assert "sweep.toml" in said


def test_a_file_of_defaults_alone_is_one_run_a_seed(tmp_path: Path) -> None:
    text = SWEEP.split("[grid]")[0].replace("model.width = 16", 'model = "hybrid-block"')
    assert [run.seed for run in plan(tmp_path, text)] == [0, 1, 2]


def test_a_grid_without_lists_is_one_run() -> None:
    (run,) = ll.grid(task=ll.tasks.ModuloRecall(), model=ll.models.lstm(8), schedule=ll.end_to_end(5), label="mine")
    assert run.label == "mine"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lengths": [1, 4]}, "write lengths in round brackets"),
        ({"batch": []}, "batch: a list without anything in it makes no run"),
        ({"seed": 3}, "a grid takes seeds, like seeds=range\\(3\\)"),
        ({"seeds": 3}, "seeds must be a list of them"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [[0, 1]]}, "a seed must be a whole number"),
        ({"seeds": [0, 0]}, "seeds must differ"),
        ({"width": 3}, "a grid takes what a Run takes"),
        ({"batch": [4, 0]}, "batch 0: batch must be"),
    ],
)
def test_a_grid_of_python_that_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    usual = {"task": ll.tasks.ModuloRecall(), "model": ll.models.lstm(8), "schedule": ll.end_to_end(5)}
    with pytest.raises(LabError, match=told):
        ll.grid(**usual | given)


def test_choices_are_said_in_words() -> None:
    table = Choice(("schedule",), {"name": "delayed", "first": 3})
    assert (table.words, Choice(("batch",), 4).words, Choice(("model",), ll.models.lstm(8)).words) == (
        "delayed",
        "batch 4",
        "lstm",
    )
    assert label_of([Choice(("batch",), 4)]) == ""
    assert label_of([Choice(("batch",), 4, "small"), Choice(("lr",), 0.1)], "ours") == "ours, small, lr 0.1"


def test_merging_leaves_what_is_merged_as_it_was() -> None:
    old = {"model": {"name": "lstm", "width": 4}, "seeds": [0, 1]}
    assert merged(old, {"model": {"width": 8}, "seed": 3}) == {"model": {"name": "lstm", "width": 8}, "seed": 3}
    assert old == {"model": {"name": "lstm", "width": 4}, "seeds": [0, 1]}
    assert merged({"model": "lstm"}, {"model": {"width": 8}}) == {"model": {"name": "lstm", "width": 8}}


def test_a_name_in_the_grid_leaves_the_rest_of_the_default_as_it_is(tmp_path: Path) -> None:
    text = SWEEP.replace("model.width = 16", 'model = { name = "lstm-on-attention", width = 16 }')
    assert {run.model.width for run in plan(tmp_path, text)} == {16}  # type: ignore[attr-defined]
    more = SWEEP.replace("model.name =", "model.width = [16, 32]\nmodel.name =")
    assert len(plan(tmp_path, more)) == 36


def test_one_run_named_twice_is_measured_wherever_it_is_asked_for(tmp_path: Path) -> None:
    defaults = SWEEP.split("[grid]")[0].replace("model.width = 16", 'model = "hybrid-block"').replace("[0, 1, 2]", "[0]")
    (run,) = plan(tmp_path, defaults + "[[run]]\nevaluate = [5]\n[[run]]\nevaluate = [10]\n")
    assert run.evaluate == (5, 10)
    assert "two labels for one run" in complaint(tmp_path, defaults + '[[run]]\nlabel = "a"\n[[run]]\nlabel = "b"\n')


def test_a_label_that_is_no_text_is_refused(tmp_path: Path) -> None:
    assert "label must be a text" in complaint(tmp_path, SWEEP.replace("[grid]", "label = 5\n[grid]"))


def test_pairs_in_a_grid_are_said_as_pairs(tmp_path: Path) -> None:
    told = complaint(tmp_path, SWEEP.replace("schedule.lr = [1e-4, 3e-4, 1e-3]", "lengths = [[1, 4], [4, 1]]"))
    assert "lengths 4…1" in told
