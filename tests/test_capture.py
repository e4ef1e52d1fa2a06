"""Steps that are captured on a GPU are the steps that are made one by one: for our parts, for anybody's, for every schedule.

Where there is none, each is made once, and held to what capture needs of it: that nobody asks for a number on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import lengthlab as ll
from lengthlab.device import settled
from lengthlab.models import Dropout, Lstm, Model, chain, residual
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule, delayed, end_to_end
from lengthlab.spec.source import load_reference
from lengthlab.store import Store
from lengthlab.tasks import Addition, Minesweeper, ModuloRecall, Passkey
from lengthlab.training.checkpoint import load_checkpoint, save_checkpoint
from lengthlab.training.precision import FP32
from lengthlab.training.result import claim
from lengthlab.training.state import TrainState
from lengthlab.training.stepper import GraphStepper

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
on_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a GPU")
EXAMPLES = Path(__file__).parent.parent / "examples"
TASK = ModuloRecall(modulus=3, values=4, keys=16)


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with settled(DEVICE):
        yield


def example(reference: str, **given: Any) -> Any:
    made: Any = load_reference(reference, EXAMPLES)
    return made(**given)


def run_of(model: Any, schedule: Schedule | None = None, **changes: Any) -> Run:
    rest: dict[str, Any] = {"task": TASK, "lengths": (1, 8), "batch": 32, "evaluate": (8,)}
    return Run(model=model, schedule=schedule or end_to_end(100, lr=1e-3), **rest | changes)


@dataclass(frozen=True)
class Wordless(ModuloRecall):
    """A task that does not say how many tokens it draws, so that its batches are padded."""

    def tokens(self, length: int) -> None:  # type: ignore[override]
        return None


def long_memory() -> Run:
    """As the study has it: rows of documents, attention later, then the chunks of other samples in the memory."""
    phases = delayed(40, joint=30, lr=1e-3).phases
    crowded = Schedule("crowded", (*phases, Phase(30, 1e-3, distractors=15)))
    return run_of(CHUNKS(weights="softmax", encoder=0), crowded)


PASSKEY: dict[str, Any] = {"task": Passkey(noise=3, digits=2), "lengths": (12, 60)}
"""More lengths than samples, so that batches are padded."""
CHUNKS = partial(ll.models.lstm_hsa, 64, heads=2, chunk=4, chunks=2)
HYBRID = ll.models.hybrid_block(64, blocks=1, heads=2)
RUNS = {
    "answers as long as the input": run_of(HYBRID, task=example("copy_task.py:Copy")),
    "positions of the task's own": run_of(example("addition_task.py:coupled"), task=example("addition_task.py:Addition")),
    "rotary positions of the task's own": run_of(HYBRID, task=example("addition_task.py:Addition")),
    "a decoder that starts at random": run_of(ll.models.gpt2(64, blocks=1, heads=2, position_ids=64)),
    "a decoder with rotary positions": run_of(ll.models.llama(64, blocks=1, heads=2)),
    "a decoder with coupled positions": run_of(
        ll.models.t5_decoder(64, heads=2, position_ids=64), task=Addition(positions="coupled", ids=64)
    ),
    "two ids a token": run_of(
        ll.models.t5_decoder(64, heads=2, position_ids=16, tables=2), task=Minesweeper(positions="coupled", ids=16)
    ),
    "a recurrence of one's own": run_of(example("gru_hybrid.py:gru_hybrid"), delayed(60, joint=40, lr=1e-3)),
    **{
        f"{name} under attention": run_of(ll.models.hybrid_block(64, recurrence=name, blocks=1, heads=2))
        for name in ("gru", "rnn", "slstm", "mlstm", "mamba2", "gated-deltanet", "deltaproduct", "bilinear")
    },
    "chunks over an lstm, padded": run_of(CHUNKS(), **PASSKEY),
    "chunks over mamba2, padded": run_of(CHUNKS(recurrence="mamba2"), **PASSKEY),
    "long memory": long_memory(),
    "padded batches": run_of(HYBRID, task=Wordless(3, 4, 16)),
    "documents longer than a tile": run_of(HYBRID, task=ModuloRecall(3, 4, keys=64), lengths=(40, 64)),
    "a rate that falls": run_of(HYBRID, end_to_end(100, lr=ll.Cosine(1e-3, warm_up=20))),
    "a rate by part": run_of(HYBRID, end_to_end(100, lr={"attention": ll.Linear(1e-3), "rest": 1e-3})),
    "decay and clipping": run_of(HYBRID, optimizer=ll.AdamW(beta2=0.95, decay=0.1, clip=0.5)),
    "lengths by phase": run_of(HYBRID, Schedule("longer", (Phase(55, 1e-3, lengths=(1, 4)), Phase(45, 1e-3, lengths=(2, 12))))),
    "learned positions": run_of(ll.models.hybrid_block(64, blocks=1, heads=2, positions="learned")),
    "randomized positions": run_of(ll.models.hybrid_block(64, blocks=1, heads=2, positions="randomized")),
    "dropout": run_of(Model("forgetful", 64, chain(residual(Lstm()), Dropout(0.5), residual(Lstm())))),
    "pre-norm and gates": run_of(
        ll.models.hybrid_block(64, blocks=1, heads=2, norm="rms-norm", pre_norm=True, activation="silu", gated=True)
    ),
}


def captured_losses(stepper: GraphStepper, steps: int) -> list[float]:
    heard: list[float] = []
    state = stepper.state
    while state.step < steps:
        first = state.step
        stepper.start()
        stepper.finish()
        heard += stepper._heard_K[first % 50 :][: state.step - first].tolist()
    return heard


class Asked(TorchDispatchMode):
    """What the host would have to wait for the device for."""

    QUESTIONS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "repeat_interleave.Tensor")

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).removeprefix("aten.")
        picks = name.startswith("index.") and any(x is not None and x.dtype == torch.bool for x in args[1])
        if picks or name.startswith(self.QUESTIONS):
            self.questions.append(name)
        return func(*args, **(kwargs or {}))


CHECKED = ("positions of the task's own", "a decoder with coupled positions", "two ids a token")
"""Positions are looked at on a CPU, where that costs nothing."""


@pytest.mark.parametrize("name", [name for name in RUNS if name not in CHECKED])
def test_no_step_of_any_phase_asks_for_a_number_on_the_way(name: str) -> None:
    state = TrainState(RUNS[name], torch.device("cpu"), FP32)
    for end in (0, *RUNS[name].ends[:-1]):
        state.step = end
        state.enter_phase()
        data = state.step_data(end)
        with Asked() as asked:
            loss = state.backward(data)
        assert asked.questions == []
        assert loss.isfinite()


@on_gpu
@pytest.mark.parametrize("name", RUNS)
def test_captured_steps_lose_what_single_steps_lose(name: str) -> None:
    run = RUNS[name]
    single, state = TrainState(run, DEVICE, FP32), TrainState(run, DEVICE, FP32)
    expected = [single.advance() for _ in range(100)]
    stepper = GraphStepper(state)
    found = captured_losses(stepper, 100)
    assert stepper._graph is not None, state.notes
    assert found == pytest.approx(expected, abs=2e-3)
    counts = zip(single.network.named_buffers(), state.network.buffers(), strict=True)
    for (buffer, mine), theirs in counts:
        assert torch.equal(mine, theirs), f"{buffer} was counted by a warm-up"


@on_gpu
@pytest.mark.parametrize("name", ["learned positions", "randomized positions", "a decoder that starts at random", "dropout"])
def test_a_captured_run_that_was_resumed_draws_what_it_would_have_drawn(name: str, tmp_path: Path) -> None:
    run = RUNS[name]
    through = captured_losses(GraphStepper(TrainState(run, DEVICE, FP32)), 100)
    folder = Store(tmp_path).folder(run.id)
    Store(tmp_path).prepare()
    stopped = TrainState(run, DEVICE, FP32)
    captured_losses(GraphStepper(stopped), 50)
    claim(folder, run)
    save_checkpoint(stopped, folder, 1.0)
    resumed = TrainState(run, DEVICE, FP32)
    load_checkpoint(resumed, folder)
    assert captured_losses(GraphStepper(resumed), 100) == pytest.approx(through[50:], abs=2e-3)


@on_gpu
def test_two_captured_runs_with_dropout_draw_beside_each_other_what_they_draw_alone() -> None:
    runs = [replace(RUNS["dropout"], seed=seed) for seed in (0, 1)]
    alone = [captured_losses(GraphStepper(TrainState(run, DEVICE, FP32)), 50) for run in runs]
    steppers = [GraphStepper(TrainState(run, DEVICE, FP32)) for run in runs]
    for stepper in steppers:
        stepper.start()
    for stepper in steppers:
        stepper.finish()
    for stepper, expected in zip(steppers, alone, strict=True):
        assert stepper._heard_K.tolist() == pytest.approx(expected, abs=2e-3)


OPENINGS = {"by chance": ll.Chance(0.5), "a window": ll.Window(((0, 2), (30, 4))), "layers": ll.Layers(every=20)}


@on_gpu
@pytest.mark.parametrize("way", OPENINGS)
def test_steps_in_which_something_opens_are_made_one_by_one_and_the_others_captured(way: str) -> None:
    run = run_of(ll.models.hybrid_block(64, blocks=2, heads=2), ll.opening(OPENINGS[way], 60, joint=40, lr=1e-3))
    single, state = TrainState(run, DEVICE, FP32), TrainState(run, DEVICE, FP32)
    expected = [single.advance() for _ in range(100)]
    stepper = GraphStepper(state)
    found = []
    while state.step < 60:
        assert not stepper.busy
        stepper.start()
        found.append(stepper.finish())
    assert stepper._graph is None
    found += captured_losses(stepper, 100)
    assert stepper._graph is not None, state.notes
    assert found == pytest.approx(expected, abs=2e-3)


class Asking(nn.Module):
    """Somebody's module that asks the GPU for a number, which no captured step can."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD * (1.0 if float(x_BTD.detach().abs().max()) > 0 else 0.0)


@dataclass(frozen=True)
class AskingPart:
    def build(self, width: int) -> nn.Module:
        return Asking()


@on_gpu
def test_a_step_that_cannot_be_captured_is_made_by_itself_and_says_so() -> None:
    run = run_of(Model("asking", 64, chain(Lstm(), AskingPart())))
    single, state = TrainState(run, DEVICE, FP32), TrainState(run, DEVICE, FP32)
    stepper = GraphStepper(state)
    found = []
    for _ in range(10):
        stepper.start()
        found.append(stepper.finish())
    assert found == pytest.approx([single.advance() for _ in range(10)], abs=2e-3)
    assert any("cannot be captured because of Asking, " in note for note in state.notes)
    other = TrainState(RUNS["padded batches"], DEVICE, FP32)
    assert len(captured_losses(GraphStepper(other), 50)) == 50, "a run beside it can still be captured"
