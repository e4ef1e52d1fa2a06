"""Learning rates and optimizers as data: what they come to, step by step and by part."""

from __future__ import annotations

from math import cos, pi
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.spec.optimizer import Adam, AdamW
from lengthlab.spec.plan import read_plan
from lengthlab.spec.rate import Cosine, Linear, Rate, WarmUp
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule, delayed, end_to_end
from lengthlab.training import recorder, train
from lengthlab.training.state import TrainState
from small_runs import CPU, LR, folder_of, identical, small_model, small_run, train_until_killed, weights

RATES: list[Rate] = [WarmUp(0.5, warm_up=3), Linear(0.5, warm_up=3, last=0.1), Cosine(0.5, warm_up=3, last=0.1)]


def rates_of(run: Run) -> list[list[float]]:
    """By step and group."""
    state, seen = TrainState(run, CPU), []
    while state.step < run.steps:
        state.advance()
        seen.append([float(group["lr"]) for group in state.optimizer.param_groups])
    return seen


@given(st.sampled_from(RATES), st.integers(4, 50), st.integers(0, 60))
def test_a_rate_never_leaves_what_it_was_given(rate: Rate, steps: int, step: int) -> None:
    assert 0 < rate.at(min(step, steps), steps) <= rate.peak


@pytest.mark.parametrize("kind", [Linear, Cosine])
@pytest.mark.parametrize("last", [-3, float("inf"), float("nan")])
def test_a_last_rate_that_cannot_be_is_refused(kind: type[Linear], last: float) -> None:
    with pytest.raises(LabError, match=r"the last of a learning rate must be (finite and )?at least 0"):
        kind(1e-3, last=last)


def test_rates_rise_in_a_line_and_fall_as_their_kind_says() -> None:
    assert [Linear(1.0, warm_up=2, last=0.5).at(step, 6) for step in range(6)] == [0.5, 1.0, 1.0, 0.875, 0.75, 0.625]
    falling = [Cosine(1.0, last=0.2).at(step, 5) for step in range(5)]
    assert falling == pytest.approx([0.2 + 0.8 * (1 + cos(pi * step / 5)) / 2 for step in range(5)])


def test_every_step_has_the_rate_of_its_place_in_its_phase() -> None:
    schedule = Schedule("made up", (Phase(4, Linear(4e-3)), Phase(2, LR), Phase(3, WarmUp(3e-3, warm_up=3))))
    expected = [4e-3, 3e-3, 2e-3, 1e-3, LR, LR, 1e-3, 2e-3, 3e-3]
    assert rates_of(small_run(schedule)) == [[pytest.approx(rate)] for rate in expected]


def test_a_part_has_a_rate_of_its_own() -> None:
    run = small_run(end_to_end(2, lr={"attention": Linear(2e-3), "rest": 1e-3}))
    first, second = rates_of(run)
    assert sorted(first) == pytest.approx([1e-3, 2e-3])
    assert sorted(second) == pytest.approx([1e-3, 1e-3])


def test_the_last_phase_has_a_tenth_of_any_rate() -> None:
    assert end_to_end(5, last=5, lr=Cosine(1e-3, last=1e-4)).phases[1].lr == Cosine(1e-3 / 10, last=1e-4 / 10)


def test_what_is_held_still_once_attention_is_open_is_bit_identical_and_the_rest_goes_on() -> None:
    run = small_run(delayed(4, joint=4, lr=Linear(LR), slowed={"lstm": 0}), optimizer=AdamW(decay=0.1))
    state = TrainState(run, CPU)
    for _ in range(4):
        state.advance()
    opened = {name: weight.detach().clone() for name, weight in state.network.named_parameters()}
    for _ in range(4):
        state.advance()
    moved = {name for name, weight in state.network.named_parameters() if not torch.equal(weight, opened[name])}
    assert not any(".lstm." in name for name in moved)
    assert {"embedding.weight", "head.weight"} <= moved
    assert any(".attention." in name for name in moved)


def test_a_part_that_is_slowed_is_one_of_the_model_and_a_file_can_name_it(tmp_path: Path) -> None:
    text = '[run]\ntask = "modulo-recall"\nmodel = { name = "hybrid-block", width = 8, heads = 2, blocks = 1 }\n'
    (tmp_path / "run.toml").write_text(
        text + 'schedule = { name = "delayed", first = 5, joint = 5, lr = 0.5, slowed = { lstm = 0.5 } }\n'
    )
    (run,) = read_plan(tmp_path / "run.toml")
    assert run.schedule.phases[1].rates == {"rest": 0.5, "lstm": 0.25}
    (run,) = read_plan(tmp_path / "run.toml", ["schedule.slowed=0.5"])
    assert run.schedule.phases[1].rates == {"attention": 0.5, "rest": 0.25}
    with pytest.raises(LabError, match="no part of the model is named 'gru'"):
        small_run(delayed(5, joint=5, slowed={"gru": 0.5}))


