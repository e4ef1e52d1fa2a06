"""Accuracy by length: counted right, on the same samples for every model, in bounded memory, with honest intervals."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lengthlab.evaluation import accuracy as module
from lengthlab.evaluation.accuracy import DRAWN, accuracy, evaluation_set
from lengthlab.models import hybrid_block
from lengthlab.models.attention.positions import Positions
from lengthlab.registry import registered
from lengthlab.store.interval import wilson
from lengthlab.store.rows import Count
from lengthlab.tasks import ModuloRecall, Task
from small_runs import TASK


class Oracle(nn.Module):
    """Answers the questions it knows by reading the words, and says 0 to the others; keeps what it was shown."""

    def __init__(self, task: Task, knows: tuple[str, ...] = ("modulo", "recall")) -> None:
        super().__init__()
        self.task, self.knows = task, knows
        self.unused = nn.Parameter(torch.zeros(1))
        self.seen: list[Tensor] = []
        self.states: set[tuple[bool, bool]] = set()

    def forward(self, tokens_BT: Tensor) -> Tensor:
        self.seen.append(tokens_BT)
        self.states.add((self.training, torch.is_grad_enabled()))
        logits_BTV = torch.zeros(*tokens_BT.shape, self.task.vocabulary)
        for row, tokens_T in enumerate(tokens_BT):
            words = self.task.decode(tokens_T)
            answers = self.task.solve(words)
            places = {"modulo": words.index("<modulo>"), "recall": words.index("<recall>") + 1}
            for question, at in places.items():
                (say,) = answers[question] if question in self.knows else ("0",)
                logits_BTV[row, at, self.task.words.index(say)] = 1.0
        return logits_BTV


def right(counts: list[Count]) -> dict[tuple[int, str], int]:
    return {(count.length, count.question): count.correct for count in counts}


# Counts


def test_a_network_that_knows_the_answers_has_them_all_right() -> None:
    counts = accuracy(Oracle(TASK), TASK, [1, 5, 12], samples=60)
    assert right(counts) == {(n, question): 60 for n in (1, 5, 12) for question in ("modulo", "recall", "all")}
    assert {count.total for count in counts} == {60}


@pytest.mark.parametrize(("known", "other"), [("modulo", "recall"), ("recall", "modulo")])
def test_who_knows_one_question_has_both_right_where_the_other_is_guessed_right(known: str, other: str) -> None:
    counted = right(accuracy(Oracle(TASK, knows=(known,)), TASK, [4], samples=100))
    zeros = sum(TASK.solve(TASK.decode(tokens_T))[other] == ("0",) for tokens_T in samples(4, 100))
    assert 0 < zeros < 100
    assert counted == {(4, known): 100, (4, other): zeros, (4, "all"): zeros}


def test_both_counts_the_samples_with_every_answer_right() -> None:
    counted = right(accuracy(Oracle(TASK, knows=()), TASK, [4], samples=100))
    solved = [TASK.solve(TASK.decode(tokens_T)) for tokens_T in samples(4, 100)]
    assert counted[4, "all"] == sum(answers == {"modulo": ("0",), "recall": ("0",)} for answers in solved)
    assert counted[4, "all"] < min(counted[4, "modulo"], counted[4, "recall"])


# The samples


def samples(length: int, number: int, seed: int = 0) -> Tensor:
    return torch.cat([batch.tokens_BT for batch in evaluation_set(TASK, length, number, seed)])


def test_every_model_is_shown_the_same_samples_whatever_fits_into_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = samples(5, 120)[:, :-1]
    for tokens, knows in ((2**16, ("modulo", "recall")), (40, ("modulo",)), (1, ())):
        monkeypatch.setattr(module, "TOKENS", {"cpu": tokens})
        oracle = Oracle(TASK, knows)
        accuracy(oracle, TASK, [5], samples=120)
        assert torch.equal(torch.cat(oracle.seen), expected)
        assert max(tokens_BT.numel() for tokens_BT in oracle.seen) <= max(tokens, expected.shape[1])


@pytest.mark.parametrize("positions", registered(Positions))
def test_counts_do_not_depend_on_what_fits_into_one_pass(positions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = hybrid_block(width=8, blocks=1, heads=2, positions=positions).build(TASK.vocabulary)
    whole = accuracy(network, TASK, [3, 6], samples=70)
    monkeypatch.setattr(module, "TOKENS", {"cpu": 50})
    assert accuracy(network, TASK, [3, 6], samples=70) == whole


def test_what_has_no_room_is_measured_in_halves() -> None:
    class Cramped(Oracle):
        def forward(self, tokens_BT: Tensor) -> Tensor:
            if len(tokens_BT) > 3:
                raise torch.OutOfMemoryError
            return super().forward(tokens_BT)

    roomy, cramped = (kind(TASK, knows=("modulo",)) for kind in (Oracle, Cramped))
    assert accuracy(cramped, TASK, [5], samples=60) == accuracy(roomy, TASK, [5], samples=60)
    assert torch.equal(torch.cat(cramped.seen), torch.cat(roomy.seen))
    assert max(map(len, cramped.seen)) <= 3


def test_samples_differ_by_length_and_by_seed_and_by_nothing_else() -> None:
    torch.manual_seed(1)
    first = samples(6, 50)
    torch.manual_seed(2)
    assert torch.equal(samples(6, 50), first)
    assert not torch.equal(samples(6, 50, seed=1), first)
    assert not torch.equal(samples(5, 50)[:, :11], first[:, :11])
    assert len(first.unique(dim=0)) == 50


@given(draws=st.integers(1, 4), more=st.integers(1, 3))
@settings(max_examples=10)
def test_asking_for_more_samples_keeps_the_first_ones(draws: int, more: int) -> None:
    fewer = samples(3, draws * DRAWN)
    assert torch.equal(samples(3, (draws + more) * DRAWN)[: len(fewer)], fewer)


@given(number=st.integers(1, 130))
@settings(max_examples=20)
def test_as_many_samples_are_drawn_as_were_asked_for_and_all_of_the_length(number: int) -> None:
    drawn = samples(4, number)
    assert len(drawn) == number
    assert {len(TASK.decode(tokens_T)) for tokens_T in drawn} == {1 + 2 * 4 + 5}


# The network


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_network_in_the_mode_it_was_in(training: bool) -> None:
    oracle = Oracle(TASK).train(training)
    accuracy(oracle, TASK, [2], samples=10)
    assert oracle.training is training
    assert oracle.states == {(False, False)}


def test_a_network_that_fails_is_left_in_the_mode_it_was_in() -> None:
    oracle = Oracle(ModuloRecall(modulus=2, keys=2))  # does not know most of the words it will be shown
    with pytest.raises(IndexError):
        accuracy(oracle.train(), TASK, [5], samples=10)
    assert oracle.training


# Memory

FAR = """
import sys, torch
from lengthlab.device import settled
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.models import hybrid_block
from lengthlab.tasks import ModuloRecall

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

