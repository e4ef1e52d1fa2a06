"""A phase that training itself ends: when, what follows, and that looking changes nothing of what is learned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import nn

import lengthlab as ll
from command import Call
from lengthlab import registry
from lengthlab.device import settled
from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.experiments import Arm, Size, Study
from lengthlab.launch.progress import Progress
from lengthlab.models import Attention, Lstm, Model, Randomized, chain
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, delayed
from lengthlab.spec.seeds import seed_for
from lengthlab.training import read_result, train
from lengthlab.training.forecast import steps_done
from lengthlab.training.state import TrainState
from own_parts import Forgetful
from small_runs import (
    CPU,
    LR,
    Recording,
    checkpoint_steps,
    counts,
    folder_of,
    identical,
    learned,
    small_run,
    train_until_killed,
    weights,
)

ANY = 0.01
"""An accuracy that every look has."""
GOAL = Mastered("modulo", accuracy=0.8, looks=2, every=50, limit=300)
RUN = small_run(delayed(GOAL, joint=30, lr=LR), batch=16, seed=1)
ENDS = (150, 180)
"""Where the phases of RUN end: `modulo` is right in 0.55, 0.87 and 1.00 of the samples after 50, 100 and 150 steps."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with settled(CPU):
        yield


def ended_at(run: Run) -> tuple[int, ...]:
    """The steps that the phases of a run end at when it is trained."""
    state, ends = TrainState(run, CPU), []
    while state.clock < run.steps:
        phase = state.phase
        state.advance()
        state.look()
        if state.phase is not phase or state.clock == run.steps:
            ends.append(state.step)
    return tuple(ends)


# When it ends


@pytest.fixture(scope="module")
def right() -> Mapping[tuple[int, int], float]:
    """By steps and length, how often `modulo` is right: the first phase by itself, answers compared one by one."""
    run = small_run(delayed(400, joint=1, lr=LR))
    state, found = TrainState(run, CPU), {}
    while state.step < 400:
        state.advance()
        if state.step % 50 == 0:
            found |= {(state.step, length): share_right(state.network, run, length) for length in (3, 6)}
    return found


@torch.no_grad()
def share_right(network: nn.Module, run: Run, length: int) -> float:
    right = []
    for batch in evaluation_set(run.task, length, 200, seed=2):
        said_BT = network(batch.tokens_BT).argmax(dim=-1)
        for tokens_T, said_T in zip(batch.tokens_BT, said_BT, strict=True):
            words = run.task.decode(tokens_T)
            asked = words.index("<modulo>")
            right.append((run.task.words[int(said_T[asked])],) == run.task.solve(words)["modulo"])
    return sum(right) / len(right)


def first_row(right: Mapping[tuple[int, int], float], goal: Mastered) -> int:
    """The step of the look that completes a row of good ones."""
    looks = [right[step, 3 * goal.times] >= goal.accuracy for step in range(goal.every, 401, goal.every)]
    row = next(end for end in range(goal.looks, len(looks) + 1) if all(looks[end - goal.looks : end]))
    return row * goal.every


@pytest.mark.parametrize(
    "goal",
    [
        Mastered(accuracy=0.54, looks=1, every=50),
        Mastered(accuracy=0.54, looks=2, every=50),  # the first look is good, the next is not
        Mastered(accuracy=0.98, looks=2, every=50),
        Mastered(accuracy=0.8, looks=1, every=100),
        Mastered(accuracy=0.8, looks=1, every=50, times=2),
        Mastered(accuracy=0.9, looks=1, every=50, times=2),
    ],
)
def test_attention_opens_right_after_the_look_that_completes_the_row(
    right: Mapping[tuple[int, int], float], goal: Mastered
) -> None:
    expected = first_row(right, goal)
    assert ended_at(small_run(delayed(goal, joint=1, lr=LR))) == (expected, expected + 1)


def test_the_looks_of_these_tests_are_not_all_alike(right: Mapping[tuple[int, int], float]) -> None:
    assert right[50, 3] >= 0.54 > right[100, 3]
    assert right[300, 3] >= 0.9 > right[300, 6]


@pytest.mark.parametrize(("looks", "every"), [(1, 50), (3, 50), (2, 100)])
def test_a_phase_is_never_over_before_so_many_looks(looks: int, every: int) -> None:
    goal = Mastered(accuracy=ANY, looks=looks, every=every)
    assert ended_at(small_run(delayed(goal, joint=2, lr=LR))) == (looks * every, looks * every + 2)


