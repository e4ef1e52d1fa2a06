"""Many runs in one process: what each learns, who fails, what is kept. On a GPU its steps are captured, elsewhere not."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lengthlab import models
from lengthlab.device import settled
from lengthlab.errors import LabError, RunFailed, explain
from lengthlab.experiments.dat.arms import ARMS
from lengthlab.experiments.dat.profile import SHORT
from lengthlab.experiments.dat.runs import run_of as run_of_cell
from lengthlab.experiments.study import Arm
from lengthlab.kernels import BESIDE
from lengthlab.kernels.sizes import factors_of
from lengthlab.models import Lstm, Model, chain
from lengthlab.models.layout import Layout
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, delayed, end_to_end
from lengthlab.store import Store
from lengthlab.store.folder import CHECKPOINT, TRACEBACK
from lengthlab.tasks import ModuloRecall
from lengthlab.training import read_result, recorder, slot, state, train
from lengthlab.training.checkpoint import save_checkpoint
from lengthlab.training.data import StepData
from lengthlab.training.engine import Engine
from lengthlab.training.precision import BF16, FP32, PRECISIONS, TF32, Precision, precision_named
from lengthlab.training.recorder import Recorder
from lengthlab.training.result import claim
from lengthlab.training.state import TrainState
from lengthlab.training.stepper import EagerStepper, GraphStepper
from small_runs import folder_of, identical, learned, weights

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
TASK = ModuloRecall(modulus=3, values=4, keys=12)
WIDTH = 64 if ON_GPU else 8


def run_of(name: str = "attention-on-lstm", seed: int = 0, schedule: Schedule | None = None, **changes: object) -> Run:
    choices = {} if name == "lstm" else {"blocks": 2, "heads": 2}
    model = models.MODELS[name](width=WIDTH, **choices)
    rest = {"task": TASK, "model": model, "lengths": (1, 4), "batch": 8, "seed": seed, "evaluate": (4,)}
    return Run(schedule=schedule or delayed(60, joint=70, lr=1e-3), **rest | changes)  # type: ignore[arg-type]


def train_together(store: Path, *runs: Run, precision: Precision = FP32) -> dict[str, str]:
    """The failures."""
    failures: dict[str, str] = {}
    Engine(Store(store), DEVICE, precision, lambda run, error: failures.update({run.id: explain(error)})).train(runs)
    return failures


def assert_learned_alike(one: Path, other: Path, run: Run) -> None:
    """Bit for bit on a CPU; on a GPU, where sums are taken in any order, the losses nearly so."""
    if not ON_GPU:
        assert learned(one, run) == learned(other, run)
        assert identical(weights(one, run), weights(other, run))
    for mine, theirs in zip(learned(one, run), learned(other, run), strict=True):
        assert mine[:2] == theirs[:2]
        assert mine[2] == pytest.approx(theirs[2], abs=2e-3)


def test_runs_trained_together_learn_what_they_learn_alone(tmp_path: Path) -> None:
    runs = [run_of(), run_of(seed=1), run_of("lstm", schedule=end_to_end(80, lr=1e-3)), run_of("hybrid-block", batch=4)]
    assert train_together(tmp_path / "together", *runs) == {}
    for run in runs:
        train(run, tmp_path / "alone", str(DEVICE), "fp32")
        assert_learned_alike(tmp_path / "together", tmp_path / "alone", run)
        assert not (folder_of(tmp_path / "together", run).path / CHECKPOINT).exists()


@pytest.mark.parametrize("runs", [BESIDE - 1, BESIDE])
def test_a_run_knows_from_the_first_step_on_whether_it_shares_the_device(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[bool] = []
    answer_loss = state.answer_loss

    def answer_loss_and_layout(network: nn.Module, data: StepData, layout: Layout) -> Tensor:
        shared.append(layout.shared)
        return answer_loss(network, data, layout)

    monkeypatch.setattr(state, "answer_loss", answer_loss_and_layout)
    assert not train_together(tmp_path, *(run_of(seed=seed, schedule=end_to_end(8)) for seed in range(runs)))
    assert shared == [runs >= BESIDE] * len(shared)
    assert len(shared) >= 8 * runs


def test_a_phase_that_training_ends_is_over_at_the_same_step_in_the_engine(tmp_path: Path) -> None:
    # Any accuracy will do, so that the end does not hang on rounding; the phase begins and its limit lies inside a turn.
    goal = Mastered(accuracy=0.01, looks=2, every=100, limit=1_010)
    phases = Phase(30, 1e-3, off=("attention",)), Phase(goal, 1e-3, off=("attention",)), Phase(20, 1e-3)
    run, other = run_of(schedule=Schedule("mastered", phases)), run_of(seed=1)
    assert train_together(tmp_path / "together", run, other) == {}
    alone = train(run, tmp_path / "alone", str(DEVICE), "fp32")
    assert read_result(folder_of(tmp_path / "together", run)).ends == alone.ends == (30, 200, 220)
    assert_learned_alike(tmp_path / "together", tmp_path / "alone", run)


def test_a_run_that_explodes_leaves_a_record_and_the_others_go_on(tmp_path: Path) -> None:
    explodes, fine = run_of(schedule=Schedule("wild", (Phase(200, 1e30),))), run_of(seed=1)
    failures = train_together(tmp_path, explodes, fine)
    assert list(failures) == [explodes.id]
    assert "the loss is" in failures[explodes.id]
    assert folder_of(tmp_path, explodes).read_json("failure.json")["message"] == failures[explodes.id]
    assert not folder_of(tmp_path, explodes).finished
    assert read_result(folder_of(tmp_path, fine)).counts


def test_a_run_too_large_for_what_is_left_waits_until_another_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = run_of(schedule=end_to_end(60, lr=1e-3)), run_of("hybrid-block", schedule=end_to_end(60, lr=1e-3))
    enter, tries = slot.Slot.enter, []

    def enter_if_alone(self: slot.Slot) -> None:
        if self.run == large:
            tries.append(folder_of(tmp_path, small).finished)
            if not tries[-1]:
                raise torch.OutOfMemoryError("the GPU is full")
        enter(self)

    monkeypatch.setattr(slot.Slot, "enter", enter_if_alone)
    assert train_together(tmp_path, small, large) == {}
    assert tries == [False, True]
    assert folder_of(tmp_path, large).finished


def test_a_run_too_large_for_an_empty_gpu_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(self: slot.Slot) -> None:
        raise torch.OutOfMemoryError("the GPU is full")

    monkeypatch.setattr(slot.Slot, "enter", no_room)
    (said,) = train_together(tmp_path, run_of()).values()
    assert said.startswith("OutOfMemoryError: the GPU is full")


def test_an_interrupted_engine_keeps_every_run_and_goes_on_as_if_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_of(), run_of("lstm", schedule=end_to_end(160, lr=1e-3))]
    assert train_together(tmp_path / "through", *runs) == {}
    turn, turns = slot.Slot.turn, []

    def turn_and_press_ctrl_c(self: slot.Slot) -> None:
        turn(self)
        turns.append(self)
        if len(turns) == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(slot.Slot, "turn", turn_and_press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            train_together(tmp_path / "stopped", *runs)
    for run in runs:
        assert (folder_of(tmp_path / "stopped", run).path / CHECKPOINT).exists()
        assert not folder_of(tmp_path / "stopped", run).finished
    assert train_together(tmp_path / "stopped", *runs) == {}
    for run in runs:
        assert_learned_alike(tmp_path / "stopped", tmp_path / "through", run)


def test_a_failure_that_comes_with_ctrl_c_leaves_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, advance = run_of(schedule=end_to_end(160, lr=1e-3)), TrainState.advance

    def press_ctrl_c_and_fail(self: TrainState) -> float:
        if self.step < 5:
            return advance(self)
        if self.step == 5:
            signal.raise_signal(signal.SIGINT)
            return advance(self)
        raise RunFailed("the loss is nan at step 7")

    monkeypatch.setattr(TrainState, "advance", press_ctrl_c_and_fail)
    monkeypatch.setattr(slot, "stepper_for", EagerStepper)
    with pytest.raises(KeyboardInterrupt):
        train_together(tmp_path, run)
    kept = folder_of(tmp_path, run).read_json("failure.json")
    assert (kept["message"], kept["step"]) == ("the loss is nan at step 7", 6)
    assert "press_ctrl_c_and_fail" in (folder_of(tmp_path, run).path / TRACEBACK).read_text()


def test_a_run_from_a_cpu_goes_on_on_any_device(tmp_path: Path) -> None:
    run = run_of()
    state = TrainState(run, torch.device("cpu"))
    for _ in range(70):
        state.advance()
    Store(tmp_path).prepare()
    claim(folder_of(tmp_path, run), run)
    save_checkpoint(state, folder_of(tmp_path, run), 1.0)
    assert train_together(tmp_path, run) == {}
    assert folder_of(tmp_path, run).read_log()[-1]["step"] == run.steps


def test_a_run_that_was_killed_while_it_was_measured_is_measured_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, other = run_of(), run_of(seed=1)

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "accuracy", killed)
        with pytest.raises(KeyboardInterrupt):
            train_together(tmp_path, trained)
    gc.collect()  # a process that is killed leaves no lock
    assert train_together(tmp_path, trained, other) == {}
    assert all(folder_of(tmp_path, run).finished for run in (trained, other))


def test_a_run_that_another_process_has_is_left_to_it_and_not_trained_again(tmp_path: Path) -> None:
    theirs, ours = run_of(schedule=end_to_end(60, lr=1e-3)), run_of(seed=1)
    train(theirs, tmp_path, str(DEVICE), "fp32")
    log = folder_of(tmp_path, theirs).read_log()
    with folder_of(tmp_path, theirs).lock():
        released = threading.Timer(3.0, lambda: None)
        released.start()
        engine = threading.Thread(target=train_together, args=(tmp_path, theirs, ours))
        engine.start()
        released.join()
        assert folder_of(tmp_path, ours).read_log(), "waits for a lock instead of training what is free"
    engine.join()
    assert folder_of(tmp_path, ours).finished
    assert folder_of(tmp_path, theirs).read_log() == log


def test_a_run_resumed_in_another_precision_says_so(tmp_path: Path) -> None:
    run = run_of()
    state = TrainState(run, DEVICE, BF16)
    state.advance()
    Store(tmp_path).prepare()
    claim(folder_of(tmp_path, run), run)
    save_checkpoint(state, folder_of(tmp_path, run), 1.0)
    assert train_together(tmp_path, run) == {}
    assert folder_of(tmp_path, run).read_json("result.json")["precision"] == "bf16, then fp32"


def test_checkpoints_of_all_runs_come_on_a_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "FIRST_CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(recorder, "CHECKPOINT_SECONDS", 0.0)
    kept: list[tuple[str, int]] = []
    keep = Recorder.keep
    monkeypatch.setattr(Recorder, "keep", lambda self: (kept.append((self.state.run.id, self.state.step)), keep(self)))
    runs = [run_of(schedule=end_to_end(120, lr=1e-3)), run_of(seed=1, schedule=end_to_end(120, lr=1e-3))]
    assert train_together(tmp_path, *runs) == {}
    assert {(run.id, step) for run in runs for step in (50, 100, 120)} <= set(kept)


def test_a_model_of_somebody_elses_is_trained_beside_captured_ones(tmp_path: Path) -> None:
    own = run_of(model=Model("own", WIDTH, chain(Lstm(layers=2))), schedule=end_to_end(60, lr=1e-3), batch=2)
    assert TrainState(own, DEVICE).data.documents is None, "a batch smaller than its range of lengths"
    assert train_together(tmp_path, own, run_of()) == {}


# Precision


def test_the_precision_is_bf16_on_a_gpu_and_fp32_elsewhere_unless_named() -> None:
    assert precision_named(None, torch.device("cuda")) is BF16
    assert precision_named(None, torch.device("cpu")) is FP32
    assert [precision_named(name, torch.device("cuda")) for name in PRECISIONS] == [FP32, TF32, BF16]
    with pytest.raises(LabError, match="tf32 is a way of NVIDIA's GPUs, not of 'cpu': take fp32"):
        precision_named("tf32", torch.device("cpu"))
    with pytest.raises(LabError, match="unknown precision 'fp8'"):
        precision_named("fp8", DEVICE)


def test_factors_are_rounded_in_tf32_alone_and_only_inside() -> None:
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    with settled(DEVICE):
        before = [flag.allow_tf32 for flag in flags]
        for precision in PRECISIONS.values():
            with precision.products():
                assert [flag.allow_tf32 for flag in flags] == [precision is TF32] * 2
                assert factors_of(torch.ones(1)) == ("tf32" if precision is TF32 else "ieee")
            assert [flag.allow_tf32 for flag in flags] == before


def test_in_bf16_weights_and_adam_stay_fp32_and_the_compute_copy_follows() -> None:
    state = TrainState(run_of(schedule=end_to_end(9, lr=1e-3)), DEVICE, BF16)
    exact = TrainState(run_of(schedule=end_to_end(9, lr=1e-3)), DEVICE, FP32)
    for _ in range(3):
        assert state.advance() == pytest.approx(exact.advance(), abs=2e-2)
    for own, of in zip(state.network.parameters(), state.compute.parameters(), strict=True):
        assert own.dtype == torch.float32
        assert torch.equal(own.to(torch.bfloat16), of)
        assert {value.dtype for value in state.optimizer.state[own].values()} == {torch.float32}


# Captured steps


CELLS = {(arm.model, arm.training): arm for arm in ARMS if arm.name == "figure1"}


def first_hundred(cell: Arm) -> Run:
    """Of a cell as it is published, in size, batch and learning rates; of a delayed one, 50 of each phase."""
    run = run_of_cell(cell, SHORT)
    phases = run.schedule.phases[:2] if cell.training == "delayed" else run.schedule.phases[:1]
    steps = 100 // len(phases)
    return replace(run, schedule=Schedule(cell.training, tuple(replace(phase, length=steps) for phase in phases)))


def losses(*states: TrainState) -> list[list[float]]:
    """Of captured steps, side by side."""
    runs = [GraphStepper(state) for state in states]
    heard: list[list[float]] = [[] for _ in runs]
    while any(run.state.step < run.state.run.steps for run in runs):
        for run in runs:
            run.start()
        for run, mine in zip(runs, heard, strict=True):
            run.finish()
            mine += run._heard_K.tolist()
    return heard


@needs_gpu
@pytest.mark.parametrize("cell", CELLS.values(), ids=[" ".join(key) for key in CELLS])
def test_captured_steps_of_the_papers_size_lose_what_the_padded_reference_loses(cell: Arm) -> None:
    run = first_hundred(cell)
    with settled(DEVICE):
        reference = TrainState(run, DEVICE, FP32, padded=True)
        expected = [reference.advance() for _ in range(100)]
        for precision, tolerance in ((FP32, 2e-3), (TF32, 2e-2), (BF16, 5e-2)):
            (found,) = losses(TrainState(run, DEVICE, precision))
            assert found == pytest.approx(expected, abs=tolerance), precision.name


@needs_gpu
def test_runs_of_the_papers_size_lose_together_what_they_lose_alone() -> None:
    runs = [first_hundred(cell) for cell in CELLS.values()]
    with settled(DEVICE):
        together = losses(*(TrainState(run, DEVICE, BF16) for run in runs))
        for run, mine in zip(runs, together, strict=True):
            (alone,) = losses(TrainState(run, DEVICE, BF16))
            assert mine == pytest.approx(alone, abs=5e-2), run.model.name


@needs_gpu
def test_a_delayed_part_does_not_move_by_a_bit_while_captured_steps_pass_it_by() -> None:
    state = TrainState(run_of(schedule=delayed(50, joint=50, lr=1e-3)), DEVICE, BF16)
    before = {name: parameter.detach().clone() for name, parameter in state.network.named_parameters()}
    captured = GraphStepper(state)
    captured.start()
    captured.finish()
    still = {name for name, parameter in state.network.named_parameters() if torch.equal(parameter, before[name])}
    assert still == {name for name in before if name.startswith("body.attention.")}
    captured.start()
    captured.finish()
    still = {name for name, parameter in state.network.named_parameters() if torch.equal(parameter, before[name])}
    assert not still


def test_settings_do_not_load_the_compiler() -> None:
    """It takes seconds, and more memory than a small model."""
    script = "import sys, torch; from lengthlab.device import settled\nwith settled(torch.device('cpu')): pass\n"
    script += "print('torch._inductor' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
