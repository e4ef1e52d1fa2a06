"""Ways of opening as data: in a phase of a run, in its file, in training, and after a kill."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lengthlab import read_plan
from lengthlab.errors import LabError
from lengthlab.gradual import Chance, Gradual, Layers, Window
from lengthlab.models import hybrid_block
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, end_to_end, opening
from lengthlab.training import train
from lengthlab.training.precision import precision_named
from lengthlab.training.state import TrainState
from small_runs import (
    CPU,
    LR,
    counts,
    identical,
    learned,
    small_run,
    start_worker,
    train_until_killed,
    weights,
)
from test_resume import CHECKPOINT_ALWAYS, DIE, DIE_AT_STEP

EXAMPLE = Path(__file__).parent.parent / "examples" / "opening.toml"
MODEL = hybrid_block(width=8, blocks=2, heads=2, mlp=1, positions="none", scores="log-n")
WAYS = {
    "layers": Layers(every=20, first="top"),
    "chance": Chance([(0, 0.3), (30, 0.6)], until=55),
    "window": Window([(0, 1), (30, 3)], until=55),
    "a window by chance": Window(2, p=0.5),
}


def gradual_run(opens: Gradual, first: int = 60, joint: int = 20, **changes: Any) -> Run:
    return small_run(opening(opens, first, joint=joint, lr=LR), **{"model": MODEL} | changes)


def attention(state: TrainState) -> dict[str, Tensor]:
    named = state.network.named_parameters()
    return {name: parameter.detach().clone() for name, parameter in named if ".attend." in name}


def moved(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    """Blocks whose attention has moved."""
    return {name.split(".")[2] for name in before if not torch.equal(before[name], after[name])}


# As data


@pytest.mark.parametrize("way", WAYS)
def test_a_run_with_it_goes_to_json_and_back(way: str) -> None:
    run = gradual_run(WAYS[way])
    again = Run.from_json(json.loads(json.dumps(run.to_json())))
    assert again == run
    assert again.id == run.id
    assert again.schedule.phases[0].opens == WAYS[way]


def test_every_way_has_an_id_of_its_own_and_a_phase_without_one_keeps_its_old_content() -> None:
    plain = small_run(end_to_end(80, lr=LR), model=MODEL)
    assert "opens" not in json.dumps(plain.to_json())
    assert len({gradual_run(way).id for way in WAYS.values()} | {plain.id}) == len(WAYS) + 1


def test_lists_of_toml_and_tuples_are_one_content() -> None:
    assert Chance([[0, 1], [5, 0.5]]) == Chance(((0, 1.0), (5, 0.5)))  # type: ignore[arg-type]
    assert Window([[0, 4]], p=1).windows == ((0, 4),)  # type: ignore[arg-type]
    assert Layers(until=[3, 6]).until == (3, 6)  # type: ignore[arg-type]


def test_the_example_has_five_runs_of_five_ways() -> None:
    runs = read_plan(EXAMPLE)
    assert [run.schedule.name for run in runs] == ["end-to-end", "delayed", "by-chance", "by-window", "by-layers"]
    assert len({run.steps for run in runs}) == 1  # a fair comparison
    assert runs[2].schedule.phases[0].opens == Chance(((0, 0.1), (500, 0.25)))
    assert runs[4].schedule.phases[0].opens == Layers(every=400, first="top")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Layers(), "say one of opens.every and opens.until"),
        (lambda: Layers(every=5, until=(1, 2)), "say one of opens.every and opens.until"),
        (lambda: Layers(until=(5, 2)), "layers open one after another, not at steps [5, 2]"),
        (lambda: Layers(until=(0, 2)), "opens.until must be at least 1, not 0"),
        (lambda: Layers(every=5, first="left"), "opens.first must be 'bottom' or 'top', not 'left'"),  # type: ignore[arg-type]
        (lambda: Chance(1.5), "opens.p must be from 0 to 1, not 1.5"),
        (lambda: Chance(((5, 0.5), (5, 0.6))), "the steps of opens.p go up from pair to pair, not [5, 5]"),
        (lambda: Chance(0.5, parts=()), "opens.parts names no part"),
        (lambda: Chance(0.5, until=-1), "opens.until must be at least 0, not -1"),
        (lambda: Window(0), "opens.windows must be at least 1, not 0"),
        (lambda: Window(4, p=0), "opens.p must be above 0 and at most 1, not 0"),
        (lambda: Phase(5, off=("attention",), opens=Chance(0.5)), "leave out off or opens"),
        (lambda: Phase(5, opens="chance"), "opens must be a Layers, Chance or Window"),  # type: ignore[arg-type]
        (lambda: opening(0.5, first=5), "schedule.opens must be a Layers, Chance or Window, not a float"),  # type: ignore[arg-type]
        (lambda: gradual_run(Chance(0.5, parts=("attentoin",))), "no part of the model is named 'attentoin'"),
        (lambda: gradual_run(Layers(until=(1, 2, 3))), "there are 2 layers to open, and until has 3 steps"),
        (lambda: gradual_run(Layers(every=5, parts=("attention",))), "has no number in its name"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_trained(make: Callable[[], object], told: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


# In training


def test_layers_learn_from_the_step_on_at_which_they_open() -> None:
    state = TrainState(gradual_run(Layers(until=(3, 5), first="top"), first=6), CPU)
    seen = []
    for _ in range(7):
        before = attention(state)
        state.advance()
        seen.append(moved(before, attention(state)))
    assert seen == [set()] * 3 + [{"1"}] * 2 + [{"0", "1"}] * 2


def test_a_look_back_opens_with_the_layer_that_opens_first() -> None:
    model = hybrid_block(8, blocks=2, heads=2, local=2)
    state = TrainState(gradual_run(Layers(until=(3, 5), first="top"), first=6, model=model), CPU)
    seen = []
    for _ in range(6):
        before = attention(state)
        state.advance()
        after = attention(state)
        seen.append({name.split(".attend")[0] for name in before if not torch.equal(before[name], after[name])})
    back, low, high = "body.attention.residual", "body.attention.repeat.0.residual", "body.attention.repeat.1.residual"
    assert seen == [set()] * 3 + [{back, high}] * 2 + [{back, low, high}]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_by_chance_attention_moves_in_some_steps_and_its_optimizer_state_is_kept(precision: str) -> None:
    state = TrainState(gradual_run(Chance(0.5), first=24, joint=2), CPU, precision_named(precision, CPU))
    seen = []
    for _ in range(26):
        before = attention(state)
        state.advance()
        seen.append(bool(moved(before, attention(state))))
    assert 5 < sum(seen[:24]) < 19
    assert all(seen[24:])
    (clock,) = {
        float(state.optimizer.state[each]["step"]) for name, each in state.network.named_parameters() if "attend" in name
    }
    assert clock == sum(seen)


def test_chance_one_is_end_to_end_and_chance_zero_is_off_bit_for_bit(tmp_path: Path) -> None:
    def trained(phase: Phase) -> dict[str, Tensor]:
        state = TrainState(small_run(Schedule("one", (phase,)), model=MODEL), CPU)
        for _ in range(20):
            state.advance()
        return dict(state.network.state_dict())

    assert identical(trained(Phase(20, LR, opens=Chance(1.0))), trained(Phase(20, LR)))
    assert identical(trained(Phase(20, LR, opens=Chance(0.0))), trained(Phase(20, LR, off=("attention",))))
    assert identical(trained(Phase(20, LR, opens=Window(1000))), trained(Phase(20, LR)))
    assert not identical(trained(Phase(20, LR, opens=Window(1))), trained(Phase(20, LR)))


def test_other_seeds_draw_otherwise() -> None:
    def drawn(seed: int) -> list[bool]:
        state = TrainState(gradual_run(Chance(0.5), first=24, seed=seed), CPU)
        before, seen = attention(state), []
        for _ in range(24):
            state.advance()
            before, seen = attention(state), [*seen, bool(moved(before, attention(state)))]
        return seen

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_killed_anywhere_ends_as_if_it_had_never_been_killed(way: str, tmp_path: Path) -> None:
    run = gradual_run(WAYS[way])
    train(run, tmp_path / "whole")
    for step in (13, 45):
        train_until_killed(run, tmp_path / str(step), step, checkpoint_seconds=0.0)
        train(run, tmp_path / str(step))
        assert identical(weights(tmp_path / str(step), run), weights(tmp_path / "whole", run))
        assert counts(tmp_path / str(step), run) == counts(tmp_path / "whole", run)
        assert learned(tmp_path / str(step), run) == learned(tmp_path / "whole", run)


def test_so_does_one_whose_process_is_killed(tmp_path: Path) -> None:
    run = gradual_run(WAYS["chance"])
    train(run, tmp_path / "whole", device="cpu")  # as the worker, wherever there is a GPU
    worker = start_worker(tmp_path / "killed", run, before=f"{DIE}\n{CHECKPOINT_ALWAYS}{DIE_AT_STEP.format(step=37)}")
    assert worker.wait() == -signal.SIGKILL
    train(run, tmp_path / "killed", device="cpu")
    assert identical(weights(tmp_path / "killed", run), weights(tmp_path / "whole", run))


def test_in_a_phase_that_training_ends_steps_count_from_its_own_start() -> None:
    easy = Mastered("modulo", accuracy=0.01, looks=1, every=50, limit=200)
    phases = (Phase(easy, LR), Phase(30, LR, opens=Layers(until=(2, 4))))
    state = TrainState(small_run(Schedule("two", phases), model=MODEL), CPU)
    while state.run.phase_at(state.clock) == 0:
        state.advance()
        state.look()
    assert state.step == 50
    seen = []
    for _ in range(5):
        before = attention(state)
        state.advance()
        seen.append(moved(before, attention(state)))
    assert seen == [set()] * 2 + [{"0"}] * 2 + [{"0", "1"}]


def test_a_finished_run_is_measured_with_what_was_on_in_its_last_step(tmp_path: Path) -> None:
    def measured(opens: Gradual) -> set[str]:
        """What is off in the network of its result."""
        result = train(small_run(Schedule("one", (Phase(10, LR, opens=opens),)), model=MODEL), tmp_path)
        off = {
            name for name, module in result.network().named_modules() if getattr(vars(module).get("forward"), "is_off", False)
        }
        return {name.removeprefix("body.attention.").removesuffix(".residual.attend") for name in off}

    assert measured(Layers(until=(5, 50))) == {"1"}
    assert measured(Layers(until=(5, 9))) == set()
    assert measured(Window(((20, 4),))) == {"0", "1"}
    assert measured(Window(4)) == set()