def test_each_phase_counts_its_own_looks() -> None:
    # The first is over at its limit, one good look before it would be anyway; the second begins between two looks.
    goals = Mastered(accuracy=ANY, looks=3, every=50, limit=120), Mastered("recall", accuracy=ANY, looks=2, every=50)
    assert ended_at(small_run(Schedule("twice", (*(Phase(goal, LR) for goal in goals), Phase(10, LR))))) == (120, 200, 210)


def test_a_run_whose_last_phase_is_mastered_is_over(tmp_path: Path) -> None:
    run = small_run(Schedule("short", (Phase(20, LR), Phase(Mastered("recall", ANY, looks=1, every=50), LR))))
    assert train(run, tmp_path).ends == (20, 50)
    assert folder_of(tmp_path, run).read_log()[-1]["step"] == 50


# What follows


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("trained")
    with settled(CPU):
        train(RUN, store)
    return store


def with_first(first: int) -> Run:
    """The same run, the length of its first phase fixed in advance."""
    return replace(RUN, schedule=delayed(first, joint=30, lr=LR))


def assert_learned_the_same(store: Path, run: Run, other: Run) -> None:
    assert identical(weights(store, run), weights(store, other))
    assert counts(store, run) == counts(store, other)
    assert learned(store, run) == learned(store, other)


def test_a_run_whose_first_phase_ends_at_a_step_is_the_run_that_was_given_so_many(trained: Path) -> None:
    train(with_first(ENDS[0]), trained)
    assert_learned_the_same(trained, RUN, with_first(ENDS[0]))


def test_a_question_that_is_not_mastered_delays_to_the_limit_and_not_a_step_longer(tmp_path: Path) -> None:
    run = replace(RUN, schedule=delayed(replace(GOAL, accuracy=1, limit=120), joint=30, lr=LR))
    assert train(run, tmp_path).ends == (120, 150)
    train(with_first(120), tmp_path)
    assert_learned_the_same(tmp_path, run, with_first(120))


@pytest.mark.parametrize("part", [Forgetful(), Attention(heads=2, positions=Randomized())])
def test_looking_draws_nothing_that_training_would_have_drawn(part: Any, tmp_path: Path) -> None:
    model = Model("random", 8, chain(Lstm(), part))
    lengths = Mastered(accuracy=ANY, looks=2, every=50, times=2), 100
    runs = [small_run(Schedule("random", (Phase(length, LR), Phase(10, LR))), model=model) for length in lengths]
    for run in runs:
        train(run, tmp_path)
    assert_learned_the_same(tmp_path, *runs)


def test_a_probe_beyond_the_training_range_is_never_learned_from_nor_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recording, "asked", [])
    goal = Mastered(accuracy=ANY, looks=2, every=50, times=2)
    run = small_run(delayed(goal, joint=20, lr=LR), task=Recording(2, 4, 12), evaluate=(6,))
    train(run, tmp_path)
    data = range(seed_for("data", run.seed), seed_for("data", run.seed) + run.steps)
    learned_from = {length for lengths, seed in Recording.asked if seed in data for length in lengths}
    others = [seed for lengths, seed in Recording.asked if seed not in data and lengths == [6] * 50]
    assert learned_from == {1, 2, 3}
    assert others[:8] == [seed_for("evaluation", 2, 6, start) for start in range(0, 200, 50)] * 2
    assert others[8:] == [seed_for("evaluation", 0, 6, start) for start in range(0, 1000, 50)]


# What is kept


def test_the_result_tells_the_steps_made_and_where_each_phase_ended(trained: Path) -> None:
    data = folder_of(trained, RUN).read_json("result.json")
    assert (data["steps"], data["ends"]) == (ENDS[1], list(ENDS))
    assert read_result(folder_of(trained, RUN)).ends == ENDS


def test_the_result_of_a_fixed_schedule_ends_its_phases_as_they_were_given_even_one_of_before(tmp_path: Path) -> None:
    run = small_run(delayed(5, joint=3, lr=LR))
    assert train(run, tmp_path).ends == (5, 8)
    folder = folder_of(tmp_path, run)
    folder.write_json("result.json", {key: value for key, value in folder.read_json("result.json").items() if key != "ends"})
    assert read_result(folder).ends == (5, 8)


