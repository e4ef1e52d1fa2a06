"""What must always hold: one test for each of the seven sentences of the design, at a tiny size, the sentence as its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from torch import Tensor

from lengthlab.cli import main
from lengthlab.device import settled
from lengthlab.errors import LabError
from lengthlab.models import MODELS
from lengthlab.spec.schedule import Phase, Schedule, delayed, end_to_end
from lengthlab.spec.seeds import seed_for
from lengthlab.store.folder import CHECKPOINT, CHECKPOINTS
from lengthlab.training import recorder, train
from lengthlab.training.state import TrainState
from small_runs import (
    CPU,
    LR,
    Killed,
    Recording,
    checkpoint_steps,
    counts,
    delayed_run,
    end_to_end_run,
    files_in,
    folder_of,
    identical,
    learned,
    small_run,
    start_worker,
    train_until_killed,
    wait_for,
    weights,
)

WITH_ATTENTION = sorted(set(MODELS) - {"lstm"})


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with settled(CPU):
        yield


def weights_of(state: TrainState) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in state.network.state_dict().items()}


# 1


@given(name=st.sampled_from(WITH_ATTENTION), covers=st.sampled_from(["part", "sublayers", "function"]), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_a_delayed_part_is_bit_identical_before_and_after_its_phase_off(name: str, covers: str, seed: int) -> None:
    model = MODELS[name](width=8, blocks=2, heads=2, mlp=1)
    state = TrainState(small_run(delayed(4, joint=1, lr=0.1, covers=covers), model=model, seed=seed), CPU)  # type: ignore[arg-type]
    before = weights_of(state)
    off = [name for name in before if any(f".{part}." in f".{name}" for part in state.phase.off)]
    for _ in range(4):
        state.advance()
    during = weights_of(state)
    assert off
    assert identical({name: during[name] for name in off}, {name: before[name] for name in off})
    assert not torch.equal(during["head.weight"], before["head.weight"])
    assert not any(name in off for name, value in state.network.named_parameters() if value in state.optimizer.state)
    state.advance()
    assert any(not torch.equal(weights_of(state)[name], before[name]) for name in off)


# 2


@contextmanager
def frequent_log() -> Iterator[None]:
    """So that a log line lies behind almost every kill, to be forgotten and written again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "LOG_STEPS", 3)
        yield


INTERRUPTED = delayed_run(first=20, joint=25, last=10)


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("unkilled")
    with frequent_log():
        train(INTERRUPTED, store)
    return store


@given(steps=st.lists(st.integers(0, 54), min_size=1, max_size=3), checkpoint_seconds=st.sampled_from([-1.0, 1e9]))
@settings(max_examples=6)
def test_a_run_killed_at_any_moment_and_started_again_equals_an_unkilled_one(
    tmp_path_factory: pytest.TempPathFactory, unkilled: Path, steps: list[int], checkpoint_seconds: float
) -> None:
    store = tmp_path_factory.mktemp("killed")
    with frequent_log():
        for step in sorted(steps):  # a later kill comes to a run that has gone on from the earlier one
            train_until_killed(INTERRUPTED, store, step, checkpoint_seconds)
        train(INTERRUPTED, store)
    assert identical(weights(store, INTERRUPTED), weights(unkilled, INTERRUPTED))
    assert counts(store, INTERRUPTED) == counts(unkilled, INTERRUPTED)
    assert learned(store, INTERRUPTED) == learned(unkilled, INTERRUPTED)


