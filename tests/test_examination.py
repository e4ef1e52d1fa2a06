"""What is found before anything is trained: a model that sees ahead or ends too soon, sizes without end, long work."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import own_tasks
from command import Call
from lengthlab.errors import TRACE, LabError
from lengthlab.inspection.model_examination import examine_model
from lengthlab.launch import train_all
from lengthlab.models import AnyModel, Dropout, Learned, Lstm, Model, Randomized, chain, hybrid_block, lstm, module, t5_decoder
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.store import Store
from lengthlab.store.folder import TRACEBACK
from lengthlab.tasks import Addition, ModuloRecall, coin_flips_rule
from lengthlab.training import examination, outlook, train
from lengthlab.training.examination import examine
from lengthlab.training.forecast import Forecast
from own_models import Mixed, Noisy, Own, Peeks, Sound, Swapped, Tupled
from own_parts import Faulty
from small_runs import CPU, LR, delayed_run, end_to_end_run

TASK = ModuloRecall(modulus=2, values=4, keys=200)


def run_of(model: AnyModel, **changes: Any) -> Run:
    rest: dict[str, Any] = {"task": TASK, "schedule": end_to_end(3, lr=LR), "lengths": (1, 4), "batch": 4, "evaluate": (8,)}
    return Run(model=model, **rest | changes)


def composed(does: str) -> AnyModel:
    return Model("mine", 8, chain(Lstm(), Own(does)))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            module(Sound, both_ways=True),
            "own_models.py:Sound is not causal: of 13 tokens, its output at position 0 changes ",
        ),
        (module(Peeks), "is not causal: of 13 tokens, its output at position 3 changes with the token at position 9"),
        (composed("both ways"), "model 'mine' is not causal: of 13 tokens, its output at position 0 changes with the token at"),
        (module(Mixed), "own_models.py:Mixed reads the sequences of a batch together"),
        (module(Swapped), "expected logits of shape (2, 13, 208) from own_models.py:Swapped, got (2, 208, 13)"),
        (module(Tupled), "expected logits of shape (2, 13, 208) from own_models.py:Tupled, got a tuple"),
        (composed("tuple"), "expected shape (2, 13, 8) from part 'body.own' (GRU), got a tuple of 2"),
        (composed("wide"), "expected shape (2, 13, 8) from part 'body.own' (Linear), got (2, 13, 16)"),
        (composed("fails"), "part 'body.own' (_Fails) on shape (2, 13, 8) fails: ValueError: no such thing"),
    ],
)
def test_a_model_that_cannot_be_trained_honestly_is_refused_in_words(tmp_path: Path, model: AnyModel, told: str) -> None:
    for trained in (train, lambda run, store: train_all([run], store)):
        with pytest.raises(LabError) as refused:
            trained(run_of(model), tmp_path / "runs")
        assert told in str(refused.value)
    assert not (tmp_path / "runs").exists()


def test_a_table_of_310_positions_is_refused_where_it_will_be_measured_further() -> None:
    model = module(Sound, positions=310)
    assert examine_model(run_of(model, evaluate=(152,)), CPU) == ""  # 1 + 2 * 152 + 5 tokens, of which the last is not read
    with pytest.raises(LabError, match=r"works on 208 tokens and fails on 311: IndexError.*; length 153, .* has 311"):
        examine_model(run_of(model, evaluate=(153,)), CPU)


@pytest.mark.parametrize("positions", [Learned(limit=100), Randomized(limit=100)])
def test_a_table_of_ours_is_refused_where_it_will_be_measured_further(positions: Any) -> None:
    model = hybrid_block(width=8, blocks=1, heads=2, mlp=1, positions=positions)
    assert examine_model(run_of(model, evaluate=(47,)), CPU) == ""
    with pytest.raises(LabError, match="its positions end at 100 tokens, and length 48, where it is to be measured, has 101"):
        examine_model(run_of(model, evaluate=(48,)), CPU)


def test_the_longest_sample_that_is_measured_has_to_fit_where_samples_of_a_length_differ() -> None:
    """A trace of six flips has 246 tokens at the most, of which the last is not read; the first one drawn has fewer."""
    for table, fits in ((244, False), (245, True)):
        model = lstm(width=8, position_ids=table)
        run = Run(coin_flips_rule("trace"), model, end_to_end(2), lengths=(1, 2), batch=4, evaluate=(6,))
        with nullcontext() if fits else pytest.raises(LabError, match=r"end at 244 tokens, and length 6, .* has 245"):
            examine_model(run, CPU)


def test_position_ids_that_nothing_reads_are_said_and_trained_all_the_same() -> None:
    told: list[str] = []
    task = Addition(positions="coupled", ids=40)
    for ids in (0, 40):
        model = t5_decoder(width=8, blocks=1, heads=2, position_ids=ids)
        examine([run_of(model, task=task)], "runs", "cpu", say=told.append)
    for silent in (lstm(width=8, position_ids=40), hybrid_block(width=8, blocks=1, heads=2, positions="rope")):
        examine([run_of(silent, task=task)], "runs", "cpu", say=told.append)
    assert told == [
        "task 'addition' has position ids, and nothing in model 't5-decoder' reads them: take position_ids or positions that do"
    ]


def test_as_far_as_there_is_time_is_said_where_that_is_not_far_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthlab.inspection.model_examination.PATIENCE", 0.0)
    told = examine_model(run_of(module(Sound), evaluate=(100,)), CPU)
    assert "own_models.py:Sound was tried on 13 tokens" in told
    assert "not on the 205 of length 100" in told


@pytest.mark.parametrize(
    "model", [module(Sound), module(Noisy), composed("fits"), Model("dropping", 8, chain(Lstm(), Dropout(0.5), Own("fits")))]
)
def test_a_sound_model_is_let_in_with_dropout_and_with_noise(model: AnyModel) -> None:
    before = torch.get_rng_state()
    assert examine_model(run_of(model), CPU) == ""
    assert torch.equal(torch.get_rng_state(), before)


def test_random_positions_beside_a_part_of_ones_own_are_no_look_ahead() -> None:
    body = hybrid_block(width=8, blocks=1, heads=2, mlp=1, positions=Randomized(limit=64)).body
    assert examine_model(run_of(Model("mine", 8, chain(body, Own("fits")))), CPU) == ""


def test_looking_changes_nothing_of_what_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(module(Sound))
    looked = train(run, tmp_path / "looked").network().state_dict()
    monkeypatch.setattr("lengthlab.training.engine.examine", lambda *_: None)
    blind = train(run, tmp_path / "blind").network().state_dict()
    assert all(torch.equal(looked[name], blind[name]) for name in looked)


def test_a_task_that_is_not_sound_is_not_trained(call: Call, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[[run]]\ntask = "{own_tasks.__file__}:Contradicting"\nmodel = {{ name = "lstm", width = 8 }}\n'
        'schedule = { name = "end-to-end", joint = 3 }\nlengths = [1, 4]\nbatch = 4\n'
    )
    call("train", plan, "--store", tmp_path / "runs").refused("task 'parity' is not sound: the answer to 'parity' is")
    assert not (tmp_path / "runs").exists()


HUGE = 10**12


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"batch": HUGE}, f"50 batches of {HUGE} sequences"),
        ({"task": own_tasks.Parity(), "lengths": (1, HUGE)}, "50 batches of 4 sequences of 1000000000003 tokens"),
        ({"task": own_tasks.Parity(), "evaluate": (HUGE,)}, f"1 sample of length {HUGE}, where it is measured (evaluate)"),
        ({"model": lstm(width=10**6)}, "8,000,424,000,208 parameters, their gradients and averages (width)"),
    ],
)
def test_sizes_without_end_are_refused_with_the_memory_they_would_need(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    run = replace(run_of(lstm(width=8)), **changes)
    with pytest.raises(LabError, match=r"would need at least [\d.,]+ [TPE]B of memory, and cpu has .*; most of it") as refused:
        train(run, tmp_path / "runs")
    assert told in str(refused.value)
    assert not list(tmp_path.rglob("run.json"))


def test_a_finished_run_is_not_measured_where_not_even_the_samples_have_room(tmp_path: Path) -> None:
    result = train(run_of(lstm(width=8), task=own_tasks.Parity()), tmp_path)
    before = (result.folder.path / "result.json").read_bytes()
    with pytest.raises(LabError, match=f"1 sample of length {HUGE}"):
        result.accuracy(HUGE)
    assert (result.folder.path / "result.json").read_bytes() == before


def test_a_weight_that_cannot_even_be_counted_is_refused() -> None:
    with pytest.raises(LabError, match="a weight of 4000000000 × 1000000000 numbers would need at least 16 EB of memory"):
        run_of(lstm(width=10**9))
    with pytest.raises(LabError, match=r"the words of task\.keys = 1000000000000 would need at least 60 TB of memory"):
        ModuloRecall(keys=HUGE)
    with pytest.raises(LabError, match=r"to shuffle 60000 keys for 10000000 sequences would need at least 7\.2 TB"):
        ModuloRecall(keys=60_000).draw(torch.ones(1, dtype=torch.long).expand(10**7), torch.Generator())


def test_small_runs_are_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlook, "forecast", lambda *_: pytest.fail("timed"))
    assert outlook.outlook([end_to_end_run(steps=1000), delayed_run()], tmp_path, "cpu") == ""


def test_long_work_is_announced_with_what_would_be_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [replace(run_of(lstm(width=128), schedule=end_to_end(10**6)), seed=seed) for seed in (0, 1)]
    monkeypatch.setattr(outlook, "forecast", lambda runs, *_: Forecast(7200.0, dict.fromkeys([run.id for run in runs], 0.0)))
    said: list[str] = []
    examine(runs, tmp_path, "cpu", say=said.append)
    (told,) = said
    assert told.startswith("These 2 runs take about 2 h 0 min on cpu")
    for shorter in ("half the steps (1 h 0 min)", "one seed of 2 (1 h 0 min)", "a width below 128", "a GPU"):
        assert shorter in told
    examine(runs, tmp_path, "cpu", say=said.append)
    assert said == [told]  # once in a process


def test_what_is_timed_and_short_is_not_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(lstm(width=128), schedule=end_to_end(10**6))
    monkeypatch.setattr(outlook, "forecast", lambda *_: Forecast(599.0, {run.id: 0.0}))
    assert outlook.outlook([run], tmp_path, "cpu") == ""


def test_train_announces_by_the_log_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(examination, "outlook", lambda *_: "This run takes about 2 h")
    with caplog.at_level(logging.WARNING, "lengthlab"):
        train(run_of(lstm(width=8), seed=77), tmp_path)
    assert "This run takes about 2 h" in caplog.text


def test_a_finished_run_is_not_examined_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(lstm(width=8), seed=78)
    train(run, tmp_path)
    monkeypatch.setattr(examination, "_SOUND", set())
    monkeypatch.setattr(examination, "require_room", lambda *_: pytest.fail("examined"))
    examine([run], tmp_path, "cpu")


def test_the_command_names_the_traceback_of_a_worker_and_shows_it_if_asked(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, store = tmp_path / "plan.toml", tmp_path / "runs"
    part = f'{{ kind = "{Path(Faulty.__module__ + ".py").name}:Faulty" }}'
    (tmp_path / "own_parts.py").write_text(Path(__file__).with_name("own_parts.py").read_text())
    plan.write_text(
        '[[run]]\ntask = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }\n'
        f'model = {{ kind = "model", name = "faulty", width = 8, body = {part} }}\n'
        'schedule = { name = "end-to-end", joint = 3 }\nlengths = [1, 3]\nbatch = 4\nevaluate = [3]\n'
    )
    monkeypatch.setenv(TRACE, "1")
    done = call("train", plan, "--store", store)
    (folder,) = Store(store).folders()
    assert done.code == 2
    assert (
        f"failed: ValueError: no such thing (own_parts.py, line 25) (where in the code: {folder.path / TRACEBACK})"
        in done.said[0]
    )
    assert "Traceback (most recent call last):" in done.err
    assert "own_parts.py" in done.err