def test_the_log_tells_from_the_last_look_on_what_was_not_needed(trained: Path) -> None:
    lines = [(line["step"], line["phase"], line.get("skipped")) for line in folder_of(trained, RUN).read_log()]
    assert lines == [(50, 1, None), (100, 1, None), (150, 1, 150), (180, 2, 150)]


@pytest.mark.parametrize("checkpoint_seconds", [-1.0, 1e9])
def test_a_killed_run_ends_its_phase_where_an_unkilled_one_does(
    tmp_path: Path, trained: Path, checkpoint_seconds: float
) -> None:
    for step in (99, 120, 150, 165):  # before a look, between the two of the row, after the second, with attention open
        train_until_killed(RUN, tmp_path, step, checkpoint_seconds)
    assert train(RUN, tmp_path).ends == ENDS
    assert identical(weights(tmp_path, RUN), weights(trained, RUN))
    assert learned(tmp_path, RUN) == learned(trained, RUN)


def test_a_checkpoint_of_before_is_taken_up(tmp_path: Path) -> None:
    run = with_first(40)
    train_until_killed(run, tmp_path / "killed", step=60, checkpoint_seconds=-1.0)
    path, second = checkpoint_steps(tmp_path / "killed", run).values()
    second.unlink()
    with safe_open(path, framework="pt") as file:
        note = json.loads(file.metadata()["lengthlab"])
    assert (note.pop("looks"), note.pop("spared"), len(note.pop("sha256"))) == (0, [0, 0], 64)
    path.write_bytes(save(load_file(path), metadata={"lengthlab": json.dumps(note)}))
    train(run, tmp_path / "killed")
    train(run, tmp_path / "unkilled")
    assert identical(weights(tmp_path / "killed", run), weights(tmp_path / "unkilled", run))


def test_a_run_with_a_question_to_be_mastered_is_data(tmp_path: Path) -> None:
    assert Run.from_json(json.loads(json.dumps(RUN.to_json()))) == RUN
    assert RUN.to_json()["schedule"]["phases"][0]["length"]["kind"] == "mastered"
    assert ll.Mastered is Mastered


# What people see


def watched(store: Path, log: Sequence[Mapping[str, Any]], capsys: pytest.CaptureFixture[str]) -> str:
    """What progress says of RUN with such a log."""
    folder = folder_of(store, RUN)
    folder.write_json("run.json", RUN.to_json())
    for line in log:
        folder.append_log({"loss": 1.0, "samples_per_second": 16.0, **line})
    with folder.lock(), Progress([RUN], store, "training"):
        pass
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"step": 100, "phase": 1}, ("phase 1/2, attention off", "step 100/330 at most", "time left about 3 min 50 s")),
        ({"step": 150, "skipped": 150, "phase": 1}, ("phase 2/2 ", "step 150/180 ", "time left 30 s or more\n")),
        ({"step": 170, "skipped": 150, "phase": 2}, ("phase 2/2 ", "step 170/180 ", "time left 10 s\n")),
        ({"step": 180, "skipped": 150, "phase": 2}, ("measuring", "step 180/180 ")),
        ({"step": 300, "phase": 1}, ("phase 2/2 ", "step 300/330 ", "time left 30 s or more\n")),
    ],
)
def test_progress_knows_what_was_not_needed(
    line: dict[str, int], words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = watched(tmp_path, [line], capsys)
    assert all(word in said for word in words), said
    assert ("at most" in said) == ("at most" in "".join(words))


def test_a_finished_run_shows_the_steps_that_it_made(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress([RUN], trained, "training"):
        pass
    assert "finished  step 180/180  loss" in capsys.readouterr().err


def test_a_forecast_takes_what_was_not_needed_for_done(trained: Path) -> None:
    assert steps_done([RUN], str(trained)) == {RUN.id: RUN.steps}


def test_a_list_of_runs_says_that_the_steps_are_a_bound(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = (Arm("bound", "lstm", "modulo-recall", "delayed"), Arm("fixed", "lstm", "modulo-recall", "delayed"))
    made = {arms[0]: RUN, arms[1]: with_first(150)}
    study = Study("mine", "Mine", "Which?", lambda arm, size: made[arm], (Size("cpu", (1, 3), (3,)),), arms=arms)
    monkeypatch.setitem(registry._MAKERS[Study], "mine", lambda: study)
    first, second = call("experiments", "mine").out.splitlines()[-2:]
    assert first.endswith("330 steps of 16 samples at most")
    assert second.endswith("180 steps of 16 samples")