task = ModuloRecall(modulus=2, keys=1000)
network = hybrid_block(width=16, blocks=1, heads=2, mlp=1, positions="none", scores="log-n").build(task.vocabulary)
with settled(torch.device("cpu")):
    print(peak())
    for samples in (50, 150):
        assert accuracy(network, task, [1000], samples)[0].total == samples
        print(peak())
"""


def test_a_thousand_pairs_are_measured_in_memory_that_does_not_grow_with_the_samples() -> None:
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True, check=True)
    before, few, many = map(int, done.stdout.split())
    assert few - before < 600  # MB; the scores of 50 samples alone would take 1,600 if they were all kept
    assert many - few < 40


# Intervals


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_are_those_of_newcombe_1998(correct: int, total: int, low: float, high: float) -> None:
    # Statistics in Medicine 17, 857-872, Table I, method 3 (the score method without continuity correction).
    assert wilson(correct, total) == pytest.approx((low, high), abs=5e-5)


@given(total=st.integers(1, 10**6), share=st.floats(0, 1))
def test_an_interval_lies_within_0_and_1_and_holds_the_share(total: int, share: float) -> None:
    correct = round(share * total)
    low, high = wilson(correct, total)
    assert 0.0 <= low <= correct / total <= high <= 1.0
    assert low < high


@pytest.mark.parametrize("total", [200, 1000])
def test_an_interval_holds_the_share_when_none_or_all_are_right(total: int) -> None:
    # To the last bit: figures draw bars of length share - low and high - share, and a negative length is an error there.
    assert wilson(0, total)[0] == 0.0
    assert wilson(total, total)[1] == 1.0


@given(total=st.integers(1, 10**5), correct=st.integers(0, 10**5), times=st.integers(2, 50))
def test_more_samples_make_an_interval_narrower(total: int, correct: int, times: int) -> None:
    assume(correct <= total)
    (low, high), (closer_low, closer_high) = wilson(correct, total), wilson(times * correct, times * total)
    assert closer_high - closer_low < high - low


@given(total=st.integers(1, 10**5), correct=st.integers(0, 10**5))
def test_right_and_wrong_are_treated_alike(total: int, correct: int) -> None:
    assume(correct <= total)
    low, high = wilson(correct, total)
    assert wilson(total - correct, total) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_nothing_counted_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
