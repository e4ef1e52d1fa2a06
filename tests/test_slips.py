"""A part is slowed while a question slips, and only then; looking changes nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule, delayed
from lengthlab.spec.slips import Slips
from lengthlab.tasks import ModuloRecall, recall
from lengthlab.training import train
from lengthlab.training.state import TrainState
from small_runs import CPU, LR, identical, small_run, train_until_killed, weights

ANY = 0.01
"""An accuracy that every look has, once a few steps are made."""
HARD = ModuloRecall(modulus=7, values=7, keys=16)
"""Which nobody has right in all samples after 100 steps."""


def watched(slips: Slips, **changes: Any) -> Run:
    return small_run(delayed(5, joint=95, last=10, lr=LR, slips=slips), task=HARD, **changes)


def rates_and_weights(run: Run) -> tuple[list[float], list[Tensor]]:
    """The rate of the recurrence and a weight of it, after some steps."""
    state, rates, found = TrainState(run, CPU), [], []
    while state.clock < run.steps:
        state.advance()
        if state.step in (5, 50, 100, 110):
            rates += [group["lr"] for group in state.optimizer.param_groups if "lstm" in group["parts"]]
            found.append(next(weight for name, weight in state.network.named_parameters() if "lstm" in name).detach().clone())
        state.look()
    return rates, found


def test_a_part_keeps_its_rate_until_the_question_slips() -> None:
    rates, found = rates_and_weights(watched(Slips({"lstm": 0.0}, accuracy=1.0, every=50)))
    assert rates == [LR, LR, 0.0, 0.0], "the first look is at step 50, the first phase having none"
    assert not torch.equal(found[0], found[1])
    assert torch.equal(found[1], found[3])


def test_it_is_free_again_once_the_question_is_right() -> None:
    state = TrainState(watched(Slips(0.05, accuracy=ANY, every=50)), CPU)
    for _ in range(20):
        state.advance()
    state.mastery.slipped, state.step = True, 50
    assert state.rates.by_part == {"attention": LR, "rest": pytest.approx(0.05 * LR)}
    state.look()
    assert state.rates.by_part == {"rest": LR}


def test_a_watched_run_is_the_same_from_a_file_and_after_a_kill(tmp_path: Path) -> None:
    run = watched(Slips({"lstm": 0.05}, accuracy=1, every=50))
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    (tmp_path / "run.toml").write_text("""
        [run]
        task = { name = "modulo-recall", modulus = 7, values = 7, keys = 16 }
        model = { name = "hybrid-block", width = 8, heads = 2 }
        lengths = [1, 3]
        schedule = { name = "delayed", first = 5, slips = { by = { lstm = 0.05 }, accuracy = 1, every = 50 } }
    """)
    (read,) = read_plan(tmp_path / "run.toml")
    assert read.schedule.phases[1].slips == run.schedule.phases[1].slips == Slips({"lstm": 0.05}, "modulo", 1.0, every=50)
    train(run, tmp_path / "through")
    train_until_killed(run, tmp_path / "killed", 70, checkpoint_seconds=0)
    train(run, tmp_path / "killed")
    assert identical(weights(tmp_path / "through", run), weights(tmp_path / "killed", run))


def test_a_schedule_that_watches_nothing_is_the_content_it_always_was() -> None:
    run = small_run(delayed(5, joint=5))
    assert "slips" not in json.dumps(run.to_json())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Slips(0.5, every=30), "slips.every must be a multiple of 50"),
        (lambda: Slips({"lstm": -1.0}), "slips.by.lstm must be at least 0"),
        (lambda: Slips(0.5, accuracy=2), "slips.accuracy must be"),
        (lambda: Slips({"rest": 0.5}), "for everything but attention it is one number"),
        (lambda: watched(Slips({"gru": 0.5})), "no part of the model is named 'gru'"),
        (lambda: watched(Slips(0.5, "sum")), "the schedule watches 'sum', but task 'modulo-recall' is asked only"),
        (lambda: watched(Slips(0.5, times=9)), "the schedule looks at 9 times the longest length"),
        (
            lambda: ll.Run(recall(), small_run(delayed(5)).model, Schedule("one", (Phase(5, slips=Slips(0.5)),))),
            "the task names no state that the phase asks",
        ),
    ],
)
def test_what_cannot_be_watched_is_refused(make: Any, told: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert told in str(caught.value)
