"""Majority, sort, parity and binary addition answer as an oracle does, of samples drawn as they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from math import comb

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from answers_by_hand import added, between, even_or_odd, in_order, most, most_of_turns, rewritten
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.registry import registered
from lengthlab.tasks import (
    IGNORE,
    BinaryAddition,
    BinaryMajority,
    BinaryMajorityInterleave,
    Majority,
    Parity,
    Sort,
    Task,
)

Answer = Callable[[list[str]], list[str]]
quick = settings(max_examples=60)
NAMES = ("majority", "binary-majority", "binary-majority-interleave", "sort", "parity", "binary-addition")


@st.composite
def counting(pick: st.DrawFn) -> tuple[Task, Answer]:
    """Any of them, and how its sequences are answered by hand."""
    period = pick(st.integers(1, 5))
    one = lambda symbols: [most(symbols)]  # noqa: E731
    several = partial(most_of_turns, period=period)
    answers: list[tuple[Task, Answer]] = [
        (Majority(pick(st.integers(2, 30))), partial(rewritten, answer=one)),
        (BinaryMajority(), partial(rewritten, answer=one)),
        (BinaryMajorityInterleave(period), partial(rewritten, answer=several)),
        (Sort(pick(st.integers(2, 60))), partial(rewritten, answer=in_order)),
        (Parity(), partial(rewritten, answer=even_or_odd)),
        (BinaryAddition(), added),
    ]
    return pick(st.sampled_from(answers))


def read_of(words: list[str]) -> int:
    """How many tokens a sequence reads before it is asked."""
    return words.index("=") if "=" in words else words.index("<sep>") - 1


@given(counting(), st.integers(0, 20), st.integers(0, 40), st.integers(0, 2**31 - 1))
@quick
def test_everything_asked_is_what_the_oracle_says(case: tuple[Task, Answer], skip: int, more: int, seed: int) -> None:
    task, by_hand = case
    limit = task.longest or 100
    shortest = min(task.shortest + skip, limit)
    batch = task.sample(5, (shortest, min(shortest + more, limit)), torch.Generator().manual_seed(seed))
    for tokens_T, target_T, length in zip(batch.tokens_BT, batch.target[task.name], batch.length_B.tolist(), strict=True):
        words, right = task.decode(tokens_T), by_hand(task.decode(tokens_T))
        assert words[-len(right) :] == right
        assert [task.words[token] for token in target_T if token != IGNORE] == right
        assert (target_T != IGNORE).nonzero()[-1] == length - 2
        assert len(words) == length == int((tokens_T != 0).sum())
        assert task.solve([*words[: -len(right)], *["?"] * len(right)]) == {task.name: tuple(right)}


@given(counting(), st.integers(0, 40), st.integers(0, 2**31 - 1))
@quick
def test_a_length_counts_what_is_read(case: tuple[Task, Answer], more: int, seed: int) -> None:
    task, _ = case
    n = min(task.shortest + more, task.longest or 100)
    batch = task.sample(3, (n, n), torch.Generator().manual_seed(seed))
    period = task.period if isinstance(task, BinaryMajorityInterleave) else 1
    assert {read_of(task.decode(tokens_T)) for tokens_T in batch.tokens_BT} == {n - n % period}


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_itself_holds(name: str) -> None:
    task: Task = registered(Task)[name]()
    assert task.name == name
    report = check_task(task)
    assert {check.verdict for check in report.checks} == {"holds"}, report.checks


def sequences(task: Task, size: int, n: int) -> list[list[str]]:
    return [task.decode(tokens_T) for tokens_T in task.sample(size, (n, n), torch.Generator().manual_seed(0)).tokens_BT]


def alike(counts: Counter[int] | Counter[str], expected: set[int] | set[str], total: int) -> bool:
    each = total / len(expected)
    return set(counts) == expected and all(abs(count - each) < 5 * each**0.5 for count in counts.values())


@pytest.mark.parametrize(("n", "ones"), [(5, {0, 1, 2, 3, 4, 5}), (6, {0, 1, 2, 4, 5, 6})])
def test_a_majority_of_bits_has_any_number_of_ones_but_half(n: int, ones: set[int]) -> None:
    found = sequences(BinaryMajority(), 3000, n)
    assert alike(Counter(words[1 : n + 1].count("1") for words in found), ones, 3000)
    assert alike(Counter(words.index("1") for words in found if words[1 : n + 1].count("1") == 1), set(range(1, n + 1)), 500)


def test_interleaved_sequences_are_drawn_each_by_itself() -> None:
    answers = Counter("".join(words[-4:-1]) for words in sequences(BinaryMajorityInterleave(), 4000, 9))
    assert alike(answers, {"".join(bits) for bits in product("01", repeat=3)}, 4000)


def test_parity_has_any_number_of_ones() -> None:
    found = sequences(Parity(), 4200, 6)
    assert alike(Counter(words[1:7].count("1") for words in found), set(range(7)), 4200)
    assert Parity().chance(6) == {"parity": 4 / 7}
    assert Parity().chance(7) == {"parity": 1 / 2}


def test_letters_of_a_majority_are_those_of_even_sequences_without_a_tie() -> None:
    kept = [letters for letters in product("abc", repeat=4) if sorted(Counter(letters).values())[-2:] not in ([1, 1], [2, 2])]
    assert alike(Counter("".join(words[1:5]) for words in sequences(Majority(3), 6000, 4)), {"".join(k) for k in kept}, 6000)


def test_two_of_many_letters_are_the_same_where_one_has_the_majority() -> None:
    assert all(words[1] == words[2] == words[4] for words in sequences(Majority(200), 3, 2))


def test_digits_are_divided_between_operands_evenly() -> None:
    found = sequences(BinaryAddition(), 4000, 7)
    assert alike(Counter(words.index("+") - 1 for words in found), {1, 2, 3, 4}, 4000)
    assert alike(Counter(words[1] for words in found if words[2] == "+"), {"0", "1"}, 1000)


@pytest.mark.parametrize("n", range(4, 15))
def test_the_chance_of_binary_addition_is_that_of_the_commonest_sum(n: int) -> None:
    share: Counter[int] = Counter()
    for one in range(1, n - 2):
        pairs = list(product(_numbers(one), _numbers(n - 2 - one)))
        for a, b in pairs:
            share[a + b] += 1 / len(pairs) / (n - 3)  # type: ignore[assignment]
    assert BinaryAddition().chance(n)["binary-addition"] == pytest.approx(max(share.values()))


def _numbers(digits: int) -> range:
    return range(2) if digits == 1 else range(2 ** (digits - 1), 2**digits)


def test_a_chance_is_a_share_at_any_length() -> None:
    for name, n in product(NAMES, (4, 50, 150)):
        task: Task = registered(Task)[name]()
        assert 0 < task.chance(n)[name] <= 1
    assert Sort(numbers=9).chance(4) == {"sort": 1 / comb(9, 4)}
    assert 0 <= BinaryAddition().chance(1500)["binary-addition"] < 1e-200


def test_long_operands_are_added_with_every_carry() -> None:
    task = BinaryAddition()
    for words in sequences(task, 40, 300):
        assert between(words, "=", "<eos>") == added(words)[:-1]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Majority(1), r"task.alphabet must be at least 2, not 1"),
        (lambda: BinaryMajorityInterleave(0), r"task.period must be at least 1, not 0"),
        (lambda: Sort(1), r"task.numbers must be at least 2, not 1"),
        (lambda: Sort(8).check_length(9), r"length 9: task 'sort' reaches 8 at most \(its numbers differ, .*: task.numbers\)"),
        (lambda: BinaryMajorityInterleave().check_length(2), r"begins at 3 \(a bit of each of 3 sequences: task.period\)"),
        (lambda: BinaryAddition().check_length(3), r"begins at 4 \(two operands of a digit each, \+ and =\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(LabError, match=told):
        make()
