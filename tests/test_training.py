"""Training: what is learned from, when, at which rate, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, isfinite, log
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab.device import settled
from lengthlab.errors import LabError, RunFailed
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.launch import train_all, try_all
from lengthlab.models import Lstm, Model, Part, chain, module
from lengthlab.models.module import Module
from lengthlab.spec.optimizer import Adam
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, end_to_end
from lengthlab.spec.seeds import seed_for
from lengthlab.store import Folder, Store
from lengthlab.store.folder import TRACEBACK
from lengthlab.store.rows import Count
from lengthlab.tasks import IGNORE, Batch
from lengthlab.tasks.batch import merged
from lengthlab.tasks.lengths import spread
from lengthlab.training import recorder, train
from lengthlab.training.data import BLOCK, StepData
from lengthlab.training.optimizer import Rates, optimizer_of
from lengthlab.training.precision import BF16, FP32
from lengthlab.training.result import read_run
from lengthlab.training.state import TrainState, answer_loss
from own_parts import Chatty, Deadly, Faulty, Forgetful, Stacked
from small_runs import (
    CPU,
    LR,
    TASK,
    Recording,
    counts,
    delayed_run,
    end_to_end_run,
    files_in,
    folder_of,
    identical,
    small_model,
    small_run,
    weights,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with settled(CPU):
        yield


def phases(*given: Phase) -> Run:
    return small_run(Schedule("made up", given))


def moved(before: dict[str, Tensor], network: nn.Module) -> dict[str, float]:
    """How far each parameter has moved at the most."""
    return {name: float((after.detach() - before[name]).abs().max()) for name, after in network.named_parameters()}


def first_step(run: Run) -> dict[str, float]:
    state = TrainState(run, CPU)
    before = {name: parameter.detach().clone() for name, parameter in state.network.named_parameters()}
    state.advance()
    return moved(before, state.network)


# The loss


def loss_of(network: nn.Module, batch: Batch, asks: Sequence[str]) -> Tensor:
    """Of a batch as it is, padded."""
    query_BQ, wanted = batch.queries(asks, batch.most_asked(asks))
    return answer_loss(network, StepData(batch.tokens_BT[:, :-1], query_BQ, merged(wanted)))


@given(seed=st.integers(0, 2**20), asks=st.sampled_from([("modulo",), ("recall",), ("modulo", "recall")]))
@settings(max_examples=20)
def test_the_loss_is_the_mean_cross_entropy_of_the_asked_answers(seed: int, asks: tuple[str, ...]) -> None:
    network = end_to_end_run().network()
    batch = TASK.sample(3, (1, 4), torch.Generator().manual_seed(seed))
    logits_BTV = network(batch.tokens_BT).tolist()
    losses = []
    for question in asks:
        for row, position in (batch.target[question] != IGNORE).nonzero().tolist():
            logits, token = logits_BTV[row][position], int(batch.target[question][row, position])
            losses.append(log(sum(exp(logit) for logit in logits)) - logits[token])
    assert len(losses) == 3 * len(asks)
    assert loss_of(network, batch, asks).item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@given(seed=st.integers(0, 2**20))
@settings(max_examples=10)
def test_the_loss_of_one_question_does_not_see_what_the_other_wants(seed: int) -> None:
    network = end_to_end_run().network()
    batch = TASK.sample(3, (2, 4), torch.Generator().manual_seed(seed))
    for asked, other in (("modulo", "recall"), ("recall", "modulo")):
        wrong_BT = batch.target[other].where(batch.target[other] == IGNORE, 1)
        changed = replace(batch, target={**batch.target, other: wrong_BT})
        assert torch.equal(loss_of(network, batch, [asked]), loss_of(network, changed, [asked]))
        assert not torch.equal(loss_of(network, batch, [other]), loss_of(network, changed, [other]))


def test_the_loss_does_not_see_tokens_behind_the_asked_answer() -> None:
    network = end_to_end_run().network()
    batch = TASK.sample(4, (1, 4), torch.Generator().manual_seed(0))
    behind_BT = (batch.target["modulo"] != IGNORE).cumsum(dim=1).roll(1, dims=1).index_fill(1, torch.tensor([0]), 0) > 0
    other = replace(batch, tokens_BT=torch.where(behind_BT, torch.full_like(batch.tokens_BT, 5), batch.tokens_BT))
    assert torch.equal(loss_of(network, batch, ["modulo"]), loss_of(network, other, ["modulo"]))
    assert not torch.equal(loss_of(network, batch, ["recall"]), loss_of(network, other, ["recall"]))


# Phases


def test_a_phase_learns_from_the_questions_it_asks_and_one_that_names_none_from_all() -> None:
    run = phases(Phase(2, LR, asks=("modulo",)), Phase(2, LR, asks=("recall",)), Phase(2, LR))
    state = TrainState(run, CPU, padded=True)
    for asks in [("modulo",)] * 2 + [("recall",)] * 2 + [("modulo", "recall")] * 2:
        number, k = divmod(state.step, BLOCK)
        generator = torch.Generator().manual_seed(seed_for("data", run.seed) + number)
        n_B = torch.cat([spread(run.batch, run.lengths, generator) for _ in range(BLOCK)])
        drawn = run.task.draw(n_B, generator).rows(slice(k * run.batch, (k + 1) * run.batch))
        state.enter_phase()
        expected = loss_of(state.network, drawn, asks).item()
        assert state.advance() == expected


@pytest.mark.parametrize("lr", [1e-4, 1e-2])
def test_the_first_step_is_as_long_as_the_learning_rate(lr: float) -> None:
    # Adam's first step is lr * g / |g|, whatever the gradient.
    assert max(first_step(phases(Phase(1, lr))).values()) == pytest.approx(lr, rel=1e-2)


@pytest.mark.parametrize(("beta2", "rates"), [(0.999, 32), (0.95, 6)])
def test_one_large_gradient_after_a_calm_moves_a_weight_less_where_squares_are_forgotten_sooner(
    beta2: float, rates: int
) -> None:
    run = replace(phases(Phase(1, LR)), optimizer=Adam(beta2=beta2))
    weight = nn.Parameter(torch.zeros(1))
    optimizer = optimizer_of(nn.ParameterDict({"weight": weight}), run)
    for group in optimizer.param_groups:
        group["lr"] = LR
    seen = []
    for step in range(3_500):
        seen.append(weight.item())
        weight.grad = torch.full((1,), 1.0 if step == 3_000 else 1e-7 * (-1) ** step)
        optimizer.step()
    assert abs(seen[-1] - seen[3_000]) / LR == pytest.approx(rates, rel=0.1)


def test_each_part_moves_at_its_own_learning_rate() -> None:
    lengths = first_step(phases(Phase(1, {"attention": 1e-3, "lstm": 0.0, "rest": 1e-2})))
    attention = [length for name, length in lengths.items() if name.startswith("body.attention.")]
    lstm = [length for name, length in lengths.items() if ".lstm." in name]
    assert max(attention) == pytest.approx(1e-3, rel=1e-2)
    assert max(lstm) == 0.0
    assert lengths["head.weight"] == pytest.approx(1e-2, rel=1e-2)


def test_the_learning_rate_of_an_inner_part_wins_over_that_of_the_part_around_it() -> None:
    # Once with an inner name that sorts before the outer one, and once after it.
    for inner, word in (("attend", ".attend."), ("mlp", ".mlp.")):
        lengths = first_step(phases(Phase(1, {"attention": 0.0, inner: 1e-2, "rest": 0.0})))
        assert max(length for name, length in lengths.items() if word in name) == pytest.approx(1e-2, rel=1e-2)
        assert max(length for name, length in lengths.items() if word not in name) == 0.0


def test_a_part_that_a_phase_does_not_name_takes_the_rate_of_the_part_around_it() -> None:
    rates = ({"attend": 1e-2, "attention": 1e-3, "rest": 0.0}, {"attention": 5e-3, "rest": 1e-4})
    state = TrainState(phases(*(Phase(1, lr) for lr in rates)), CPU)
    seen = []
    for _ in rates:
        state.advance()
        seen.append({group["parts"][0]: group["lr"] for group in state.optimizer.param_groups})
    assert seen == [
        {"rest": 0.0, "attend": 1e-2, "attention": 1e-3},
        {"rest": 1e-4, "attend": 5e-3, "attention": 5e-3},
    ]


def test_weights_that_the_last_step_broke_are_not_kept(tmp_path: Path) -> None:
    run = phases(Phase(1, lr=1e39))  # the loss of the one step is fine, the weights after it are infinite
    with pytest.raises(RunFailed, match="not finite after step 1"):
        train(run, tmp_path)
    assert not folder_of(tmp_path, run).finished
    assert not (folder_of(tmp_path, run).path / "weights.safetensors").exists()


def test_a_model_with_dropout_is_the_same_after_a_kill_and_beside_somebody_elses_random_numbers(tmp_path: Path) -> None:
    run = replace(end_to_end_run(steps=20), model=Model("forgetful", 8, chain(Lstm(), Forgetful())))
    state = torch.get_rng_state()
    train(run, tmp_path / "one")
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "FIRST_CHECKPOINT_SECONDS", 0.0)
        patch.setattr(recorder, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(recorder, "LOG_STEPS", 7)
        patch.setattr(Folder, "append_log", stop)
        with pytest.raises(ZeroDivisionError):
            train(run, tmp_path / "two")
    train(run, tmp_path / "two")
    assert identical(weights(tmp_path / "one", run), weights(tmp_path / "two", run))


def stop(*_: object) -> None:
    raise ZeroDivisionError


def test_phases_change_after_exactly_the_steps_they_were_given() -> None:
    state = TrainState(delayed_run(first=3, joint=4, last=2), CPU)
    rates, attention_moved = [], []
    for _ in range(9):
        before = {name: parameter.detach().clone() for name, parameter in state.network.named_parameters()}
        state.advance()
        lengths = moved(before, state.network)
        rates.append(state.optimizer.param_groups[0]["lr"])
        attention_moved.append(max(length for name, length in lengths.items() if ".attention." in name) > 0)
        assert lengths["head.weight"] > 0
    assert rates == [LR] * 7 + [LR / 10] * 2
    assert attention_moved == [False] * 3 + [True] * 6


def test_a_part_that_was_off_starts_again_from_a_fresh_optimizer_state() -> None:
    state = TrainState(phases(Phase(3, LR), Phase(2, LR, off=("attention",)), Phase(1, LR)), CPU)
    for _ in range(6):
        state.advance()
    steps = {name: int(state.optimizer.state[value]["step"]) for name, value in state.network.named_parameters()}
    assert {count for name, count in steps.items() if ".attention." in name} == {1}
    assert {count for name, count in steps.items() if ".attention." not in name} == {6}


# Data


@given(step=st.integers(0, 10**6), seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_the_data_of_a_step_depends_on_seed_and_step_alone(step: int, seed: int) -> None:
    one = TrainState(end_to_end_run(seed=seed), CPU)
    other = TrainState(delayed_run(seed=seed, model=small_model(width=4), evaluate=(12,)), CPU)
    tokens_BT = one.step_data(step).tokens_BT
    other.step_data(step + 5)
    torch.rand(3)
    assert torch.equal(other.step_data(step).tokens_BT, tokens_BT)
    assert not torch.equal(one.step_data(step + 1).tokens_BT, tokens_BT)
    assert not torch.equal(TrainState(end_to_end_run(seed=seed + 1), CPU).step_data(step).tokens_BT, tokens_BT)


def test_training_asks_its_task_for_the_training_lengths_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recorder.PROBE_STEPS, "cpu", 50)
    monkeypatch.setattr(Recording, "asked", [])
    run = delayed_run(task=Recording(2, 4, 12), evaluate=(6,))
    train(run, tmp_path)
    data = range(seed_for("data", run.seed), seed_for("data", run.seed) + run.steps)
    learned_from = [lengths for lengths, seed in Recording.asked if seed in data]
    looked_at = {length for lengths, seed in Recording.asked if seed not in data for length in lengths}
    assert learned_from == [[1, 1, 2, 3] * BLOCK] * len(learned_from)
    # A block that two phases share is drawn for each of them: 50 … 99 twice, and 100 … 149 twice.
    assert len(learned_from) == ceil(run.steps / BLOCK) + 2
    # The task is tried beforehand, from the shortest on; the probe is at the training length and as far as is measured.
    assert looked_at == {1, 3, 6}


def test_watching_the_accuracy_changes_nothing_of_what_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = delayed_run(first=20, joint=20, last=10)
    train(run, tmp_path / "unwatched")
    monkeypatch.setattr(recorder, "LOG_STEPS", 10)
    monkeypatch.setitem(recorder.PROBE_STEPS, "cpu", 10)
    train(run, tmp_path / "watched")
    assert ["accuracy" in line for line in folder_of(tmp_path / "watched", run).read_log()] == [True] * 5
    assert identical(weights(tmp_path / "watched", run), weights(tmp_path / "unwatched", run))


# What is kept


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """One run, trained alone in this process; the tests only add measurements to it."""
    store, run = tmp_path_factory.mktemp("trained"), delayed_run(first=50, joint=50, last=20)
    train(run, store)
    return store, run


def test_the_log_tells_step_phase_loss_rate_and_pace(trained: tuple[Path, Run]) -> None:
    lines = folder_of(*trained).read_log()
    assert [(line["step"], line["phase"], line["lr"]) for line in lines] == [(50, 1, LR), (100, 2, LR), (120, 3, LR / 10)]
    assert all(isfinite(line["loss"]) and line["loss"] > 0 for line in lines)
    assert all(line["samples_per_second"] > 0 for line in lines)


def test_a_finished_folder_holds_run_log_weights_and_result_and_nothing_else(trained: tuple[Path, Run]) -> None:
    assert set(files_in(folder_of(*trained).path)) == {"run.json", "log.jsonl", "weights.safetensors", "result.json"}


def test_a_finished_run_is_returned_without_touching_a_file(trained: tuple[Path, Run]) -> None:
    store, run = trained
    path = folder_of(store, run).path
    before = {name: (path / name).stat().st_mtime_ns for name in files_in(path)}
    result = train(run, store)
    assert {name: (path / name).stat().st_mtime_ns for name in files_in(path)} == before
    assert [count.to_json() for count in result.counts] == counts(store, run)


def test_training_a_finished_run_with_other_lengths_to_evaluate_only_measures(trained: tuple[Path, Run]) -> None:
    store, run = trained
    before, known = files_in(folder_of(store, run).path), counts(store, run)
    result = train(replace(run, evaluate=(3, 5)), store)
    after = files_in(folder_of(store, run).path)
    assert {name for name in after if after[name] != before.get(name)} == {"result.json"}
    assert {count.length for count in result.counts} >= {3, 5}
    assert [count for count in counts(store, run) if count["length"] == 3] == [c for c in known if c["length"] == 3]


def test_asking_a_result_for_a_length_not_yet_measured_measures_and_keeps_it(trained: tuple[Path, Run]) -> None:
    store, run = trained
    result = train(run, store)
    assert 7 not in {count.length for count in result.counts}
    asked = result.accuracy(length=7)
    kept = {(count["length"], count["question"]): count["correct"] / count["total"] for count in counts(store, run)}
    assert kept[7, "all"] == asked
    assert result.accuracy(length=7, question="modulo") == kept[7, "modulo"]


def test_a_result_has_no_answer_to_a_question_its_task_does_not_ask(trained: tuple[Path, Run]) -> None:
    with pytest.raises(LabError, match="no question 'parity'"):
        train(trained[1], trained[0]).accuracy(length=3, question="parity")


def test_the_kept_network_speaks_as_the_trained_one_did(trained: tuple[Path, Run]) -> None:
    store, run = trained
    state = TrainState(run, CPU)
    while state.step < run.steps:
        state.advance()
    tokens_BT = TASK.sample(20, (1, 12), torch.Generator().manual_seed(0)).tokens_BT
    with torch.no_grad():
        assert torch.equal(train(run, store).network()(tokens_BT), state.network(tokens_BT))


def test_a_run_that_ends_with_a_part_off_is_measured_as_its_kept_network_is(tmp_path: Path) -> None:
    result = train(phases(Phase(40, LR), Phase(20, LR, off=("attention",))), tmp_path)
    assert list(result.counts) == accuracy(result.network(), TASK, [3])


def test_a_length_that_is_named_twice_is_measured_once(tmp_path: Path) -> None:
    result = train(end_to_end_run(steps=2, evaluate=(3, 3)), tmp_path)
    assert [count.question for count in result.counts] == ["modulo", "recall", "all"]


# Many runs


def test_runs_trained_together_are_what_they_are_alone(tmp_path: Path) -> None:
    runs = [delayed_run(first=20, joint=20, last=10), end_to_end_run(steps=50, seed=3)]
    outcomes = try_all([*runs, runs[0]], tmp_path / "together", workers=2)
    assert [(outcome.run.id, outcome.error) for outcome in outcomes] == [(run.id, None) for run in [*runs, runs[0]]]
    for run in runs:
        alone = train(run, tmp_path / "alone")
        assert identical(weights(tmp_path / "together", run), weights(tmp_path / "alone", run))
        assert counts(tmp_path / "together", run) == json.loads(json.dumps([count.to_json() for count in alone.counts]))


def test_train_all_gives_results_in_the_order_of_the_runs(tmp_path: Path) -> None:
    runs = [replace(end_to_end_run(), seed=seed) for seed in (1, 0)]
    results = train_all([*runs, runs[0]], tmp_path, progress=False)
    assert [result.run for result in results] == [*runs, runs[0]]
    assert all(0 <= result.accuracy(3) <= 1 for result in results)


def test_train_all_trains_the_others_and_then_names_the_run_that_failed(tmp_path: Path) -> None:
    fine, broken = end_to_end_run(), replace(end_to_end_run(), seed=1)
    folder_of(tmp_path, broken).write_json("run.json", {"somebody": "else's"})
    with pytest.raises(RunFailed, match=f"1 of 2 runs failed.*{broken.id}"):
        train_all([broken, fine], tmp_path, progress=False)
    assert folder_of(tmp_path, fine).finished


def test_what_failed_is_said_and_the_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, fine = end_to_end_run(steps=5, seed=1), end_to_end_run(steps=5)
    folder_of(tmp_path, broken).write("checkpoint.safetensors", b"not one")
    first, second = try_all([broken, fine], tmp_path)
    assert first.error is not None
    assert "not a checkpoint" in first.error
    assert second.error is None
    assert f"seed 1: failed  {first.error}" in capsys.readouterr().err.splitlines()


def with_part(part: Part) -> Run:
    return replace(end_to_end_run(steps=5), model=Model(type(part).__name__.lower(), 8, chain(Lstm(), part)))


def test_a_worker_trains_one_run_after_the_other_and_its_death_costs_the_run_under_way(tmp_path: Path) -> None:
    first, last = end_to_end_run(steps=5, seed=1), end_to_end_run(steps=5, seed=2)
    faulty, chatty, deadly = with_part(Faulty()), with_part(Chatty()), with_part(Deadly())
    outcomes = try_all([first, faulty, chatty, deadly, last], tmp_path / "together", workers=1)
    kept = folder_of(tmp_path / "together", faulty).path / TRACEBACK
    failed = f"ValueError: no such thing (own_parts.py, line 25) (where in the code: {kept})"
    died = f"the process that trained run {deadly.id} ended with -9: 10%|#"  # the last that it said
    assert [outcome.error for outcome in outcomes] == [None, failed, None, died, None]
    for run in (first, last):
        train(run, tmp_path / "alone")
        assert identical(weights(tmp_path / "together", run), weights(tmp_path / "alone", run))


def test_finished_runs_start_no_worker_and_are_measured_where_lengths_are_missing(
    trained: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = trained
    # A worker could not even start: there is no such Python.
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    (outcome,) = try_all([replace(run, evaluate=(3, 8))], store)
    assert outcome.error is None
    assert outcome.result is not None
    assert {count.length for count in outcome.result.counts} >= {3, 8}


def test_the_stack_trace_of_what_failed_is_kept_with_the_run(tmp_path: Path) -> None:
    run = with_part(Faulty())
    (outcome,) = try_all([run], tmp_path)
    folder = folder_of(tmp_path, run)
    kept = folder.path / TRACEBACK
    assert outcome.error == f"ValueError: no such thing (own_parts.py, line 25) (where in the code: {kept})"
    failure = folder.read_json("failure.json")
    assert set(failure) == {"run", "step", "message", "date"}
    assert (failure["run"], failure["message"]) == (run.id, "ValueError: no such thing (own_parts.py, line 25)")
    assert kept.read_text().startswith("Traceback")
    assert "own_parts.py" in kept.read_text()


def test_a_run_that_goes_on_well_leaves_no_word_of_its_failure(tmp_path: Path) -> None:
    run = end_to_end_run(steps=5)
    folder = folder_of(tmp_path, run)
    folder.record_failure(ValueError("no such thing"))
    assert folder.explain_failure(ValueError("no such thing")).endswith(f"{TRACEBACK})")
    assert folder.explain_failure(RunFailed("the loss is nan")) == "the loss is nan"  # that needs no stack trace
    train(run, tmp_path)
    assert {"failure.json", TRACEBACK}.isdisjoint(files_in(folder.path))


def test_a_run_folder_of_an_older_version_goes_on_under_its_short_name(tmp_path: Path) -> None:
    run = end_to_end_run(steps=3)
    train(run, tmp_path)
    folder_of(tmp_path, run).path.rename(tmp_path / run.id[:12])
    before = files_in(tmp_path)
    assert train(run, tmp_path).folder.id == run.id[:12]
    assert files_in(tmp_path) == before
    assert read_run(Store(tmp_path).find(run.id[:5])) == read_run(Store(tmp_path).find(run.id)) == run


@pytest.mark.parametrize("workers", [0, -1])
def test_no_worker_at_all_is_refused(tmp_path: Path, workers: int) -> None:
    with pytest.raises(LabError, match="workers must be at least 1"):
        train_all([end_to_end_run()], tmp_path, workers=workers)


def test_an_interruption_inside_a_step_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = end_to_end_run(steps=5)

    def interrupted(state: TrainState) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrainState, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:  # as a notebook keeps the last trace, and what it holds
            train(run, tmp_path)
    assert train(run, tmp_path).accuracy(3) >= 0
    assert kept


class Averaging(nn.BatchNorm1d):
    def forward(self, x_BTD: Tensor) -> Tensor:
        return super().forward(x_BTD.flatten(0, 1)).view_as(x_BTD)


@dataclass(frozen=True)
class Averaged:
    def build(self, width: int) -> nn.Module:
        return Averaging(width)


def test_averages_that_a_network_keeps_are_kept_in_bf16_too() -> None:
    model = Model("averaged", 8, chain(Lstm(), Averaged()))
    exact, rough = (TrainState(replace(end_to_end_run(), model=model), CPU, precision) for precision in (FP32, BF16))
    for state in (exact, rough):
        for _ in range(5):
            state.advance()
    averages = [
        [buffer for name, buffer in state.network.named_buffers() if name.endswith("running_mean")] for state in (rough, exact)
    ]
    (mine,), (theirs,) = averages
    assert mine.abs().max() > 0
    assert torch.allclose(mine, theirs, atol=0.02)


def test_what_a_user_has_frozen_stays_frozen_when_training_is_watched() -> None:
    network = end_to_end_run().network()
    frozen = next(module for name, module in network.named_modules() if name)
    frozen.eval()
    before = {name: module.training for name, module in network.named_modules()}
    accuracy(network, TASK, [3], samples=10)
    assert {name: module.training for name, module in network.named_modules()} == before
    assert set(before.values()) == {True, False}


def test_a_phase_with_lengths_of_its_own_is_mastered_at_these(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def seen(network: nn.Module, task: object, lengths: Sequence[int], samples: int, seed: int) -> list[Count]:
        looked.extend(lengths)
        return [Count(lengths[0], "modulo", 1, 1)]

    monkeypatch.setattr("lengthlab.training.mastery.accuracy", seen)
    goal = Mastered("modulo", 0.5, looks=1, every=50, limit=100)
    state = TrainState(replace(phases(Phase(goal, LR, lengths=(1, 2)), Phase(10, LR)), lengths=(1, 6)), CPU)
    for _ in range(50):
        state.advance()
    state.look()
    assert looked == [2]


def test_the_lengths_of_all_phases_are_the_training_range(tmp_path: Path) -> None:
    run = phases(Phase(5, LR), Phase(5, LR, lengths=(2, 5)))
    result = train(run, tmp_path)
    assert run.trained == (1, 5)
    assert result.folder.read_json("result.json")["lengths"] == [1, 5]


@pytest.mark.parametrize("lengths", [(3, 2), (0, 2)])
def test_a_phase_with_impossible_lengths_is_refused(lengths: tuple[int, int]) -> None:
    with pytest.raises(LabError, match="a phase has lengths"):
        phases(Phase(5, LR, lengths=lengths))


def test_training_is_watched_no_further_than_it_will_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recorder.PROBE_STEPS, "cpu", 50)
    run = end_to_end_run(steps=50, evaluate=(3,))
    train(run, tmp_path)
    probed = [line["accuracy"] for line in folder_of(tmp_path, run).read_log() if "accuracy" in line]
    assert probed
    assert {int(length) for each in probed for length in each} == {3}


def test_a_part_that_two_phases_name_differently_has_the_rate_of_each() -> None:
    run = phases(Phase(5, {"attend": 1e-3, "rest": 1e-2}), Phase(5, {"*.attend": 1e-4, "rest": 1e-2}))
    optimizer = optimizer_of(run.network(), run)
    found = []
    for number, phase in enumerate(run.schedule.phases):
        Rates(phase, 5 * number, 5).set(optimizer, 5 * number)
        found.append(sorted({float(group["lr"]) for group in optimizer.param_groups}))
    assert found == [[1e-3, 1e-2], [1e-4, 1e-2]]
    with pytest.raises(LabError, match=r"both give .* a learning rate"):
        phases(Phase(5, {"attend": 1e-3, "*.attend": 1e-4, "rest": 1e-2}))


def test_a_run_is_what_it_will_be_when_it_is_read_back(tmp_path: Path) -> None:
    """JSON does not tell a list from a tuple, nor 1 from 1.0: the type of what they are for does."""

    def run_with(**arguments: Any) -> Run:
        return Run(TASK, module(Stacked, **arguments), end_to_end(2), lengths=(1, 2), batch=4, evaluate=(2,))

    run = run_with(hidden=(8, 8), scales=[1], rest=[1, [2]])
    assert isinstance(run.model, Module)
    assert run.model.arguments == {"hidden": [8, 8], "scales": [1.0], "rest": (1, (2,))}
    assert Run.from_json(run.to_json()) == run
    assert run.id == run_with(hidden=[8, 8], scales=[1.0], rest=(1, (2,))).id
    assert train(run, tmp_path).accuracy(2) >= 0
