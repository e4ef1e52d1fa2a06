"""Which finished runs of a plan need nothing more: only those that are what the plan asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lengthlab.report.kept import kept_curves
from lengthlab.spec.run import Run
from lengthlab.training import train
from small_runs import end_to_end_run, folder_of

RUN = end_to_end_run(steps=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    train(RUN, store)
    return store


def test_what_is_finished_and_measured_as_asked_is_kept(store: Path) -> None:
    kept = kept_curves([RUN, RUN.with_seed(101)], store)
    assert list(kept) == [RUN.id]
    assert {row.length for row in kept[RUN.id].rows} == {3}


@pytest.mark.parametrize("asked", [replace(RUN, evaluate=(3, 4)), replace(RUN, label="mine")])
def test_what_has_to_be_measured_or_called_otherwise_is_not(asked: Run, store: Path) -> None:
    assert asked.id == RUN.id
    assert not kept_curves([asked], store)


@pytest.mark.parametrize(
    ("name", "old", "new"), [("run.json", '"batch": 4', '"batch": 8'), ("result.json", '"total": 1000', '"total": 999')]
)
def test_what_is_not_what_it_should_be_is_not(name: str, old: str, new: str, store: Path) -> None:
    path = folder_of(store, RUN).path / name
    text = path.read_text()
    assert old in text
    try:
        path.write_text(text.replace(old, new))
        assert not kept_curves([RUN], store)
    finally:
        path.write_text(text)


def test_ids_of_seeds_are_those_of_runs_made_anew() -> None:
    for seed in (0, 7, 2**53):
        assert RUN.with_seed(seed).id == replace(RUN, seed=seed).id
        assert RUN.with_seed(seed) == replace(RUN, seed=seed)
