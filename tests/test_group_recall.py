"""Products and recall in groups are those of an oracle that multiplies by hand, and the groups are groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import factorial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.inspection import check_task
from lengthlab.spec.toml import make
from lengthlab.tasks import IGNORE, Batch, GroupRecall, Task
from lengthlab.tasks.card import card
from lengthlab.tasks.group import group_of, product

QUESTIONS = (("product", "recall"), ("product",), ("recall",))
NAMES = ("Z2", "Z7", "Z60", "S2", "S3", "S4", "S5", "A3", "A4", "A5")
quick = settings(max_examples=40)
tasks = st.builds(GroupRecall, st.sampled_from(NAMES), st.integers(1, 40), st.sampled_from(QUESTIONS))


def drawn(task: Task, size: int, lengths: tuple[int, int], seed: int = 0) -> tuple[Batch, list[list[str]]]:
    batch = task.sample(size, lengths, torch.Generator().manual_seed(seed))
    return batch, [task.decode(tokens_T) for tokens_T in batch.tokens_BT]


def multiplied(group: str, elements: list[str]) -> str:
    """Of numbers, the sum; of permutations, where each point ends that is sent on by one after the other."""
    if group.startswith("Z"):
        return str(sum(map(int, elements)) % int(group[1:]))
    ends = []
    for point in range(1, 1 + int(group[1:])):
        for element in elements:
            point = int(element[point - 1])
        ends.append(str(point))
    return "".join(ends)


@given(tasks, st.integers(0, 2**31 - 1))
@quick
def test_every_sequence_says_what_the_oracle_says(task: GroupRecall, seed: int) -> None:
    batch, sequences = drawn(task, 5, (1, task.keys), seed)
    for row, words in enumerate(sequences):
        n = (len(words) - 1 - {2: 5, 1: 2 + (task.questions == ("recall",))}[len(task.questions)]) // 2
        keys, elements, tail = words[1 : 1 + 2 * n : 2], words[2 : 2 + 2 * n : 2], words[1 + 2 * n :]
        assert words[0] == "<bos>"
        assert len(set(keys)) == n
        right = {}
        if "product" in task.questions:
            right["product"] = multiplied(task.group, elements)
            assert tail[:2] == ["<product>", right["product"]]
        if "recall" in task.questions:
            mark, key, said = tail[-3:]
            right["recall"] = elements[keys.index(key)]
            assert (mark, said) == ("<recall>", right["recall"])
        for question, target_BT in batch.target.items():
            [[place]] = (target_BT[row] != IGNORE).nonzero().tolist()
            assert words[place + 1] == task.words[target_BT[row, place]] == right[question]
        assert len(words) == int(batch.length_B[row]) == task.tokens(n)
        spoilt = [*words[: 1 + 2 * n], *("?" if word in task.words[4 : 4 + group_size(task)] else word for word in tail)]
        assert task.solve(spoilt) == {question: (answer,) for question, answer in right.items()}


def group_size(task: GroupRecall) -> int:
    return len(group_of(task.group).words)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_that_of_a_group_of_the_right_size(name: str) -> None:
    group, degree = group_of(name), int(name[1:])
    size = {"Z": degree, "S": factorial(degree), "A": factorial(degree) // 2}[name[0]]
    assert len(set(group.words)) == len(group.words) == size
    every = list(range(size))
    assert group.table_GG[0].tolist() == group.table_GG[:, 0].tolist() == every  # the identity is first
    assert all(sorted(row) == every for row in (*group.table_GG.tolist(), *group.table_GG.T.tolist()))
    generator = torch.Generator().manual_seed(0)
    for one, other in torch.randint(size, (50, 2), generator=generator).tolist():
        word = group.words[group.table_GG[one, other]]
        assert word == group.then(group.words[one], group.words[other])
        assert word == multiplied(name, [group.words[one], group.words[other]])


@given(st.sampled_from(NAMES), st.integers(1, 70), st.integers(0, 2**31 - 1))
@quick
def test_a_product_by_a_tree_is_that_of_one_after_the_other(name: str, n: int, seed: int) -> None:
    group = group_of(name)
    element_BN = torch.randint(len(group.words), (3, n), generator=torch.Generator().manual_seed(seed))
    found = [group.words[number] for number in product(element_BN, group.table_GG).tolist()]
    assert found == [multiplied(name, [group.words[number] for number in row]) for row in element_BN.tolist()]


def test_order_counts_where_the_group_does_not_commute() -> None:
    assert multiplied("S3", ["213", "132"]) != multiplied("S3", ["132", "213"])
    words = ["<bos>", "k1", "213", "k2", "132", "<product>", "?", "<recall>", "k2", "?"]
    assert GroupRecall("S3").solve(words) == {"product": (multiplied("S3", ["213", "132"]),), "recall": ("132",)}


@pytest.mark.parametrize("group", ["Z60", "S3", "S4", "A5"])
def test_what_it_says_of_itself_holds(group: str) -> None:
    task: Task = make(Task, {"name": "group-recall", "group": group})
    report = check_task(task, longest=4)
    assert {check.verdict for check in report.checks} == {"holds"}, report.checks


def test_it_is_made_with_one_question_from_a_file() -> None:
    task = make(Task, {"name": "group-recall", "group": "A5", "questions": ["product"]})
    assert task == GroupRecall("A5", questions=("product",))
    assert (task.state, GroupRecall(questions=("recall",)).state) == (("product",), ())


def test_elements_and_products_come_alike() -> None:
    _, sequences = drawn(GroupRecall("S3"), 1800, (3, 3))
    for place in (2, 4, 6, 8, 11):
        counts = Counter(words[place] for words in sequences)
        assert len(counts) == 6
        assert all(abs(number - 300) < 5 * 300**0.5 for number in counts.values())


def test_of_one_pair_both_questions_have_one_answer_and_chance_says_so() -> None:
    assert GroupRecall("S3").chances(1) == pytest.approx({"product": 1 / 6, "recall": 1 / 6, "all": 1 / 6})
    assert GroupRecall("S3").chances(2) == pytest.approx({"product": 1 / 6, "recall": 1 / 6, "all": 1 / 36})
    assert GroupRecall("S3", questions=("product",)).chances(1) == pytest.approx({"product": 1 / 6, "all": 1 / 6})


def test_the_sign_alone_is_right_in_one_case_of_three_in_s3() -> None:
    scores = card(GroupRecall("S3", keys=8), trivial_length=6).trivial["the last element, and the sign of the product alone"]
    assert scores["product"] == pytest.approx(1 / 3, abs=0.05)
    assert len(card(GroupRecall("A5", keys=8), trivial_length=1).trivial) == 2  # there is no sign


def test_a_long_product_is_found() -> None:
    task = GroupRecall("A5", keys=100_000, questions=("product",))
    _, [words] = drawn(task, 1, (100_000, 100_000))
    assert words[-1] == multiplied("A5", words[2:-2:2])


@pytest.mark.parametrize(
    ("make_it", "told"),
    [
        *((lambda name=name: GroupRecall(name), "task.group must be one of Z2 to Z1000, S2 to S6, A3 to A6, like 'S3', not")
          for name in ("S7", "A2", "Z1", "D4", "S", "", "Z99999999", "s3", 5)),
        (lambda: GroupRecall(keys=0), "task.keys must be at least 1, not 0"),
        (lambda: GroupRecall(questions=("recall", "product")), "task.questions must be ('product', 'recall') or one"),
    ],
)  # fmt: skip
def test_what_makes_no_task_is_refused(make_it: Callable[[], Task], told: str) -> None:
    with pytest.raises(LabError) as refused:
        make_it()
    assert str(refused.value).startswith(told)


def test_a_length_that_the_keys_cannot_serve_is_refused() -> None:
    with pytest.raises(LabError, match=r"length 9: task 'group-recall' reaches 8 at most .*there are 8 of them: task.keys"):
        drawn(GroupRecall(keys=8), 2, (1, 9))
