"""Formal languages: what may follow each symbol, held against regular expressions; strings come alike; labels are learned."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthlab as ll
from languages_by_hand import LANGUAGES, begins, sets
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.registry import registered
from lengthlab.spec.toml import make
from lengthlab.tasks import IGNORE, Automaton, Language, Mixture, Task, dyck, repeated
from lengthlab.tasks.card import card

quick = settings(max_examples=60)
FIBONACCI = {"symbols": ["x", "y"], "moves": [[0, 1], [0, -1]], "accepting": [0]}
"""No y after a y, and x at the end."""


@given(st.sampled_from(sorted(LANGUAGES)), st.integers(1, 12), st.integers(0, 20), st.integers(0, 2**31 - 1))
@quick
def test_the_labels_are_the_sets_that_the_oracle_finds(name: str, shortest: int, more: int, seed: int) -> None:
    task: Task = registered(Task)[name]()
    batch = task.sample(4, (shortest, shortest + more), torch.Generator().manual_seed(seed))
    for tokens_T, target_T, length in zip(batch.tokens_BT, batch.target["next"], batch.length_B.tolist(), strict=True):
        first, *symbols, last = task.decode(tokens_T)
        assert (first, last) == ("<bos>", "<eos>")
        right = sets(name, "".join(symbols))
        asked = (target_T != IGNORE).nonzero()[:, 0].tolist()
        assert asked == list(range(1, len(symbols) + 1))
        assert [task.words[token] for token in target_T[asked]] == right
        assert task.solve(["<bos>", *symbols, "<eos>"]) == {"next": tuple(right)}
        assert length == len(symbols) + 2 == task.tokens(len(symbols))


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_beginning_comes_alike(name: str) -> None:
    n = 5
    all_strings = {"".join(string) for string in product(LANGUAGES[name][0], repeat=n) if begins(name, "".join(string))}
    task: Task = registered(Task)[name]()
    batch = task.draw(torch.tensor([n] * 2000 + [9]), torch.Generator().manual_seed(0))
    found = Counter("".join(task.decode(tokens_T)[1:-1]) for tokens_T in batch.tokens_BT[:-1])
    each = 2000 / len(all_strings)
    assert set(found) == all_strings
    assert all(abs(count - each) < 5 * each**0.5 for count in found.values())


@pytest.mark.parametrize("name", LANGUAGES)
def test_chance_is_the_share_of_the_commonest_answer(name: str) -> None:
    task: Task = registered(Task)[name]()
    for n in (1, 4, 9):
        strings = ["".join(string) for string in product(LANGUAGES[name][0], repeat=n)]
        answers = Counter(tuple(sets(name, string)) for string in strings if begins(name, string))
        assert task.chance(n) == {"next": pytest.approx(answers.most_common(1)[0][1] / answers.total())}


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_it_says_of_itself_holds(name: str) -> None:
    task = make(Task, name)
    assert task.name == name
    report = check_task(task)
    assert {check.verdict for check in report.checks} == {"holds"}, report.checks


def test_a_task_that_states_no_certainty_is_not_excused_for_being_the_same_each_time() -> None:
    task = repeated("aab")
    assert task.chance(30) == {"next": 1}
    object.__setattr__(task, "chance", lambda length: {"next": 0.5})
    assert "does not hold" in {check.verdict for check in check_task(task).checks}


def test_a_language_of_ones_own_is_an_automaton_in_a_file() -> None:
    task = make(Task, {"kind": "language", "name": "fibonacci", "automaton": FIBONACCI})
    assert task == Language(Automaton(("x", "y"), ((0, 1), (0, -1)), (0,)), "fibonacci")
    assert task.solve(["<bos>", "y", "x", "<eos>"]) == {"next": ("{x}", "{xy$}")}
    assert {check.verdict for check in check_task(task).checks} == {"holds"}


def test_a_state_from_which_no_string_ends_is_not_entered() -> None:
    trap = Automaton(("x", "y"), ((0, 1), (1, 1)), accepting=(0,))
    assert trap.sets == ("{x$}",)
    assert trap.after("xxx") == ("{x$}",) * 3


@pytest.mark.parametrize(
    ("automaton", "told"),
    [
        ({"symbols": ["a", "a"], "moves": [[0, 0]], "accepting": [0]}, r"automaton.symbols must be words that differ"),
        ({"symbols": ["$"], "moves": [[0]], "accepting": [0]}, r"none of them '\$'"),
        ({"symbols": ["a"], "moves": [[1]], "accepting": [0]}, r"automaton.moves of state 0 must be 1 states"),
        ({"symbols": ["a"], "moves": [[0]], "accepting": [1]}, r"automaton.accepting must be states from 0 to 0"),
        ({"symbols": ["a"], "moves": [[1], [-1]], "accepting": [1]}, r"must have strings of any length"),
        ({"symbols": ["a"], "moves": [], "accepting": []}, r"must have strings of any length"),
        ({"symbols": ["{a$}", "a"], "moves": [[-1, 0]], "accepting": [0]}, r"the symbols of language 'mine' must not be"),
    ],
)
def test_what_is_no_language_is_refused(automaton: dict[str, object], told: str) -> None:
    with pytest.raises(LabError, match=told):
        make(Task, {"kind": "language", "name": "mine", "automaton": automaton})


def test_the_card_marks_what_has_labels_and_tells_them() -> None:
    made = card(dyck(2), sample_length=4)
    assert made.scored == {"next": (1, 2, 3, 4)}
    assert list(made.answers["next"]) == sets("D2", "".join(made.sample[1:-1]))


def test_a_mixture_with_labels_has_labels() -> None:
    mixed = Mixture((dyck(2), repeated("aa")))
    assert mixed.labels
    assert {check.verdict for check in check_task(mixed).checks} == {"holds"}


@pytest.mark.parametrize("batch", [4, 32], ids=["padded", "rows of documents"])
def test_labels_are_learned_and_kept_like_answers(tmp_path: Path, batch: int) -> None:
    schedule = ll.end_to_end(150, lr=2e-2)
    run = ll.Run(repeated("aa"), ll.models.lstm(width=8), schedule, lengths=(1, 8), batch=batch, evaluate=(8,))
    result = ll.train(run, store=tmp_path)
    assert result.accuracy(length=8, question="next") == 1
    assert ll.Run.from_json(run.to_json()).task == run.task