def test_a_run_with_rates_that_change_is_the_same_after_a_kill(tmp_path: Path) -> None:
    run = small_run(delayed(20, joint=30, lr=Cosine(LR, warm_up=5)), optimizer=AdamW(clip=1.0))
    train(run, tmp_path / "through")
    train_until_killed(run, tmp_path / "killed", step=27, checkpoint_seconds=0.0)
    train(run, tmp_path / "killed")
    assert identical(weights(tmp_path / "through", run), weights(tmp_path / "killed", run))


def test_a_run_keeps_its_rates_and_its_optimizer() -> None:
    run = small_run(end_to_end(5, lr={"attention": Cosine(1e-3), "rest": 1e-3}), optimizer=AdamW(decay=0.1, clip=2.0))
    assert Run.from_json(run.to_json()) == run


def test_what_was_there_before_keeps_its_content() -> None:
    data = small_run(end_to_end(5)).to_json()
    assert "optimizer" not in data
    assert data["schedule"]["phases"][0] == {"kind": "phase", "length": 5, "lr": 1e-4, "off": [], "asks": []}
    assert small_run(end_to_end(5), optimizer=Adam(beta2=0.95)).to_json()["optimizer"] == {
        "kind": "adam",
        "beta1": 0.9,
        "beta2": 0.95,
    }


# Optimizers


def stepped(optimizer: Any, steps: int = 3) -> TrainState:
    state = TrainState(small_run(end_to_end(steps, lr=LR), optimizer=optimizer), CPU)
    for _ in range(steps):
        state.advance()
    return state


def test_adamw_is_torchs() -> None:
    ours = TrainState(small_run(end_to_end(3, lr=LR), optimizer=AdamW(beta1=0.8, beta2=0.95, decay=0.3)), CPU)
    copies = [weight.detach().clone() for weight in ours.network.parameters()]
    theirs = torch.optim.AdamW(copies, LR, (0.8, 0.95), weight_decay=0.3)
    for _ in range(3):
        ours.advance()
        # Theirs takes our gradients: that of a bias of keys is rounding noise, which Adam divides by its own size, so that
        # two backward passes that differ in the last bit part ways.
        for copy, weight in zip(copies, ours.network.parameters(), strict=True):
            copy.grad = None if weight.grad is None else weight.grad.clone()
        theirs.step()
    for copy, weight in zip(copies, ours.network.parameters(), strict=True):
        torch.testing.assert_close(weight.detach(), copy)


def test_gradients_are_clipped_to_a_norm_of_all_weights_together() -> None:
    state = stepped(Adam(clip=1e-3), steps=1)
    squares = [float((weight.grad**2).sum()) for weight in state.network.parameters() if weight.grad is not None]
    assert sum(squares) ** 0.5 == pytest.approx(1e-3, rel=1e-3)


def test_a_part_that_is_off_does_not_decay() -> None:
    run = small_run(delayed(3, joint=1, lr=LR), optimizer=AdamW(decay=0.5))
    state = TrainState(run, CPU)
    before = {name: weight.detach().clone() for name, weight in state.network.named_parameters()}
    for _ in range(3):
        state.advance()
    for name, weight in state.network.named_parameters():
        assert torch.equal(weight, before[name]) == (".attention." in name), name


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Cosine(-1.0), "the peak of a learning rate must be at least 0, not -1.0"),
        (lambda: Linear(1e-3, warm_up=-1), "warm_up must be at least 0, not -1"),
        (lambda: Adam(clip=-1.0), "optimizer.clip must be at least 0"),
        (lambda: AdamW(decay=-0.1), "optimizer.decay must be at least 0"),
        (lambda: end_to_end(5.5), "schedule.joint must be a whole number of steps, not 5.5"),
        (lambda: end_to_end(True), "schedule.joint must be a whole number of steps, not True"),
    ],
)
def test_rates_and_optimizers_that_cannot_be_are_refused(make: Any, text: str) -> None:
    with pytest.raises(LabError, match=text):
        make()


# Checkpoints


def test_the_first_checkpoint_comes_soon_and_later_ones_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, kept = [0.0], []
    monkeypatch.setattr(recorder, "monotonic", lambda: clock[0])
    run = small_run(end_to_end(1_000), model=small_model())
    state, folder = TrainState(run, CPU), folder_of(tmp_path, run)
    folder.path.mkdir()
    keeper = recorder.Recorder(state, folder, before=0.0)
    monkeypatch.setattr(recorder, "save_checkpoint", lambda *_: kept.append(clock[0]))
    for second in range(1, 300):
        clock[0], state.step = float(second), second
        keeper.note(phase=0, loss=1.0)
    assert kept == [3.0, 8.0, 17.0, 34.0, 67.0, 128.0, 189.0, 250.0]
