"""Helper tasks: what they draw is right by an oracle that is written another way, and is what `lengthlab check` wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch

from lengthlab.errors import LabError
from lengthlab.inspection.task_check import check_task
from lengthlab.registry import registered
from lengthlab.spec.toml import make
from lengthlab.tasks import (
    HELPERS,
    IGNORE,
    Addition,
    CarryOnly,
    Copy,
    Count,
    Fill,
    Mixture,
    NoCarry,
    PlaceParity,
    Predecessor,
    Repetitive,
    Reverse,
    RunningProduct,
    RunningSum,
    Sort,
    Subsequence,
    Successor,
    Task,
    recall,
)
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.group import group_of

MAINS = {
    "sort": Sort(numbers=30),
    "sort repeated": Sort(numbers=7, repeated=True),
    "copy": Copy(alphabet=30),
    "copy repeated": Copy(letters="repeated", alphabet=4),
    "reverse": Reverse(alphabet=30),
    "reverse repeated": Reverse(letters="repeated", alphabet=4),
}
ANSWERS: dict[str, Callable[[list[str]], list[str]]] = {
    "sort": lambda words: [str(number) for number in sorted(int(word) for word in words)],
    "copy": list,
    "reverse": lambda words: list(reversed(words)),
}


def rows(task: Task, lengths: tuple[int, int], size: int = 60) -> list[tuple[list[str], list[str]]]:
    """The words of each sequence, and those that are to be said."""
    batch = task.sample(size, lengths, torch.Generator().manual_seed(1))
    (target_BT,) = batch.target.values()
    said = [[task.words[token] for token in target.tolist() if token != IGNORE] for target in target_BT]
    return [(task.decode(tokens), answer) for tokens, answer in zip(batch.tokens_BT, said, strict=True)]


def split(words: list[str], mark: str) -> tuple[list[str], list[str]]:
    at = words.index(mark)
    assert words[0] == "<bos>"
    return words[1:at], words[at + 1 :]


@pytest.mark.parametrize("main", MAINS)
def test_what_stands_beside_a_symbol_in_the_answer(main: str) -> None:
    for words, said in rows(Successor(MAINS[main]), (1, 12)):
        read, (asked, *_) = split(words, "<successor>")
        written = " ".join(ANSWERS[main.split()[0]](read)) + " <eos>"
        assert said == f" {written}".rpartition(f" {asked} ")[2].split()[:1]
    for words, said in rows(Predecessor(MAINS[main]), (1, 12)):
        read, (asked, *_) = split(words, "<predecessor>")
        before = f"<eos> {' '.join(ANSWERS[main.split()[0]](read))} ".partition(f" {asked} ")[0]
        assert said == before.split()[-1:]


def test_the_successor_of_a_number_is_the_next_greater_one_however_often_it_comes() -> None:
    task = Successor(Sort(numbers=9, repeated=True))
    assert task.solve(["<bos>", "3", "8", "3", "5", "<successor>", "3"]) == {"successor": ("5",)}
    assert Predecessor(task.of).solve(["<bos>", "3", "8", "8", "5", "<predecessor>", "8"]) == {"predecessor": ("5",)}


@pytest.mark.parametrize("main", MAINS)
def test_a_count_is_said_one_by_one_and_a_gap_is_filled(main: str) -> None:
    for words, said in rows(Count(MAINS[main]), (1, 12)):
        read, (asked, *_) = split(words, "<count>")
        assert said == [word for word in read if word == asked] + ["<eos>"]
    for words, said in rows(Fill(MAINS[main]), (1, 12)):
        read, rest = split(words, "<fill>")
        with_gap = rest[: rest.index("<missing>")]
        assert [said[0] if word == "<blank>" else word for word in with_gap] == ANSWERS[main.split()[0]](read)


@pytest.mark.parametrize("main", MAINS)
def test_the_parity_of_a_place(main: str) -> None:
    for words, said in rows(PlaceParity(MAINS[main]), (1, 12)):
        read, (asked, *_) = split(words, "<place>")
        odd = ANSWERS[main.split()[0]](read)[::2]
        first = ANSWERS[main.split()[0]](read).index(asked)
        assert said == (["odd"] if asked in odd and first % 2 == 0 else ["even"])


@pytest.mark.parametrize("main", ["sort", "copy", "reverse"])
def test_a_piece_of_a_long_sample_has_what_its_answer_needs(main: str) -> None:
    task = Subsequence(MAINS[main], within=20, places="kept")
    batch = task.sample(200, (task.shortest, 21), torch.Generator().manual_seed(0))
    assert batch.position_BT is not None
    seen = set()
    for tokens, target, places in zip(batch.tokens_BT, batch.target["subsequence"], batch.position_BT, strict=True):
        words = task.decode(tokens)
        kept = places[: len(words) - 1].tolist()
        assert kept == sorted(set(kept))  # in order, none twice
        (said,) = [task.words[token] for token in target.tolist() if token != IGNORE]
        assert said == words[-1]
        read, out = split(words[:-1], "<sep>")
        assert kept[1 + len(read)] == 21  # where <sep> stood
        whole = ANSWERS[main](read)
        assert said == whole[whole.index(out[-1]) + 1] if out and out[-1] in whole else said in whole
        if main == "sort":
            assert said == min((word for word in read if not out or int(word) > int(out[-1])), key=int)
        # The answer that is asked stands right after the last token that was kept, in the long sample, too.
        last = kept[-1] - 21
        assert last >= 0
        seen.add(last)
    assert seen == set(range(20))
    plain = replace(task, places="new").sample(200, (4, 21), torch.Generator().manual_seed(0))
    assert plain.position_BT is None


@pytest.mark.parametrize("main", ["sort repeated", "copy repeated", "reverse repeated"])
def test_repetitive_sequences_are_answered_as_any_other(main: str) -> None:
    for words, said in rows(Repetitive(MAINS[main]), (1, 12)):
        read, _ = split(words, "<sep>")
        assert said == [*ANSWERS[main.split()[0]](read), "<eos>"]


def test_repetitive_sequences_have_symbols_that_come_often() -> None:
    def often(task: Task) -> list[int]:
        """How often the most frequent number comes among 20."""
        batch = task.sample(3000, (20, 20), torch.Generator().manual_seed(0))
        return [int(row.bincount().max()) for row in batch.tokens_BT[:, 1:21]]

    main = Sort(numbers=1000, repeated=True)
    plain, repetitive = often(main), often(Repetitive(main))
    assert max(plain) <= 4
    assert sum(most == 20 for most in repetitive) / 3000 == pytest.approx(1 / 20, abs=0.015)  # of one kind
    assert sum(most >= 5 for most in repetitive) / 3000 > 0.3


def test_the_halves_of_a_sum_add_up_to_it() -> None:
    def digits(task: Addition) -> tuple[Batch, torch.Tensor]:
        batch = task.sample(40, (1, 9), torch.Generator().manual_seed(0))
        return batch, batch.target[task.questions[0]]

    (whole, sum_BT), (_, plain_BT), (_, carry_BT) = digits(Addition()), digits(NoCarry()), digits(CarryOnly())
    digit_BT = (sum_BT >= 5) & (sum_BT != IGNORE)
    assert torch.equal((plain_BT + carry_BT - 10)[digit_BT] % 10, (sum_BT - 5)[digit_BT])
    assert set((carry_BT - 5)[digit_BT].tolist()) == {0, 1}
    for words, said in rows(NoCarry(), (1, 9)):
        left, right = " ".join(words[1 : words.index("=")]).split(" + ")
        columns = [(int(a) + int(b)) % 10 for a, b in zip(left.split(), right.split(), strict=True)]
        assert said == [*map(str, reversed(columns)), "0", "<end>"]
    for words, said in rows(CarryOnly(), (1, 9)):
        one, two = (int(term.replace(" ", "")) for term in " ".join(words[1 : words.index("=")]).split(" + "))
        assert said[:-1] == [str((one % 10**place + two % 10**place) // 10**place) for place in range(len(said) - 1)]
    assert whole.tokens_BT.shape == (40, 3 * 9 + 1 + 4)


def test_a_running_sum_is_asked_at_every_token() -> None:
    for words, said in rows(RunningSum(modulus=7, values=10, keys=16), (1, 8)):
        values = [int(word) for word in words[2:-2:2]]
        so_far = [sum(values[:count]) % 7 for count in range(len(values) + 1)]
        assert said == [str(each) for total in so_far for each in (total, total)][1:]
        assert len(said) == len(words) - 2


def test_a_running_product_is_asked_at_every_token() -> None:
    then = group_of("S4").then
    for words, said in rows(RunningProduct("S4", keys=16), (1, 9)):
        state, states = "1234", []
        for word in words[1:-1]:
            state = then(state, word) if word.isdigit() else state
            states.append(state)
        assert said == states
        assert said[-1] == words[-1]


CHECKED: list[Task] = [
    *(
        kind(MAINS[main])
        for kind in (Successor, Predecessor, Count, Fill, PlaceParity)
        for main in ("sort", "sort repeated", "copy repeated")
    ),
    Repetitive(Sort(numbers=3, repeated=True)),
    *(Repetitive(MAINS[main]) for main in ("sort repeated", "copy repeated", "reverse repeated")),
    *(Subsequence(MAINS[main], within=25, places="kept") for main in ("sort", "copy", "reverse")),
    *(
        NoCarry(),
        NoCarry(shorter=False),
        CarryOnly(),
        CarryOnly(shorter=False),
        RunningSum(keys=32),
        RunningProduct(keys=32),
        RunningSum(modulus=3, keys=32),
    ),
    *(MAINS["sort repeated"], Sort(numbers=2, repeated=True)),
]


@pytest.mark.parametrize("task", CHECKED, ids=lambda task: f"{task.name} {getattr(getattr(task, 'of', None), 'name', '')}")
def test_it_says_what_it_means(task: Task) -> None:
    report = check_task(task, longest=12)
    assert report.holds, [check for check in report.checks if check.verdict == "does not hold"]


@pytest.mark.parametrize("length", [3, 9, 20])
def test_the_chance_of_two_numbers_that_are_sorted_is_that_of_the_likeliest_answer(length: int) -> None:
    task = Repetitive(Sort(numbers=2, repeated=True))
    lists = task.sample(20_000, (length, length), torch.Generator().manual_seed(0)).tokens_BT[:, 1 : length + 1]
    (often,) = lists.sum(dim=1).unique(return_counts=True)[1].max()[None].tolist()
    assert often / 20_000 == pytest.approx(task.chance(length)["repetitive"], abs=0.01)


@pytest.mark.parametrize(
    ("task", "length"), [(CarryOnly(), 3), (CarryOnly(shorter=False), 3), (NoCarry(), 2), (NoCarry(shorter=False), 2)]
)
def test_the_chance_of_half_a_sum_where_it_can_be_seen(task: Task, length: int) -> None:
    report = check_task(task, longest=length)
    assert report.holds, report.checks[-2].evidence


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        (Successor, {"of": Addition()}, "'successor' helps sort, copy or reverse, not 'addition'"),
        (Count, {"of": 3}, "'count' helps sort, copy or reverse, not"),
        (Fill, {"of": Copy(positions="coupled")}, "has no ids of its own"),
        (Repetitive, {"of": Sort()}, "with symbols that may be repeated, not 'sort'"),
        (Repetitive, {"of": Addition()}, "not 'addition'"),
        (Subsequence, {"of": Sort(repeated=True)}, "with symbols that differ, not 'sort'"),
        (Subsequence, {"of": Sort(numbers=10), "within": 20}, "reaches 10 at most"),
        (Subsequence, {"places": "old"}, "task.places must be 'new' or 'kept'"),
        (NoCarry, {"operands": 3}, "is of two numbers"),
        (Sort, {"repeated": "yes"}, "task.repeated must be true or false"),
    ],
)
def test_what_cannot_be_helped_is_refused(kind: Callable[..., Task], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(LabError, match=text):
        kind(**fields)


def test_helpers_mix_with_their_main_tasks_and_labels_with_what_is_said() -> None:
    for task in (
        Mixture((Sort(numbers=30), Successor(Sort(numbers=30)), Fill(Sort(numbers=30))), tag=False),
        Mixture((Addition(), NoCarry(), CarryOnly())),
        Mixture((recall(keys=32), RunningSum(keys=32))),
    ):
        assert check_task(task, longest=10).holds, task.name
    assert Mixture((Addition(), NoCarry(), CarryOnly())).vocabulary == Addition().vocabulary + 3
    assert {"successor", "subsequence", "no-carry", "running-sum"} <= set(registered(Task))


@pytest.mark.parametrize("name", [name for name, helper in HELPERS.items() if "of" in signature(helper).parameters])
def test_the_main_task_of_a_helper_is_named_or_described_in_a_file(name: str) -> None:
    letters = "unique" if name == "subsequence" else "repeated"
    described = make(Task, {"name": name, "of": {"name": "copy", "letters": letters, "alphabet": 140}})
    assert described.of == Copy(letters=letters, alphabet=140)
    if name != "repetitive":  # for which letters have to be repeated
        assert make(Task, {"name": name, "of": "copy"}).of == Copy()
    with pytest.raises(LabError, match="of"):
        make(Task, {"name": name, "of": 5})


def test_so_is_that_of_a_users_own_helper(tmp_path: Path) -> None:
    """A field that is inherited is looked up where it was written."""
    text = "from dataclasses import dataclass\nfrom lengthlab.tasks import Successor\n\n@dataclass(frozen=True)\n"
    (tmp_path / "my_helper.py").write_text(f"{text}class Next(Successor):\n    name = 'next'\n")
    assert make(Task, {"name": "my_helper.py:Next", "of": {"name": "reverse"}}, tmp_path).of == Reverse()
