"""What a run is about, written down with its result: it never ends a run, and never changes one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lengthlab.models import lstm
from lengthlab.spec.schedule import end_to_end
from lengthlab.tasks.card import card
from lengthlab.training import portrait as module
from lengthlab.training.portrait import portrait
from small_runs import delayed_run, small_run


def test_a_portrait_has_sample_parts_and_theory() -> None:
    told = portrait(delayed_run(5, 5, 5))
    assert list(told["scored"]) == ["modulo", "recall"]
    assert set(told) == {"sample", "scored", "parts", "theory"}
    assert any(part["off"] and "attention" in part["text"] for part in told["parts"])
    assert not any(part["off"] for part in portrait(small_run(end_to_end(5), model=lstm(width=8)))["parts"])


def test_the_sample_is_that_of_the_card() -> None:
    run = small_run(end_to_end(5), lengths=(1, 5))
    told, known = portrait(run), card(run.task)
    assert tuple(told["sample"]) == known.sample
    assert {question: tuple(places) for question, places in told["scored"].items()} == known.scored


def test_what_fails_is_left_out_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("a user's own code")

    monkeypatch.setattr(module, "sample_of", broken)
    assert set(portrait(delayed_run(5, 5, 5))) == {"parts", "theory"}


def test_a_portrait_draws_nothing_that_others_would_have_drawn() -> None:
    run = delayed_run(5, 5, 5)
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    portrait(run)
    assert torch.equal(torch.rand(1), expected)


def test_parts_have_the_sizes_of_a_real_network() -> None:
    run = delayed_run(5, 5, 5)
    total = sum(part["parameters"] for part in portrait(run)["parts"] if part["depth"] == 0)
    assert total == sum(parameter.numel() for parameter in run.network().parameters())