def test_a_run_that_ends_with_a_part_off_equals_an_unkilled_one_when_killed_while_measuring(tmp_path: Path) -> None:
    run = small_run(Schedule("closed", (Phase(30, LR), Phase(10, LR, off=("attention",)))))
    train(run, tmp_path / "unkilled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "accuracy", raise_killed)
        with pytest.raises(Killed):
            train(run, tmp_path / "killed")
    train(run, tmp_path / "killed")
    assert counts(tmp_path / "killed", run) == counts(tmp_path / "unkilled", run)


def raise_killed(*_: object) -> None:
    raise Killed


# 3


@given(order=st.lists(st.integers(0, 2), min_size=8, max_size=20))
@settings(max_examples=6)
def test_several_runs_trained_together_give_what_they_give_alone(order: Sequence[int]) -> None:
    # Step by step in one process, in any order, with somebody else drawing random numbers; test_training has the processes.
    runs = [delayed_run(first=3, joint=30), end_to_end_run(), end_to_end_run(seed=1)]
    together = [TrainState(run, CPU) for run in runs]
    for number in order:
        together[number].advance()
        torch.rand(1)
    for run, state in zip(runs, together, strict=True):
        alone = TrainState(run, CPU)
        while alone.step < state.step:
            alone.advance()
        assert identical(weights_of(state), weights_of(alone))


# 4


@given(lengths=st.tuples(st.integers(1, 4), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair))), seed=st.integers(0, 99))
@settings(max_examples=6)
def test_nothing_in_training_sees_a_length_above_the_training_range(
    tmp_path_factory: pytest.TempPathFactory, lengths: tuple[int, int], seed: int
) -> None:
    run = delayed_run(2, 2, 2, task=Recording(2, 4, 12), lengths=lengths, seed=seed, evaluate=(12,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recording, "asked", [])
        patch.setattr(recorder, "LOG_STEPS", 2)
        patch.setitem(recorder.PROBE_STEPS, "cpu", 2)
        train(run, tmp_path_factory.mktemp("run"))
        data = range(seed_for("data", seed), seed_for("data", seed) + run.steps)
        learned_from = {length for asked, start in Recording.asked if start in data for length in asked}
        assert lengths[0] <= min(learned_from) <= max(learned_from) <= lengths[1]
        assert 12 in {length for asked, _ in Recording.asked for length in asked}
    state = TrainState(run, CPU, padded=True)
    sequences = [run.task.decode(tokens_T) for step in range(run.steps) for tokens_T in state.step_data(step).tokens_BT]
    pairs = [(words.index("<modulo>") - 1) // 2 for words in sequences]
    assert lengths[0] <= min(pairs) <= max(pairs) <= lengths[1]


# 5


def test_two_processes_on_one_store_do_not_corrupt_it(tmp_path: Path) -> None:
    run = delayed_run(first=60, joint=60)
    worker = start_worker(tmp_path / "shared", run)
    wait_for(lambda: folder_of(tmp_path / "shared", run).read_log())
    train(run, tmp_path / "shared")
    assert worker.wait() == 0
    train(run, tmp_path / "alone")
    assert identical(weights(tmp_path / "shared", run), weights(tmp_path / "alone", run))
    assert learned(tmp_path / "shared", run) == learned(tmp_path / "alone", run)


@pytest.mark.parametrize("name", ["run.json", "result.json", "weights.safetensors", CHECKPOINT])
def test_a_truncated_file_in_a_store_is_named_and_left_alone(tmp_path: Path, name: str) -> None:
    run = delayed_run(3, 3, 3)
    if name == CHECKPOINT:
        train_until_killed(run, tmp_path, step=5, checkpoint_seconds=-1.0)
    else:
        train(run, tmp_path)
    for each in CHECKPOINTS if name == CHECKPOINT else (name,):
        path = folder_of(tmp_path, run).path / each
        path.write_bytes(path.read_bytes()[:-20])
    before = files_in(tmp_path)
    with pytest.raises(LabError, match=name.replace(".", r"\.")):
        train(run, tmp_path).accuracy(length=4)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("change", [{"task": 3}, {"model": {"kind": "lstm", "layers": 1}}, {"schedule": []}])
def test_a_foreign_run_in_a_store_is_named_and_left_alone(tmp_path: Path, change: dict[str, object]) -> None:
    run = end_to_end_run()
    folder = folder_of(tmp_path, run)
    folder.write_json("run.json", run.to_json() | change)
    before = files_in(tmp_path)
    with pytest.raises(LabError, match=run.id):
        train(run, tmp_path)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("note", [None, {}, {"lengthlab": "{}"}, {"lengthlab": "3"}])
def test_a_foreign_checkpoint_in_a_store_is_named_and_left_alone(tmp_path: Path, note: dict[str, str] | None) -> None:
    run = end_to_end_run()
    folder = folder_of(tmp_path, run)
    folder.write_json("run.json", run.to_json())
    for tensors, what in (
        ({}, "is truncated or not a checkpoint"),
        ({"weights/other": torch.zeros(2)}, "does not fit the model"),
    ):
        folder.write(CHECKPOINT, save(tensors, metadata=note))
        with pytest.raises(LabError, match=rf"checkpoint\.safetensors {what}"):
            train(run, tmp_path)
        assert (folder.path / CHECKPOINT).read_bytes() == save(tensors, metadata=note)


# 6


def test_a_loss_that_is_not_finite_stops_that_run_with_a_record_and_the_others_go_on(tmp_path: Path) -> None:
    exploding = small_run(end_to_end(50, lr=1e30))
    fine = end_to_end_run(steps=20)
    assert start_worker(tmp_path, exploding, fine).wait() == 1
    record = folder_of(tmp_path, exploding).read_json("failure.json")
    assert record["run"] == exploding.id
    assert re.search(r"loss .*(nan|inf) at step \d+", record["message"])
    assert not folder_of(tmp_path, exploding).finished
    train(fine, tmp_path / "alone")
    assert identical(weights(tmp_path, fine), weights(tmp_path / "alone", fine))


# 7

PLAN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1 }
schedule = { name = "end-to-end", joint = 10 }
lengths = [1, 3]
batch = 4
"""


def spoil_toml(folder: Path) -> tuple[list[str], str]:
    (folder / "plan.toml").write_text("[[run]\n")
    return ["train", "plan.toml", "--store", "store"], "plan.toml"


def spoil_specification(folder: Path) -> tuple[list[str], str]:
    return ["train", "plan.toml", "--store", "store", "--set", "model.wdith=8"], "model.wdith"


def spoil_length(folder: Path) -> tuple[list[str], str]:
    return ["train", "plan.toml", "--store", "store", "--set", "evaluate=[13]"], "length 13"


def spoil_device(folder: Path) -> tuple[list[str], str]:
    return ["train", "plan.toml", "--store", "store", "--device", "abacus"], "abacus"


def spoil_checkpoint(folder: Path) -> tuple[list[str], str]:
    from lengthlab.spec.plan import read_plan

    (run,) = read_plan(folder / "plan.toml")
    train_until_killed(run, folder / "store", step=5, checkpoint_seconds=-1.0)
    for path in checkpoint_steps(folder / "store", run).values():
        path.write_bytes(path.read_bytes()[:100])
    return ["train", "plan.toml", "--store", "store"], CHECKPOINT


@pytest.mark.parametrize("spoil", [spoil_specification, spoil_toml, spoil_checkpoint, spoil_length, spoil_device])
def test_bad_input_ends_in_one_line_that_says_what_and_where(
    spoil: Callable[[Path], tuple[list[str], str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    arguments, named = spoil(tmp_path)
    before = files_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["lengthlab", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lengthlab: ")]
    assert ended.value.code == 2
    assert len(said) == 1
    assert named in said[0]
    assert files_in(tmp_path) == before
