"""Runs are named by what differs between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lengthlab as ll
from lengthlab.spec.content import to_json
from lengthlab.spec.source import Sources
from lengthlab.store.settings import LEFT_OUT, Names, called, described, name_runs

TASK = ll.tasks.ModuloRecall(modulus=2, keys=16)


def made(model: Any = None, schedule: Any = None, **more: Any) -> ll.Run:
    usual = ll.models.hybrid_block(width=8, heads=2, blocks=2)
    return ll.Run(more.pop("task", TASK), model or usual, schedule or ll.delayed(10, 20, 5, lr=1e-3), lengths=(1, 4), **more)


def contents(*runs: ll.Run) -> dict[str, dict[str, Any]]:
    return {run.id: called(run.to_json(), run.task.name, run.model.name, run.schedule.name) for run in runs}


def named(*runs: ll.Run) -> list[str]:
    return list(name_runs(contents(*runs)).names.values())


def test_a_rate_that_differs_in_every_phase_is_one_setting() -> None:
    assert named(*(made(schedule=ll.delayed(10, 20, 5, lr=lr)) for lr in (1e-4, 3e-4))) == ["lr 0.0001", "lr 0.0003"]


def test_the_length_of_one_phase_says_which() -> None:
    assert named(*(made(schedule=ll.delayed(first, 20)) for first in (10, 30))) == ["phase 1 steps 10", "phase 1 steps 30"]


def test_models_are_named_and_what_is_inside_them_is_theirs() -> None:
    models = (ll.models.hybrid_block(width=8, heads=2), ll.models.lstm(width=8), ll.models.transformer(width=8, heads=2))
    assert named(*(made(model, ll.end_to_end(10)) for model in models)) == ["hybrid-block", "lstm", "transformer"]


def test_what_differs_inside_one_of_several_models_is_said_too() -> None:
    schedule = ll.end_to_end(10)
    models = (ll.models.lstm(width=8), ll.models.lstm(width=16), ll.models.transformer(width=8, heads=2))
    assert named(*(made(model, schedule) for model in models)) == ["lstm, width 8", "lstm, width 16", "transformer, width 8"]


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ({"batch": 4}, {"batch": 8}, ["batch 4", "batch 8"]),
        ({"task": replace(TASK, keys=20)}, {"task": replace(TASK, keys=30)}, ["keys 20", "keys 30"]),
        ({}, {"optimizer": ll.Adam(beta2=0.95)}, ["beta2 0.999", "beta2 0.95"]),
        ({}, {"optimizer": ll.AdamW(decay=0.1)}, ["adam", "adam-w"]),
        ({"model": ll.models.lstm(width=8)}, {"model": ll.models.lstm(width=16)}, ["width 8", "width 16"]),
    ],
)
def test_one_thing_that_differs_is_the_name(first: dict[str, Any], second: dict[str, Any], names: list[str]) -> None:
    schedule = ll.end_to_end(10)
    assert named(made(schedule=schedule, **first), made(schedule=schedule, **second)) == names


def test_two_things_that_differ_at_once_are_both_said() -> None:
    runs = [made(ll.models.hybrid_block(width=width, heads=2), batch=batch) for width, batch in ((8, 4), (16, 8))]
    assert named(*runs) == ["width 8, batch 4", "width 16, batch 8"]


def test_positions_and_scores_say_what_they_are_by_themselves() -> None:
    runs = [made(ll.models.hybrid_block(width=8, heads=2, positions=each)) for each in ("rope", "none", "alibi")]
    assert named(*runs) == ["rope", "no-positions", "alibi"]


def test_seeds_are_said_of_runs_and_not_of_settings() -> None:
    runs = [made(batch=batch, seed=seed) for batch in (4, 8) for seed in (0, 1)]
    names = name_runs(contents(*runs))
    assert list(names.names.values()) == ["batch 4", "batch 4", "batch 8", "batch 8"]
    assert list(names.with_seeds(contents(*runs)).values())[1:3] == ["batch 4, seed 1", "batch 8, seed 0"]


def test_a_setting_alone_is_its_model_and_training_and_never_a_hash() -> None:
    run = made()
    assert named(run) == ["hybrid-block, delayed"]
    assert run.id[:4] not in named(run)[0]


def test_a_label_stands_for_a_setting_and_what_differs_where_it_stands_for_several() -> None:
    assert named(made(batch=4, label="small"), made(batch=8)) == ["small", "batch 8"]
    assert named(made(batch=4, label="ours"), made(batch=8, label="ours")) == ["ours, batch 4", "ours, batch 8"]
    seeds = [made(seed=seed, label="ours") for seed in (0, 1)]
    assert list(name_runs(contents(*seeds)).with_seeds(contents(*seeds)).values()) == ["ours, seed 0", "ours, seed 1"]


def test_two_texts_of_one_file_are_its_versions() -> None:
    texts = {run: {"model": {"name": "net"}, "files": {"net.py": text}} for run, text in (("a", "one"), ("b", "two"))}
    assert list(name_runs(texts).names.values()) == ["net.py version 1", "net.py version 2"]


def test_what_contents_leave_out_is_what_the_package_takes_for_it() -> None:
    assert {"optimizer": to_json(ll.Adam(), Sources())} == LEFT_OUT


def test_nothing_has_no_names() -> None:
    assert name_runs({}) == Names((), {}, {})


def test_a_label_and_what_is_measured_do_not_change_the_id() -> None:
    run = made()
    assert replace(run, label="mine", evaluate=(9,)).id == run.id
    assert replace(run, label="mine").settings == run.settings
    assert "label" not in run.to_json()
    assert ll.Run.from_json(replace(run, label="mine").to_json()).label == "mine"


def test_steps_are_said_of_each_phase_and_rates_of_parts_together() -> None:
    steps = [made(schedule=ll.delayed(first, joint)) for first, joint in ((400, 1600), (800, 1200))]
    assert named(*steps) == ["phase 1 steps 400, phase 2 steps 1600", "phase 1 steps 800, phase 2 steps 1200"]
    rates: list[Any] = [1e-3, {"attention": 1e-3, "rest": 2e-3}]
    assert named(*(made(schedule=ll.end_to_end(10, lr=lr)) for lr in rates)) == ["lr 0.001", "lr attention 0.001, rest 0.002"]


def test_numbers_that_are_close_are_told_apart_and_a_broken_content_breaks_nothing() -> None:
    assert named(*(made(schedule=ll.end_to_end(10, lr=lr)) for lr in (0.001, 0.0010000001))) == ["lr 0.001", "lr 0.0010000001"]
    broken = {"a": {"schedule": {"name": "x", "phases": []}}, "b": {"schedule": {"name": "x", "phases": [{"lr": 1}]}}}
    assert len(name_runs(broken).names) == 2


def test_things_of_one_name_and_of_different_classes_are_told_apart() -> None:
    kinds = {run: {"model": {"kind": f"m.py:{run}", "name": "x"}} for run in "AB"}
    assert list(name_runs(kinds).names.values()) == ["m.py:A", "m.py:B"]


def test_a_file_that_was_not_edited_is_no_difference() -> None:
    contents = {
        "a": {"model": {"name": "net"}, "files": {"net.py": "text"}},
        "b": {"model": {"name": "lstm"}, "files": {}},
        "c": {"model": {"name": "other"}, "files": {"other.py": "text"}},
    }
    assert list(name_runs(contents).names.values()) == ["net", "lstm", "other"]


def test_what_a_task_is_made_with_is_told_however_deep_or_long_it_is() -> None:
    deep: dict[str, Any] = {"kind": "a"}
    for _ in range(400):
        deep = {"kind": "a", "of": deep, "also": [deep]}
    assert described(deep).startswith("a (of a (of a (")
    assert len(described(deep)) < 500
    assert (
        described({"kind": "b" * 1000, "symbols": [0, 1], "rule": "two\nlines", "none": None})
        == f"{'b' * 100} … (symbols 0 and 1)"
    )
