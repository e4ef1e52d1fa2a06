"""The tasks of long memory hide what they say they hide, where they say, and ask for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import memory_by_hand as by_hand
from lengthlab.cli.names import names_in
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.tasks import IGNORE, Batch, Mqar, Needles, Passkey, StateRecall, Task, VariableTracking
from lengthlab.tasks.card import card
from lengthlab.tasks.haystack import Haystack

quick = settings(max_examples=30)
seeds = st.integers(0, 2**31 - 1)
small = st.integers(1, 4)
passkeys = st.builds(Passkey, small, small, st.integers(2, 12), st.none() | st.floats(0, 1))
needle_tasks = st.builds(
    lambda noise, needles, less, digits, values, more: Needles(
        noise, needles, max(1, needles - less), digits, values, needles + more
    ),
    *(small, small, st.integers(0, 3), small, st.integers(2, 12), st.integers(0, 9)),
)
variable_tasks = st.builds(
    lambda noise, hops, chains, more, values, written: VariableTracking(
        noise, hops, chains, chains * (hops + 1) + more, values, written
    ),
    *(small, st.integers(1, 3), st.integers(2, 4), st.integers(0, 9), st.integers(2, 12), st.booleans()),
)
state_tasks = st.builds(lambda pointers, more: StateRecall(pointers + more, pointers), st.integers(4, 6), st.integers(0, 9))
Right = Callable[[list[str]], by_hand.Said]
TASKS: list[Task] = [Passkey(), Needles(), VariableTracking(), VariableTracking(written=True), Mqar(), StateRecall()]


def drawn(task: Task, size: int, lengths: tuple[int, int], seed: int = 0) -> tuple[Batch, list[list[str]]]:
    batch = task.sample(size, lengths, torch.Generator().manual_seed(seed))
    return batch, [task.decode(tokens_T) for tokens_T in batch.tokens_BT]


def asked(task: Task, batch: Batch, row: int, question: str) -> dict[int, str]:
    target = batch.target[question][row].tolist()
    return {place: task.words[token] for place, token in enumerate(target) if token != IGNORE}


def hold(task: Task, batch: Batch, sequences: list[list[str]], question: str, right: Right) -> None:
    """What is asked, and what `solve` says of sequences whose answers are spoilt, against an oracle."""
    for row, words in enumerate(sequences):
        said = right(words)
        assert asked(task, batch, row, question) == said
        assert all(words[place + 1] == word for place, word in said.items()) or task.labels
        spoilt = [word if place - 1 not in said or task.labels else "?" for place, word in enumerate(words)]
        assert task.solve(spoilt) == {question: tuple(said.values())}
        assert len(words) == int(batch.length_B[row])
        assert (batch.tokens_BT[row, len(words) :] == task.pad).all()


@given(passkeys, st.integers(0, 9), st.integers(0, 20), seeds)
@quick
def test_a_passkey_is_the_key_that_the_oracle_finds(task: Passkey, skip: int, more: int, seed: int) -> None:
    batch, sequences = drawn(task, 5, (task.shortest + skip, task.shortest + skip + more), seed)
    hold(task, batch, sequences, "passkey", lambda words: by_hand.passkey(words, task.digits))


@given(needle_tasks, st.integers(0, 9), st.integers(0, 20), seeds)
@quick
def test_needles_are_those_that_the_oracle_finds(task: Needles, skip: int, more: int, seed: int) -> None:
    batch, sequences = drawn(task, 5, (task.shortest + skip, task.shortest + skip + more), seed)
    hold(task, batch, sequences, "needles", lambda words: by_hand.needles(words, task.digits, task.needles, task.asked))


@given(variable_tasks, st.integers(0, 9), st.integers(0, 20), seeds)
@quick
def test_a_variable_has_the_value_that_the_oracle_carries_along(
    task: VariableTracking, skip: int, more: int, seed: int
) -> None:
    batch, sequences = drawn(task, 5, (task.shortest + skip, task.shortest + skip + more), seed)
    asks = (task.hops, task.chains, task.written)
    hold(task, batch, sequences, "variable-tracking", lambda words: by_hand.variable(words, *asks))


@given(st.integers(2, 20), st.integers(2, 20), st.integers(1, 4), st.floats(0, 1), seeds)
@quick
def test_mqar_labels_each_key_that_comes_again_with_its_value(
    keys: int, values: int, slots: int, power: float, seed: int
) -> None:
    task = Mqar(keys, values, slots, power)
    batch, sequences = drawn(task, 6, (1, task.longest), seed)
    per_pair = 2 + 2 * slots
    hold(task, batch, sequences, "mqar", lambda words: by_hand.mqar(words, (len(words) - 1) // per_pair))


@given(state_tasks, st.integers(1, 30), seeds)
@quick
def test_the_bit_is_that_of_the_address_that_the_oracle_follows_back(task: StateRecall, longest: int, seed: int) -> None:
    batch, sequences = drawn(task, 6, (1, longest), seed)
    for row, words in enumerate(sequences):
        question, said = by_hand.pointed(words, task.bits, task.pointers)
        other = "moved" if question == "still" else "still"
        assert asked(task, batch, row, question) == said
        assert asked(task, batch, row, other) == {}
        assert words[-1] == said[len(words) - 2]
        assert task.solve([*words[:-1], "?"]) == {question: (words[-1],)}
        assert len(words) == int(batch.length_B[row])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_it_says_of_itself_holds(task: Task) -> None:
    report = check_task(task, longest=8 if task.shortest == 1 else None)
    assert report.lengths[-1] > task.shortest
    assert {check.verdict for check in report.checks} == {"holds"}, report.checks


@pytest.mark.parametrize("name", ["passkey", "needles", "variable-tracking", "mqar", "state-recall", "group-recall"])
def test_the_line_over_the_card_says_what_a_length_counts(name: str) -> None:
    about = names_in("tasks", "Task")[name]
    assert any(told in about for told in ("n counts all tokens", "n counts the pairs", "n counts the swaps")), about


@pytest.mark.parametrize("task", [Passkey(), Needles(), VariableTracking()], ids=lambda task: task.name)
def test_the_length_of_a_haystack_is_the_number_of_its_tokens(task: Task) -> None:
    for length in (task.shortest, 100, 1000):
        batch, _ = drawn(task, 2, (length, length))
        assert batch.tokens_BT.shape == (2, length)
        assert batch.length_B.tolist() == [length, length]


@pytest.mark.parametrize("task", [Passkey(), Needles(), VariableTracking(), StateRecall()], ids=lambda task: task.name)
def test_a_million_tokens_are_drawn_at_once(task: Task) -> None:
    length = 500_000 if isinstance(task, StateRecall) else 1_000_000
    batch, [words] = drawn(task, 1, (length, length))
    assert len(words) == task.tokens(length) >= 1_000_000
    right = {question: tuple(asked(task, batch, 0, question).values()) for question in task.questions}
    assert task.solve(words) == {question: answer for question, answer in right.items() if answer}


def even(counts: Counter[int], places: int, total: int) -> bool:
    """Whether every place was hit as often as chance has it, give or take five standard deviations."""
    expected = total / places
    return sorted(counts) == list(range(places)) and all(abs(n - expected) < 5 * expected**0.5 for n in counts.values())


def test_a_key_stands_in_every_gap_of_the_noise_alike() -> None:
    task = Passkey(digits=1)
    for length in (task.shortest + 7, task.shortest):
        gaps = Counter(words.index("<key>") - 1 for words in drawn(task, 2000, (length, length))[1])
        assert even(gaps, 1 + length - task.shortest, 2000)


def test_every_needle_stands_in_every_gap_by_itself() -> None:
    task = Needles(digits=1, needles=2, asked=1)
    both: Counter[int] = Counter()
    for words in drawn(task, 3000, (task.shortest + 3,) * 2)[1]:
        first, second = (place for place, word in enumerate(words) if word == "<key>")
        both[4 * (first - 1) + second - 1 - 3] += 1
    for one in range(4):
        for other in range(one, 4):
            expected = 3000 * (1 if one == other else 2) / 16
            assert abs(both[4 * one + other] - expected) < 5 * expected**0.5


@pytest.mark.parametrize(("place", "before"), [(0, 0), (0.5, 50), (0.31, 31), (1, 100)])
def test_a_given_place_is_the_share_of_the_noise_before_the_key(place: float, before: int) -> None:
    task = Passkey(place=place)
    assert {words.index("<key>") - 1 for words in drawn(task, 5, (task.shortest + 100,) * 2)[1]} == {before}


def test_noise_is_of_its_alphabet_alike_and_shares_no_word_with_the_key() -> None:
    task = Passkey(noise=3, digits=2)
    letters = Counter(word for words in drawn(task, 200, (60, 60))[1] for word in words if word in "abc")
    assert even(Counter({"abc".index(letter): number for letter, number in letters.items()}), 3, letters.total())
    for wide in (Passkey(noise=400), Needles(noise=400, names=400), VariableTracking(noise=400, variables=400)):
        assert len(set(wide.words)) == len(wide.words)


def test_any_needles_are_asked_for_and_the_first_needle_no_more_than_the_others() -> None:
    task = Needles(needles=3, asked=2, digits=1, names=5)
    pairs: Counter[int] = Counter()
    for words in drawn(task, 1800, (task.shortest, task.shortest))[1]:
        hidden = [words[place + 1] for place, word in enumerate(words) if word == "<key>"]
        one, other = (hidden.index(words[place + 1]) for place, word in enumerate(words) if word == "<query>")
        pairs[2 * one + other - (other > one)] += 1
    assert even(pairs, 6, 1800)


def test_chains_are_mixed_in_every_order_alike() -> None:
    task = VariableTracking(hops=1, chains=2)
    orders: Counter[str] = Counter()
    for words in drawn(task, 1800, (task.shortest, task.shortest))[1]:
        given = [words[place + 2] for place, word in enumerate(words) if word == "<var>"]
        names = [words[place + 1] for place, word in enumerate(words) if word == "<var>"]
        first = names[0]
        orders["".join("1" if name == first or value == first else "2" for name, value in zip(names, given, strict=True))] += 1
    assert set(orders) == {"1122", "1212", "1221"}
    assert all(abs(number - 600) < 5 * 600**0.5 for number in orders.values())


def test_the_share_that_needs_no_tracking_is_as_stated_and_scored_on_the_card() -> None:
    task = StateRecall(bits=8)
    for length in (1, 3, 30):
        batch, _ = drawn(task, 3000, (length, length))
        still = int((batch.target["still"] != IGNORE).sum())
        assert abs(still / 3000 - task.stays(length)) < 0.05
    scores = card(task, trivial_length=9).trivial["no tracking: the bit at its first address"]
    assert scores["still"] == 1
    assert scores["moved"] == pytest.approx(0.5, abs=0.07)
    assert scores["all"] == pytest.approx(0.6, abs=0.06)


def test_slots_are_chosen_in_order_by_the_power_law() -> None:
    """Two pairs, four slots: the first pair's by weight, the second's by weight among the rest."""
    task, size = Mqar(keys=9, values=9, slots=2, power=0.25), 6000
    weight = [slot**-0.75 for slot in (1, 2, 3, 4)]
    met = Counter(
        tuple((words.index(words[1 + 2 * pair], 5) - 5) // 2 for pair in (0, 1)) for words in drawn(task, size, (2, 2))[1]
    )
    for one in range(4):
        for other in set(range(4)) - {one}:
            share = weight[one] / sum(weight) * weight[other] / (sum(weight) - weight[one])
            assert abs(met[one, other] - size * share) < 5 * (size * share) ** 0.5


def test_chance_is_one_over_the_answers() -> None:
    assert Passkey(digits=3, values=4).chances(99)["all"] == pytest.approx(4**-3)
    assert Needles(digits=3, values=4, asked=2).chances(99)["all"] == pytest.approx(4**-6)
    assert VariableTracking(values=4).chances(99)["all"] == pytest.approx(1 / 4)
    assert VariableTracking(values=4, hops=2, written=True).chances(99)["all"] == pytest.approx(1 / 4 / 26**2)
    assert Mqar(values=7).chances(3)["all"] == pytest.approx(1 / (7 * 6 * 5))
    assert Mqar(keys=7, values=7).chances(7)["all"] == pytest.approx(1 / 5040)
    assert StateRecall().chances(5) == {"moved": 0.5, "still": 0.5, "all": 0.5}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Passkey(noise=0), "task.noise must be at least 1, not 0"),
        (lambda: Passkey(values=1), "task.values must be at least 2, not 1"),
        (lambda: Passkey(digits=0), "task.digits must be at least 1, not 0"),
        (lambda: Passkey(digits=10**9), "task.digits must be at most 1,000, not 1000000000"),
        (lambda: Passkey(place=1.5), "task.place must be at least 0 and at most 1, not 1.5"),
        (lambda: Passkey(noise=10**15), "the words of task.noise = 1000000000000000 would need"),
        (lambda: Needles(asked=7), "task.asked = 7: there are 6 to ask for: task.needles"),
        (lambda: Needles(names=5), "task.needles = 6: their names differ, and there are 5 of them: task.names"),
        (lambda: VariableTracking(hops=6), "4 chains of 6 hops have 28 variables, and there are 26: task.variables"),
        (lambda: VariableTracking(chains=1), "task.chains must be at least 2, not 1"),
        (lambda: Mqar(values=1), "task.values must be at least 2, not 1"),
        (lambda: Mqar(slots=0), "task.slots must be at least 1, not 0"),
        (lambda: Mqar(power=2), "task.power must be at least 0 and at most 1, not 2"),
        (lambda: StateRecall(bits=4), "task.bits = 4: 5 pointers need as many addresses: task.pointers"),
        (lambda: StateRecall(pointers=7), "task.pointers must be at most 6, not 7"),
    ],
)
def test_what_makes_no_task_is_refused(make: Callable[[], Task], told: str) -> None:
    with pytest.raises(LabError) as refused:
        make()
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("task", [Passkey(), Needles(), VariableTracking()], ids=lambda task: task.name)
def test_a_sequence_too_short_for_what_is_hidden_is_refused(task: Haystack) -> None:
    told = rf"length 12: task '{task.name}' begins at {task.shortest} \(n counts all tokens: <bos>, "
    with pytest.raises(LabError, match=told):
        drawn(task, 2, (12, 50))


def test_more_pairs_than_keys_or_values_are_refused() -> None:
    told = r"length 6: task 'mqar' reaches 5 at most \(its keys and its values are distinct, and there are 9 and 5"
    with pytest.raises(LabError, match=told):
        drawn(Mqar(keys=9, values=5), 2, (1, 6))
