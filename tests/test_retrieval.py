"""Retrieval tasks ask for the neighbour that they say, of contexts drawn as they say."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from answers_by_hand import between, retrieved
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.registry import registered
from lengthlab.spec.toml import make
from lengthlab.tasks import IGNORE, Batch, FirstLeft, FirstRight, LastLeft, LastRight, Task, UniqueLeft, UniqueRight
from lengthlab.tasks.retrieval import Retrieval

TASKS: dict[str, type[Retrieval]] = {
    "unique-left": UniqueLeft,
    "unique-right": UniqueRight,
    "first-left": FirstLeft,
    "first-right": FirstRight,
    "last-left": LastLeft,
    "last-right": LastRight,
}
quick = settings(max_examples=60)
tasks = st.builds(
    lambda kind, alphabet, within: kind(alphabet, within),
    st.sampled_from(list(TASKS.values())),
    st.integers(2, 30),
    st.sampled_from(["anywhere", "first-half"]),
)


def drawn(task: Task, size: int, lengths: tuple[int, int], seed: int = 0) -> tuple[Batch, list[list[str]]]:
    batch = task.sample(size, lengths, torch.Generator().manual_seed(seed))
    return batch, [task.decode(tokens_T) for tokens_T in batch.tokens_BT]


@given(tasks, st.integers(0, 12), st.integers(0, 30), st.integers(0, 2**31 - 1))
@quick
def test_the_answer_is_the_neighbour_that_the_oracle_finds(task: Retrieval, skip: int, more: int, seed: int) -> None:
    shortest = task.shortest + skip
    batch, sequences = drawn(task, 6, (shortest, shortest + more), seed)
    target_BT = batch.target[task.name]
    for words, target_T, length in zip(sequences, target_BT, batch.length_B.tolist(), strict=True):
        answer = retrieved(words, task.which, task.side)
        assert words[-2:-1] == answer
        assert task.solve([*words[:-2], "?", "<eos>"]) == {task.name: tuple(answer)}
        [[asked_at]] = (target_T != IGNORE).nonzero().tolist()
        assert (asked_at, task.words[target_T[asked_at]]) == (len(words) - 3, answer[0])
        assert len(words) == length == task.tokens(len(between(words, "<bos>", "<sep>")))
        assert set(words) <= set(task.words)


@given(tasks, st.integers(0, 20), st.integers(0, 2**31 - 1))
@quick
def test_the_query_keeps_to_the_first_half_where_that_is_said(task: Retrieval, more: int, seed: int) -> None:
    n = task.shortest + more
    for words in drawn(task, 20, (n, n), seed)[1]:
        context = between(words, "<bos>", "<sep>")
        last = max(place for place, word in enumerate(context) if word == words[-3])
        assert len(context) == n
        assert task.within == "anywhere" or last < (n + 1) / 2


def by_rejection(kind: type[Retrieval], alphabet: int, n: int, rng: random.Random) -> tuple[int, ...] | None:
    """Where q occurs in a context, drawn as the paper says: even letters, q at an even place; None if that is no sample."""
    context = [rng.randrange(alphabet) for _ in range(n)]
    asked = rng.choice(context)
    places = tuple(place for place, letter in enumerate(context) if letter == asked)
    counts = places[0] if kind.which == "first" else places[-1]
    beside = counts + (1 if kind.side == "right" else -1)
    return places if len(places) >= 2 and 0 <= beside < n else None


@pytest.mark.parametrize("name", ["first-left", "first-right", "last-left", "last-right"])
def test_occurrences_lie_as_in_contexts_that_are_drawn_evenly_and_kept_if_they_fit(name: str) -> None:
    kind, alphabet, n, size = TASKS[name], 3, 5, 6000
    rng = random.Random(0)
    slow: Counter[tuple[int, ...]] = Counter()
    while slow.total() < size:
        places = by_rejection(kind, alphabet, n, rng)
        slow.update([places] if places else [])
    fast = Counter(
        tuple(place for place, word in enumerate(between(words, "<bos>", "<sep>")) if word == words[-3])
        for words in drawn(kind(alphabet), size, (n, n))[1]
    )
    assert set(fast) == set(slow)
    for places, count in slow.items():
        assert abs(fast[places] - count) < 5 * (2 * count) ** 0.5 + 5


def test_a_unique_query_stands_at_every_place_that_has_a_neighbour_alike() -> None:
    for kind, allowed in ((UniqueLeft, range(1, 6)), (UniqueRight, range(5))):
        places = Counter(words[1:7].index(words[-3]) for words in drawn(kind(), 3000, (6, 6))[1])
        assert sorted(places) == list(allowed)
        assert all(abs(count - 600) < 5 * 600**0.5 for count in places.values())


@pytest.mark.parametrize("name", TASKS)
def test_letters_asked_for_and_answers_are_alike(name: str) -> None:
    sequences = drawn(TASKS[name](), 3000, (9, 9))[1]
    for place in (-3, -2):
        letters = Counter(words[place] for words in sequences)
        assert sorted(letters) == list("abcde")
        assert all(abs(count - 600) < 5 * 600**0.5 for count in letters.values())


@pytest.mark.parametrize("within", ["anywhere", "first-half"])
@pytest.mark.parametrize("name", TASKS)
def test_what_it_says_of_itself_holds(name: str, within: str) -> None:
    task = make(Task, {"name": name, "within": within})
    report = check_task(task)
    assert type(task) is registered(Task)[name] is TASKS[name]
    assert task.name == name
    assert {check.verdict for check in report.checks} == {"holds"}, report.checks


def test_the_shortest_length_is_the_first_at_which_the_neighbour_is_there() -> None:
    shortest = {name: (kind().shortest, kind(within="first-half").shortest) for name, kind in TASKS.items()}
    assert shortest == {
        "unique-left": (2, 3),
        "unique-right": (2, 2),
        "first-left": (3, 5),
        "first-right": (2, 3),
        "last-left": (2, 3),
        "last-right": (3, 3),
    }


def test_what_makes_no_task_is_refused() -> None:
    with pytest.raises(LabError, match=r"task.alphabet must be at least 2, not 1"):
        UniqueLeft(alphabet=1)
    with pytest.raises(LabError, match=r"task.within must be 'anywhere' or 'first-half', not 'left'"):
        UniqueLeft(within="left")
    told = r"length 2: task 'first-left' begins at 3 \(where q occurs twice and has a token to its left\)"
    with pytest.raises(LabError, match=told):
        drawn(FirstLeft(), 2, (2, 5))
