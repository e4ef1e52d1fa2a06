"""Several tasks as one: shares, words, questions, and how each is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthlab.errors import LabError, RunFailed
from lengthlab.evaluation.accuracy import accuracy, evaluation_set
from lengthlab.models import AdaptiveTemperature, lstm, transformer
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, delayed, end_to_end
from lengthlab.tasks import IGNORE, Batch, Mixture, ModuloRecall, modulo, recall
from lengthlab.tasks.batch import join
from lengthlab.tasks.card import card
from lengthlab.training import train
from lengthlab.training.mastery import Mastery
from lengthlab.training.state import TrainState
from small_runs import CPU, small_model

TASKS = (modulo(modulus=3, values=4, keys=8), recall(values=4, keys=8))


def names(mixture: Mixture, size: int, lengths: tuple[int, int] = (2, 2)) -> list[str]:
    batch = mixture.sample(size, lengths, torch.Generator().manual_seed(0))
    return [mixture.decode(tokens_T)[0] for tokens_T in batch.tokens_BT]


@given(seed=st.integers(0, 2**31), tag=st.booleans(), share=st.integers(1, 5))
@settings(max_examples=20, deadline=None)
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
