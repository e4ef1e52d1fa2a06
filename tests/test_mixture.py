"""Several tasks as one: shares, words, questions, and how each is counted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from command import Call
from lengthlab.errors import LabError, RunFailed
from lengthlab.evaluation.accuracy import accuracy, evaluation_set
from lengthlab.models import AdaptiveTemperature, lstm, transformer
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, delayed, end_to_end
from lengthlab.tasks import IGNORE, Batch, Copy, Mixture, ModuloRecall, Needles, Passkey, RunningSum, modulo, recall
from lengthlab.tasks.batch import join
from lengthlab.tasks.card import card
from lengthlab.training import train
from lengthlab.training.data import Data
from lengthlab.training.mastery import Mastery
from lengthlab.training.state import TrainState
from small_runs import CPU, small_model

TASKS = (modulo(modulus=3, values=4, keys=8), recall(values=4, keys=8))


def names(mixture: Mixture, size: int, lengths: tuple[int, int] = (2, 2)) -> list[str]:
    batch = mixture.sample(size, lengths, torch.Generator().manual_seed(0))
    return [mixture.decode(tokens_T)[0] for tokens_T in batch.tokens_BT]


@given(seed=st.integers(0, 2**31), tag=st.booleans(), share=st.integers(1, 5))
@settings(max_examples=20)
def test_every_sample_is_one_of_its_task(seed: int, tag: bool, share: int) -> None:
    mixture = Mixture(TASKS, (share, 1), tag)
    batch = mixture.sample(12, (1, 5), torch.Generator().manual_seed(seed))
    for row, tokens_T in enumerate(batch.tokens_BT):
        words = mixture.decode(tokens_T)
        assert len(words) == batch.length_B[row]
        asked = {q: [mixture.words[t] for t in target_BT[row].tolist() if t != IGNORE] for q, target_BT in batch.target.items()}
        answers = {question: answer for question, answer in asked.items() if answer}
        assert len(answers) == 1
        assert {question: list(answer) for question, answer in mixture.solve(words).items()} == answers


@pytest.mark.parametrize("tag", [True, False])
def test_tasks_of_as_many_tokens_lie_in_a_row_and_learn_what_they_learn_padded(tag: bool) -> None:
    mixture = Mixture((modulo(3, 4, 8), RunningSum(3, 4, 8)), tag=tag)
    run = Run(mixture, lstm(width=8), end_to_end(2), lengths=(1, 4), batch=8)
    row, padded = TrainState(run, CPU), TrainState(run, CPU, padded=True)
    assert row.data.documents is not None
    assert padded.data.documents is None
    for _ in range(3):
        assert row.advance() == pytest.approx(padded.advance(), rel=1e-5)


def test_it_knows_its_tokens_where_a_task_is_drawn_longer_than_it_is_asked() -> None:
    mixture = Mixture((Passkey(), Needles()), measured=(1, 0))
    assert mixture.tasks[1].shortest > 13
    assert mixture.tokens(13) is None
    assert mixture.tokens(100) == int(mixture.sample(1, (100, 100), torch.Generator().manual_seed(0)).length_B[0]) == 101


def test_a_phase_that_has_lengths_of_its_own_for_a_part_is_read_padded() -> None:
    mixture = Mixture((modulo(3, 4, 8), RunningSum(3, 4, 8)))
    schedule = Schedule("longer", (Phase(1, 1e-3, mixture_lengths=((), (1, 6))), Phase(1, 1e-3)))
    state = TrainState(Run(mixture, lstm(width=8), schedule, lengths=(1, 4), batch=8), CPU)
    rows = []
    for _ in range(2):
        rows.append(state.data.documents is not None)
        state.advance()
    assert rows == [False, True]


def test_shares_hold_in_any_stretch() -> None:
    found = names(Mixture(TASKS, (3, 1)), 40)
    assert Counter(found) == {"<task:modulo>": 30, "<task:recall>": 10}
    assert all(abs(Counter(found[start : start + 16])["<task:recall>"] - 4) <= 1 for start in range(24))
    assert set(names(Mixture(TASKS, (1, 0)), 9)) == {"<task:modulo>"}


@pytest.mark.parametrize(("weights", "asked"), [((97, 3), 30), ((85, 15), 150), ((995, 5), 5)])
def test_a_rare_task_has_its_share_of_what_is_measured(weights: tuple[float, ...], asked: int) -> None:
    """Samples are drawn 50 at a time, of which a share may be less than one."""
    draws = evaluation_set(Mixture(TASKS, weights), 2, samples=1000)
    found = sum(int((batch.target["recall/recall"] != IGNORE).any(dim=1).sum()) for batch in draws)
    assert abs(found - asked) <= 4


def test_a_question_that_was_not_drawn_has_no_accuracy(tmp_path: Path) -> None:
    run = Run(Mixture(TASKS, (1, 0)), small_model(), end_to_end(2), lengths=(1, 3), batch=4, evaluate=(3,))
    result = train(run, tmp_path)
    with pytest.raises(LabError, match="no sample of length 3 asks 'recall/recall'"):
        result.accuracy(3, "recall/recall")


def test_a_phase_that_waits_for_what_is_not_asked_fails_in_words() -> None:
    phase = Phase(Mastered("recall/recall", every=50, limit=100), 1e-2)
    run = Run(Mixture(TASKS, (1 - 1e-9, 1e-9)), small_model(), Schedule("waits", (phase,)), lengths=(1, 3), batch=4)
    with pytest.raises(RunFailed, match="waits for 'recall/recall', which none of"):
        Mastery(run).look(run.network(), 50)


def test_a_temperature_is_fitted_to_a_question_of_the_second_task(tmp_path: Path) -> None:
    scores = AdaptiveTemperature(question="recall/recall", times=(1,))
    model = transformer(width=8, blocks=1, heads=2, scores=scores)
    run = Run(Mixture(TASKS), model, end_to_end(2), lengths=(1, 2), batch=4, evaluate=(2,))
    assert train(run, tmp_path).accuracy(2, "recall/recall") >= 0


def test_a_question_is_counted_over_the_samples_that_ask_it() -> None:
    mixture = Mixture(TASKS, (3, 1))
    counts = accuracy(lstm(8).build(mixture.vocabulary), mixture, [4], samples=40)
    assert {count.question: count.total for count in counts} == {"modulo/modulo": 30, "recall/recall": 10, "all": 40}
    by_question = {count.question: count.correct for count in counts}
    assert by_question["all"] == by_question["modulo/modulo"] + by_question["recall/recall"]


def test_a_phase_has_shares_of_its_own_and_a_run_keeps_them(tmp_path: Path) -> None:
    schedule = Schedule("turning", (Phase(2, 1e-2, mixture=(1, 0)), Phase(2, 1e-2, mixture=(0, 1)), Phase(2, 1e-2)))
    run = Run(Mixture(TASKS), small_model(), schedule, lengths=(1, 3), batch=4, evaluate=(3,))
    assert Run.from_json(run.to_json()) == run
    state, seen = TrainState(run, CPU), []
    for step in range(6):
        state.enter_phase()
        first_B = state.step_data(step).tokens_BT[:, 0]
        seen.append({run.task.words[int(token)] for token in first_B})
        state.advance()
    assert seen == [{"<task:modulo>"}] * 2 + [{"<task:recall>"}] * 2 + [{"<task:modulo>", "<task:recall>"}] * 2
    assert {count.question for count in train(run, tmp_path).counts} == {"modulo/modulo", "recall/recall", "all"}


def test_the_state_of_a_mixture_is_that_of_its_tasks() -> None:
    run = Run(Mixture(TASKS), small_model(), delayed(5, joint=5), lengths=(1, 3), batch=4)
    assert run.schedule.phases[0].asks == ("modulo/modulo",)


@pytest.mark.parametrize(
    ("tasks", "weights", "text"),
    [
        (TASKS[:1], (), "two tasks or more"),
        ((TASKS[0], TASKS[0]), (), "names of their own"),
        (TASKS, (1, -1), "task.weights must be"),
        (TASKS, (0, 0), "task.weights must be"),
        (TASKS, (1, 1, 1), "task.weights must be"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(tasks: tuple[ModuloRecall, ...], weights: tuple[float, ...], text: str) -> None:
    with pytest.raises(LabError, match=text):
        Mixture(tasks, weights)


def test_shares_for_a_task_that_is_no_mixture_are_refused() -> None:
    with pytest.raises(LabError, match="a phase has a mixture, and task 'modulo' is none"):
        Run(TASKS[0], small_model(), Schedule("wrong", (Phase(2, mixture=(1, 1)),)), lengths=(1, 3), batch=4)


def test_every_task_of_a_mixture_is_drawn_at_every_length() -> None:
    for size, lengths in ((10, (1, 8)), (8, (1, 4))):
        mixture, seen = Mixture(TASKS, tag=True), set()
        for _ in range(1):
            n_B = torch.cat([torch.arange(size) * (lengths[1]) // size + 1 for _ in range(50)])
            batch = mixture.draw(n_B, torch.Generator().manual_seed(0))
            seen |= {(mixture.decode(t)[0], int(n)) for t, n in zip(batch.tokens_BT, n_B, strict=True)}
        assert len(seen) == 2 * lengths[1]


def test_a_step_that_asks_nothing_of_what_counts_changes_the_loss_by_nothing() -> None:
    mixture = Mixture(TASKS, (1, 9))
    run = Run(mixture, lstm(8), Schedule("rare", (Phase(30, 1e-3, asks=("modulo/modulo",)),)), lengths=(1, 2), batch=2)
    state = TrainState(run, CPU)
    losses = [state.advance() for _ in range(30)]
    assert 0.0 in losses
    assert max(losses) > 0


def test_a_phase_that_asks_only_what_is_never_drawn_is_refused() -> None:
    phase = Phase(5, 1e-3, asks=("modulo/modulo",), mixture=(0.0, 1.0))
    with pytest.raises(LabError, match="no sample of it does"):
        Run(Mixture(TASKS), lstm(8), Schedule("never", (phase,)), lengths=(1, 2), batch=2)


def test_tasks_with_and_without_position_ids_mix() -> None:
    one = Batch(torch.ones(2, 3, dtype=torch.int64), {}, torch.tensor([3, 3]))
    other = replace(one, tokens_BT=torch.ones(1, 4, dtype=torch.int64), position_BT=torch.tensor([[7, 8, 9, 10]]))
    joined = join([one, other]).position_BT
    assert joined is not None
    assert joined.tolist() == [[0, 1, 2, 0], [0, 1, 2, 0], [7, 8, 9, 10]]


def test_a_mixture_has_a_card() -> None:
    made = card(Mixture(TASKS))
    assert set(made.trivial["always the commonest answer"]) == {"modulo/modulo", "recall/recall", "all"}


SHORT_AND_LONG = Mixture(TASKS, (1, 3), lengths=((), (6, 8)))


def test_a_helper_is_trained_at_lengths_of_its_own_and_measured_at_those_of_the_run(tmp_path: Path) -> None:
    run = Run(SHORT_AND_LONG, small_model(), end_to_end(2), lengths=(1, 3), batch=8, evaluate=(3,))
    assert Run.from_json(run.to_json()) == run
    data = Data(run, run.schedule.phases[0], run.network(), CPU)
    for tokens_T in data.block(0).steps.tokens_BT.flatten(0, 1):
        tag, *words = SHORT_AND_LONG.decode(tokens_T)
        pairs = sum(word.startswith("k") for word in words) - (tag == "<task:recall>")
        assert pairs in (range(6, 9) if tag == "<task:recall>" else range(1, 4))
    (batch,) = evaluation_set(SHORT_AND_LONG, 3, samples=8)
    assert set(batch.length_B.tolist()) == {10, 11}  # <task:…> <bos>, three pairs, a question
    assert (run.trained, run.drawn) == ((1, 8), (1, 8))


def test_a_phase_has_lengths_of_its_own_for_each_task() -> None:
    phases = (Phase(2, 1e-2, mixture_lengths=((2, 2), ())), Phase(2, 1e-2))
    run = Run(replace(SHORT_AND_LONG, measured=(1, 0)), small_model(), Schedule("two", phases), lengths=(1, 3), batch=4)
    assert Run.from_json(run.to_json()) == run
    first, second = (run.task_in(phase) for phase in phases)
    assert isinstance(first, Mixture)
    assert isinstance(second, Mixture)
    assert first.ranges((1, 3)) == {"modulo": (2, 2), "recall": (1, 3)}
    assert second.ranges((1, 3)) == {"modulo": (1, 3), "recall": (6, 8)}
    assert (run.trained, run.drawn) == ((1, 3), (1, 8))


def test_what_is_measured_has_shares_of_its_own_and_need_not_be_what_is_trained() -> None:
    mixture = Mixture((modulo(keys=32), recall(keys=4)), (1, 9), measured=(1, 0))
    assert mixture.longest == 32
    assert mixture.chances(9)["all"] == 0.1
    network = lstm(8).build(mixture.vocabulary)
    counts = accuracy(network, mixture, [9], samples=40)
    assert {count.question: count.total for count in counts} == {"modulo/modulo": 40, "all": 40}
    alone = accuracy(network, mixture.alone("recall"), [4], samples=40)
    assert {count.question: count.total for count in alone} == {"recall/recall": 40, "all": 40}
    with pytest.raises(LabError, match="no task of the mixture is called 'recal'"):
        mixture.alone("recal")


def test_a_mixture_without_the_new_fields_is_kept_as_it_was() -> None:
    assert set(Run(Mixture(TASKS), lstm(8), end_to_end(2), lengths=(1, 2)).to_json()["task"]) == {
        "kind",
        "tasks",
        "weights",
        "tag",
    }
    phase = Run(Mixture(TASKS), lstm(8), end_to_end(2), lengths=(1, 2)).to_json()["schedule"]["phases"][0]
    assert "mixture_lengths" not in phase


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"lengths": ((1, 2),)}, r"task.lengths must be \[shortest, longest\] or \[\] for each of 2 tasks"),
        ({"lengths": ((), (3, 1))}, r"task.lengths of 'recall' must be \[shortest, longest\], not \[3, 1\]"),
        ({"lengths": ((), (1, 99))}, "length 99: task 'recall' reaches 16 at most"),
        ({"lengths": (1, 2)}, "task.lengths must be"),
        ({"measured": (0, 0)}, "task.measured must be a share"),
        ({"measured": (1,)}, "task.measured must be a share"),
    ],
)
def test_lengths_and_shares_that_cannot_be_are_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(LabError, match=text):
        Mixture((modulo(keys=16), recall(keys=16)), **fields)


def test_a_helper_that_has_not_the_lengths_it_would_be_trained_on_is_refused() -> None:
    mixture = Mixture((modulo(keys=32), recall(keys=4)), measured=(1, 0))
    with pytest.raises(LabError, match=r"length 9: task 'recall' reaches 4 at most .* mixture_lengths"):
        Run(mixture, lstm(8), end_to_end(2), lengths=(1, 9))
    Run(replace(mixture, lengths=((), (1, 4))), lstm(8), end_to_end(2), lengths=(1, 9), evaluate=(18,))


def test_a_file_mixes_a_users_task_with_ours_and_its_phases_have_shares_and_lengths(tmp_path: Path) -> None:
    (tmp_path / "parity_task.py").write_text((Path(__file__).parents[1] / "examples" / "parity_task.py").read_text())
    (tmp_path / "run.toml").write_text(
        """
        [run]
        model = { name = "lstm", width = 8 }
        lengths = [1, 3]
        batch = 4
        evaluate = [5]
        [run.task]
        name = "mixture"
        tasks = ["parity_task.py:Parity", { name = "recall", keys = 16 }]
        weights = [1, 2]
        tag = false
        lengths = [[], [4, 6]]
        measured = [1, 0]
        [run.schedule]
        kind = "schedule"
        name = "two shares"
        [[run.schedule.phases]]
        length = 2
        mixture = [1, 1]
        mixture_lengths = [[], [7, 7]]
        [[run.schedule.phases]]
        length = 2
        """
    )
    (run,) = read_plan(tmp_path / "run.toml")
    assert run.drawn == (1, 7)
    assert [run.task_in(phase).lengths for phase in run.schedule.phases] == [((), (7, 7)), ((), (4, 6))]  # type: ignore[attr-defined]
    assert {count.question for count in train(run, tmp_path).counts} == {"parity/parity", "all"}


def test_one_task_of_a_mixture_is_measured_alone_and_nothing_of_it_is_kept(call: Call, tmp_path: Path) -> None:
    mixed = Mixture((*TASKS, Copy()), measured=(1, 0, 0))
    result = train(Run(mixed, small_model(), end_to_end(3), (1, 3), batch=6, evaluate=(3,)), tmp_path / "run")
    kept = {path: path.read_bytes() for path in result.folder.path.iterdir()}
    words = ("evaluate", result.folder.path, "--samples", 40, "--lengths")
    told = json.loads(call(*words, "9,4", "--part", "copy", "--json").out)  # further than the other tasks have keys
    assert [(row["length"], row["question"], row["total"]) for row in told if row["question"] != "all"] == [
        (9, "copy/copy", 40),
        (4, "copy/copy", 40),
    ]
    assert {row["task"] for row in told} == {"modulo+recall+copy, copy alone"}
    right = {count.length: count.correct for count in accuracy(result.network(), mixed.alone("copy"), [4, 9], 40)}
    assert {row["length"]: row["correct"] for row in told} == right
    assert all(row["chance"] == Copy().chances(row["length"])["all"] for row in told)
    assert "copy alone" in call(*words, 4, "--part", "copy").out
    call(*words, 4, "--part", "copi").refused("has no task 'copi'; did you mean 'copy'?")
    call(*words, 9, "--part", "recall").refused("reaches 8 at most")
    assert {path: path.read_bytes() for path in result.folder.path.iterdir()} == kept
    other = train(Run(TASKS[0], small_model(), end_to_end(1), (1, 3), batch=4, evaluate=(3,)), tmp_path / "other").folder
    call("evaluate", other.path, "--lengths", 3, "--part", "modulo").refused("is of task 'modulo', which is no mixture")


def test_a_run_is_measured_on_its_task_with_another_value_and_nothing_of_it_is_kept(call: Call, tmp_path: Path) -> None:
    task = Passkey(noise=3, digits=2)
    result = train(Run(task, small_model(), end_to_end(3), (7, 9), batch=6, evaluate=(9,)), tmp_path)
    kept = {path: path.read_bytes() for path in result.folder.path.iterdir()}
    words = ("evaluate", result.folder.path, "--samples", 40, "--lengths", "12,9")
    told = json.loads(call(*words, "--set", "place=0", "--json").out)
    counts = accuracy(result.network(), replace(task, place=0.0), [12, 9], 40)
    assert {(row["length"], row["question"]): row["correct"] for row in told} == {
        (count.length, count.question): count.correct for count in counts
    }
    assert {row["task"] for row in told} == {"passkey, place=0"}
    call(*words, "--set", "places=0").refused("unknown key 'task.places'; did you mean 'place'?")
    call(*words, "--set", "name=other").refused("unknown key 'task.name'")
    call(*words, "--set", "place=2").refused("task.place", "not 2")
    call(*words, "--set", "noise=4").refused("with noise=4 the task would have other words than run")
    call(*words, "--set", "place=0", "--part", "passkey").refused("give one of them")
    assert {path: path.read_bytes() for path in result.folder.path.iterdir()} == kept
