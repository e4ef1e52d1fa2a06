"""Copy and reverse write what they read, and unique letters are as many as there are."""

from __future__ import annotations

from collections import Counter
from math import perm
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthlab as ll
from answers_by_hand import backward, between, rewritten
from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.spec.toml import make
from lengthlab.tasks import IGNORE, Copy, Reverse, ShiftedReverse, Task
from lengthlab.tasks.copying import Copying

quick = settings(max_examples=60)


@st.composite
def copying(pick: st.DrawFn) -> tuple[Copying, tuple[int, int]]:
    """Any of the four, with lengths that it reaches."""
    kind, letters = pick(st.sampled_from([Copy, Reverse])), pick(st.sampled_from(["unique", "repeated"]))
    task = kind(letters=letters, alphabet=pick(st.integers(2, 30)))
    shortest = pick(st.integers(1, task.longest or 40))
    return task, (shortest, pick(st.integers(shortest, task.longest or 60)))


@given(copying(), st.integers(0, 2**31 - 1))
@quick
def test_everything_after_sep_is_what_the_oracle_writes_and_is_asked_for(
    case: tuple[Copying, tuple[int, int]], seed: int
) -> None:
    task, lengths = case
    batch = task.sample(5, lengths, torch.Generator().manual_seed(seed))
    for tokens_T, target_T, length in zip(batch.tokens_BT, batch.target[task.name], batch.length_B.tolist(), strict=True):
        words = task.decode(tokens_T)
        read = between(words, "<bos>", "<sep>")
        right = rewritten(words, list if isinstance(task, Copy) else backward)
        assert lengths[0] <= len(read) <= lengths[1]
        assert words == ["<bos>", *read, "<sep>", *right]
        assert len(words) == length == task.tokens(len(read)) == int((tokens_T != 0).sum())
        assert [task.words[token] for token in target_T if token != IGNORE] == right
        assert task.solve([*words[: len(read) + 2], *["?"] * len(right)]) == {task.name: tuple(right)}
        assert task.letters == "repeated" or len(set(read)) == len(read)


@pytest.mark.parametrize("letters", ["unique", "repeated"])
def test_every_letter_comes_alike_at_every_place(letters: str) -> None:
    task = Copy(letters=letters, alphabet=6)
    sequences = [task.decode(tokens_T) for tokens_T in task.sample(3000, (4, 4), torch.Generator().manual_seed(0)).tokens_BT]
    for place in range(1, 5):
        found = Counter(words[place] for words in sequences)
        assert len(found) == 6
        assert all(abs(count - 500) < 5 * 500**0.5 for count in found.values())


def test_repeated_letters_are_repeated() -> None:
    task = Reverse(letters="repeated")
    batch = task.sample(50, (30, 30), torch.Generator().manual_seed(0))
    assert all(len(set(row[1:31])) <= 5 for row in batch.tokens_BT.tolist())
    assert task.longest is None


@pytest.mark.parametrize("letters", ["unique", "repeated"])
@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_what_it_says_of_itself_holds(name: str, letters: str) -> None:
    task = make(Task, {"name": name, "letters": letters})
    assert task.name == name
    assert task.vocabulary == 4 + {"unique": 150, "repeated": 5}[letters]
    assert {check.verdict for check in check_task(task).checks} == {"holds"}


def test_chance_is_one_over_all_that_could_be_written() -> None:
    assert Copy().chance(3) == {"copy": 1 / (150 * 149 * 148)}
    assert Reverse(alphabet=8).chance(8) == {"reverse": 1 / perm(8)}
    assert Reverse(letters="repeated").chance(4) == {"reverse": 1 / 5**4}


def test_an_alphabet_too_small_for_unique_letters_is_refused_before_training(tmp_path: Path) -> None:
    told = r"length 12: task 'copy' reaches 8 at most \(its letters are unique, and there are 8 of them: task.alphabet\)"
    with pytest.raises(LabError, match=told):
        ll.Run(Copy(alphabet=8), ll.models.lstm(8), ll.end_to_end(5), lengths=(1, 4), evaluate=(12,))
    with pytest.raises(LabError, match=r"task.letters must be 'unique' or 'repeated', not 'some'"):
        Copy(letters="some")
    with pytest.raises(LabError, match=r"task.alphabet must be at least 2, not 0"):
        Copy(alphabet=0)


def test_a_run_says_which_alphabet_it_had() -> None:
    run = ll.Run(Copy(letters="repeated"), ll.models.lstm(8), ll.end_to_end(5), lengths=(1, 4), evaluate=(8,))
    said = run.to_json()["task"]
    assert (said["kind"], said["letters"], said["alphabet"]) == ("copy", "repeated", 5)
    assert ll.Run.from_json(run.to_json()).task == run.task


@pytest.mark.parametrize(
    ("kind", "right"),
    [(Copy, "0 7 8 9 6 7 8 9 0"), (Reverse, "0 6 7 8 9 8 7 6 0")],
)
def test_coupled_a_letter_has_the_same_id_both_times(kind: type[Copying], right: str) -> None:
    task = kind(positions="coupled", ids=12, start=6).as_measured
    batch = task.sample(1, (3, 3), torch.Generator().manual_seed(0))
    assert batch.position_BT is not None
    assert batch.position_BT.tolist() == [[int(place) for place in right.split()]]
    longer = task.sample(2, (1, 5), torch.Generator().manual_seed(1))
    assert longer.position_BT is not None
    assert longer.position_BT[longer.tokens_BT == 0].eq(0).all()


@given(st.sampled_from([Copy, Reverse]), st.integers(1, 9), st.integers(0, 2**31 - 1))
@quick
def test_coupled_ids_start_anywhere_that_the_table_allows(kind: type[Copying], length: int, seed: int) -> None:
    task = kind(positions="coupled", ids=11, letters="repeated")
    batch = task.sample(4, (length, length), torch.Generator().manual_seed(seed))
    assert batch.position_BT is not None
    used = batch.position_BT[:, 1:-1]
    assert used.min() >= 1
    assert used.max() < task.ids
    assert task.longest == 9
    for tokens, ids in zip(batch.tokens_BT.tolist(), batch.position_BT.tolist(), strict=True):
        letters = dict(zip(ids[1 : length + 1], tokens[1 : length + 1], strict=True))
        assert [letters[place] for place in ids[length + 2 : -1]] == tokens[length + 2 : -1]


def test_what_bounds_a_length_is_said() -> None:
    assert (
        Copy(positions="coupled", ids=20, alphabet=9).limit == "its letters are unique, and there are 9 of them: task.alphabet"
    )
    assert Copy(positions="coupled", ids=20, alphabet=90).longest == 18
    with pytest.raises(LabError, match="ids = 20"):
        Copy(positions="coupled", ids=20, alphabet=90).check_length(19)


def test_shifted_reverse_is_reverse_and_every_letter_one_further() -> None:
    task = ShiftedReverse(alphabet=5)
    batch = task.sample(60, (1, 9), torch.Generator().manual_seed(0))
    for tokens_T in batch.tokens_BT:
        words = task.decode(tokens_T)
        middle = words.index("<sep>")
        expected = ["abcdea"["abcde".index(letter) + 1] for letter in reversed(words[1:middle])]
        assert words[middle + 1 :] == [*expected, "<eos>"]
    assert check_task(task).holds
    assert ShiftedReverse(alphabet=4).chance(3) == {"shifted-reverse": 1 / 64}
    with pytest.raises(LabError, match=r"task.alphabet must be at least 2, not 1"):
        ShiftedReverse(alphabet=1)
