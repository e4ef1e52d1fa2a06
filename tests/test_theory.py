"""C-RASP[pos]: batches are read as single sequences are, programs do what they promise, and wrong ones are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.registry import registered
from lengthlab.tasks import (
    BinaryAddition,
    BinaryMajority,
    BinaryMajorityInterleave,
    Copy,
    FirstLeft,
    FirstRight,
    LastLeft,
    LastRight,
    Majority,
    ModuloRecall,
    Parity,
    Reverse,
    Sort,
    Task,
    UniqueLeft,
    UniqueRight,
)
from lengthlab.theory import (
    Choice,
    Count,
    Periodic,
    Predicate,
    Program,
    all_of,
    any_of,
    back,
    count,
    exists,
    languages,
    shown,
    token,
    verdict,
)
from lengthlab.theory.batches import BatchReading, say_all
from lengthlab.theory.copying import sorting, unique_copy, unique_reverse
from lengthlab.theory.counting import interleaved_majority, majority
from lengthlab.theory.languages import Allowed
from lengthlab.theory.lemmas import KNOWN, kind_of
from lengthlab.theory.plain import Reading, say
from lengthlab.theory.primitives import Constant
from lengthlab.theory.retrieval import first, unique
from lengthlab.theory.trial import try_drawn, try_every

LETTERS = "abc"
SEQUENCES = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=9)
WITHIN = st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda two: (two[0], two[0] + two[1]))


def predicates(deeper: st.SearchStrategy[Predicate], counts: st.SearchStrategy[Count]) -> st.SearchStrategy[Predicate]:
    compared = st.tuples(counts, counts, st.sampled_from(["__ge__", "__gt__", "__le__", "__lt__", "equals"]))
    return st.one_of(
        deeper.map(lambda part: ~part),
        st.lists(deeper, max_size=3).map(all_of),
        st.lists(deeper, max_size=3).map(any_of),
        st.tuples(deeper, deeper).map(lambda two: two[0] & two[1]),
        st.tuples(deeper, deeper).map(lambda two: two[0] | two[1]),
        compared.map(lambda three: getattr(three[0], three[2])(three[1])),
    )


def counts(deeper: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Count]:
    simple: st.SearchStrategy[Count] = st.one_of(
        st.integers(-3, 3).map(Constant), st.tuples(deeper, WITHIN).map(lambda two: count(*two))
    )
    return st.one_of(
        simple,
        st.tuples(simple, simple).map(lambda two: two[0] + two[1]),
        st.tuples(simple, simple).map(lambda two: two[0] - two[1]),
        st.tuples(deeper, simple, simple).map(lambda three: Choice(*three)),
    )


LEAVES: st.SearchStrategy[Predicate] = st.one_of(
    st.sampled_from(LETTERS).map(token),
    st.integers(1, 4).flatmap(lambda period: st.integers(0, period - 1).map(lambda rest: Periodic(period, rest))),
)
PREDICATES = st.recursive(LEAVES, lambda deeper: predicates(deeper, counts(deeper)), max_leaves=8)


@settings(max_examples=300)
@given(predicate=PREDICATES, rows=st.lists(SEQUENCES, min_size=1, max_size=3))
def test_a_batch_is_read_as_each_sequence_by_itself(predicate: Predicate, rows: list[list[str]]) -> None:
    tokens_BT = np.full((len(rows), max(map(len, rows))), -1)
    for row, words in enumerate(rows):
        tokens_BT[row, : len(words)] = [LETTERS.index(word) for word in words]
    true_BT = BatchReading(tokens_BT, {word: at for at, word in enumerate(LETTERS)}).true(predicate)
    for row, words in enumerate(rows):
        reading = Reading(words)
        assert true_BT[row, : len(words)].tolist() == [reading.true(predicate, at) for at in range(len(words))]


@settings(max_examples=100)
@given(predicate=PREDICATES, words=SEQUENCES)
def test_a_name_changes_nothing_but_the_text(predicate: Predicate, words: list[str]) -> None:
    named = predicate.named("THIS")
    assert Reading(words).true(named, len(words) - 1) == Reading(words).true(predicate, len(words) - 1)
    assert shown(Program({"a": named}))[-1].split() == ["next", "is", "a", ":=", "THIS(i)"]


@settings(max_examples=100)
@given(predicate=PREDICATES, words=SEQUENCES, more=SEQUENCES)
def test_no_position_knows_what_comes_after_it(predicate: Predicate, words: list[str], more: list[str]) -> None:
    at = len(words) - 1
    assert Reading(words).true(predicate, at) == Reading([*words, *more]).true(predicate, at)


@settings(max_examples=100)
@given(predicate=PREDICATES)
def test_no_line_of_a_program_is_wider_than_the_page(predicate: Predicate) -> None:
    written = shown(Program({"a": any_of([predicate] * 5)}))
    assert max(map(len, written)) <= 80
    assert not any("\u00a0" in line for line in written)


# What is right, in plain Python and without the tasks: whether the tasks say the same is tried below.


def beside(context: Sequence[str], place: int, side: str) -> str | None:
    at = place - 1 if side == "left" else place + 1
    return context[at] if 0 <= at < len(context) else None


def retrievals(alphabet: str, longest: int, which: str, side: str) -> Iterator[tuple[list[str], str]]:
    for length in range(1, longest + 1):
        for context in product(alphabet, repeat=length):
            for query in set(context):
                answer = beside(context, context.index(query), side)
                if answer and (which == "first" or context.count(query) == 1):
                    yield ["<bos>", *context, "<sep>", query], answer


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("which", "write"), [("unique", unique), ("first", first)])
def test_retrieval_is_right_on_every_short_input(which: str, side: str, write: Callable[..., Program]) -> None:
    program = write("abc", side)
    cases = list(retrievals("abc", 5, which, side))
    assert len(cases) >= 294
    for words, answer in cases[::7]:
        assert say(program, words, at=len(words) - 1) == answer
    assert_says(program, [(words, {len(words) - 1: answer}) for words, answer in cases])


def assert_says(program: Program, cases: Sequence[tuple[Sequence[str], dict[int, str]]]) -> None:
    """On a batch of all of them."""
    words_of = {word for words, right in cases for word in (*words, *right.values())}
    vocabulary = sorted(words_of | {*"abcde01", "<bos>", "<sep>", "<eos>"})
    tokens_BT = np.full((len(cases), max(len(words) for words, _ in cases)), -1)
    right_BT = np.full(tokens_BT.shape, -1)
    for row, (words, right) in enumerate(cases):
        tokens_BT[row, : len(words)] = [vocabulary.index(word) for word in words]
        right_BT[row, list(right)] = [vocabulary.index(word) for word in right.values()]
    assert (say_all(program, tokens_BT, vocabulary, right_BT != -1) == right_BT).all()


def answered(read: Sequence[str], answer: Sequence[str]) -> tuple[list[str], dict[int, str]]:
    whole = [*answer, "<eos>"]
    return ["<bos>", *read, "<sep>", *whole], {len(read) + 1 + at: word for at, word in enumerate(whole)}


@pytest.mark.parametrize(
    ("write", "right"), [(unique_copy, list), (unique_reverse, lambda read: list(reversed(read))), (sorting, sorted)]
)
def test_copying_reversing_and_sorting_are_right_on_every_short_input(
    write: Callable[[str], Program], right: Callable[[Sequence[str]], list[str]]
) -> None:
    inputs = [read for length in range(1, 6) for read in permutations("abcde", length)]
    assert_says(write("abcde"), [answered(read, right(read)) for read in inputs])
    words, answers = answered("cab", right("cab"))
    assert {at: say(write("abc"), words, at) for at in answers} == answers


def test_sorting_is_right_where_tokens_repeat() -> None:
    inputs = [read for length in range(1, 6) for read in product("abc", repeat=length)]
    assert_says(sorting("abc"), [answered(read, sorted(read)) for read in inputs])


@pytest.mark.parametrize("write", [unique_copy, unique_reverse])
def test_copying_goes_wrong_where_tokens_repeat(write: Callable[[str], Program]) -> None:
    words, right = answered("abac", "abac" if write is unique_copy else "caba")
    with pytest.raises(LabError, match=r"at position \d+ of '<bos> a b a c <sep>.*several predicates are true"):
        assert [say(write("abc"), words, at) for at in right]


def winner(read: Sequence[str]) -> str | None:
    ranked = sorted(set(read), key=read.count, reverse=True)
    return ranked[0] if len(ranked) == 1 or read.count(ranked[0]) > read.count(ranked[1]) else None


def test_majority_is_right_on_every_short_input_that_has_one() -> None:
    inputs = [read for length in range(1, 8) for read in product("abc", repeat=length) if winner(read)]
    assert_says(majority("abc"), [answered(read, [winner(read) or ""]) for read in inputs])


@pytest.mark.parametrize("period", [1, 2, 3])
def test_interleaved_majority_is_right_on_every_short_input(period: int) -> None:
    inputs = [read for rounds in range(1, 5) for read in product("01", repeat=rounds * period) if rounds * period <= 12]
    winners = {read: [winner(read[turn::period]) for turn in range(period)] for read in inputs}
    cases = [answered(read, [word or "" for word in won]) for read, won in winners.items() if all(won)]
    assert len(cases) > 8
    assert_says(interleaved_majority(period), cases[:1500])


TASKS: list[Task] = [
    *(kind(alphabet=alphabet) for kind in (UniqueLeft, UniqueRight, FirstLeft, FirstRight) for alphabet in (2, 6)),
    Copy(alphabet=2),
    Copy(alphabet=80),
    Reverse(alphabet=80),
    Majority(),
    BinaryMajority(),
    *map(BinaryMajorityInterleave, (1, 2, 3, 5)),
    Sort(),
    *(registered(Task)[name]() for name in ("tomita-4", "tomita-7", "D2", "D12", "(aaaa)*", "(abab)*")),
]
LISTED: list[Task] = [
    *(kind(alphabet=3) for kind in (UniqueLeft, UniqueRight, FirstLeft, FirstRight)),
    Copy(alphabet=5),
    Reverse(alphabet=5),
    Majority(alphabet=3),
    BinaryMajority(),
    BinaryMajorityInterleave(2),
    Sort(numbers=5),
    registered(Task)["tomita-4"](),
    registered(Task)["D2"](),
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_a_program_is_right_on_what_its_task_draws_short_and_long(task: Task) -> None:
    program = verdict(task).program
    assert program is not None
    trial = try_drawn(program, task)
    assert trial.wrong is None
    assert trial.longest >= min(150, 2 * (task.longest or 300))


@pytest.mark.parametrize("task", LISTED, ids=str)
def test_every_short_input_is_what_the_task_can_draw(task: Task) -> None:
    # Inputs are listed without the task: here they are held against what it draws.
    prompts = KNOWN[kind_of(task)].prompts
    assert prompts is not None
    for length in (task.shortest, task.shortest + 2):
        batch = task.sample(4000, (length, length), torch.Generator().manual_seed(0))
        (target_BT,) = batch.target.values()
        ends = [None if task.labels else row.index(True) + 1 for row in (target_BT >= 0).tolist()]
        drawn = {tuple(task.decode(row)[:end]) for row, end in zip(batch.tokens_BT, ends, strict=True)}
        assert drawn == set(prompts(task, length))


@pytest.mark.parametrize(
    ("task", "in_class", "lemma"),
    [
        (UniqueLeft(), "yes", "Lemma 4"),
        (UniqueRight(), "yes", "Lemma 4"),
        (FirstLeft(), "yes", "Lemma 5"),
        (FirstRight(), "yes", "Lemma 5"),
        (LastLeft(), "no", "Lemma 6"),
        (LastRight(), "no", "Lemma 6"),
        (Copy(alphabet=8), "yes", "Lemma 7"),
        (Reverse(alphabet=8), "yes", "Lemma 7"),
        (Copy(letters="repeated"), "no", "Lemma 8"),
        (Reverse(letters="repeated"), "no", "Lemma 8"),
        (Majority(), "yes", "Huang"),
        (BinaryMajority(), "yes", "Huang"),
        (BinaryMajorityInterleave(), "yes", "Huang"),
        (Sort(), "yes", "Huang"),
        (Parity(), "no", "Huang"),
        (BinaryAddition(), "no", "Lemma 8"),
        (registered(Task)["tomita-3"](), "unknown", "no proof"),
        (registered(Task)["tomita-4"](), "yes", "program here"),
        (registered(Task)["tomita-5"](), "no", "parity"),
        (ModuloRecall(), "unknown", "nobody"),
    ],
)
def test_what_the_paper_says_of_its_tasks(task: Task, in_class: str, lemma: str) -> None:
    found = verdict(task)
    assert (found.in_class, lemma in found.citation) == (in_class, True)
    assert (found.program is not None) == (in_class == "yes")


def test_whatever_is_in_the_class_has_a_program_and_a_list_of_inputs() -> None:
    for known in KNOWN.values():
        assert (known.in_class == "yes") == (known.program is not None) == (known.prompts is not None)


def test_a_wrong_program_is_found_with_the_first_input_that_shows_it() -> None:
    last = Program({a: back(token(a), 2) for a in "abc"})
    task = UniqueLeft(alphabet=3)
    trial = try_every(last, task, lambda length: KNOWN["unique-left"].prompts(task, length))  # type: ignore[misc]
    assert trial.wrong == "after '<bos> a b <sep> b' the program says b, and right is a"
    assert try_drawn(last, task).wrong is not None


@pytest.mark.parametrize("says", [{}, {"a": token("a") | token("b"), "b": token("b")}, {"b": exists(token("b") & token("a"))}])
def test_a_program_that_does_not_say_exactly_one_token_is_an_error_that_names_where(says: dict[str, Predicate]) -> None:
    with pytest.raises(LabError, match=r"says nothing|position 1 of 'a b' (no predicate is|several predicates are) true"):
        say(Program(says), "ab", at=1)
    with pytest.raises(LabError, match=r"says nothing|position 1 of 'a b' (no predicate is|several predicates are) true"):
        say_all(Program(says), np.array([[0, 1]]), ("a", "b"), np.array([[False, True]]))


@pytest.mark.parametrize("says", [{"b": token("A")}, {"B": token("a") | ~token("a")}])
def test_a_word_that_the_task_does_not_have_is_a_slip(says: dict[str, Predicate]) -> None:
    with pytest.raises(LabError, match=r"the program speaks of '[AB]', which is no word of the task"):
        say_all(Program(says), np.array([[0, 1]]), ("a", "b"), np.array([[False, True]]))


def test_one_name_for_two_lines_is_refused() -> None:
    with pytest.raises(LabError, match="two lines of a program are called 'X'"):
        Program({"a": token("a").named("X"), "b": token("b").named("X")})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Periodic(3, 3), "modulo 3 must be at most 2, not 3"),
        (lambda: Periodic(0, 0), "the period of a position must be at least 1"),
        (lambda: count(token("a"), (2, 1)), "from 2 to 1 positions back"),
        (lambda: count(token("a")) > "b", "must be a whole number, not 'b'"),
        (lambda: Program({"a": "b"}), "what a program says of 'a' is a str, not a predicate"),
    ],
)
def test_what_is_no_part_of_a_program_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(LabError, match=text):
        make()


def nested(depth: int) -> Callable[[str], bool]:
    def member(string: str) -> bool:
        opened = [string[:at].count("a") - string[:at].count("b") for at in range(len(string) + 1)]
        return min(opened) >= 0 and max(opened) <= depth and opened[-1] == 0

    return member


LANGUAGES: dict[str, tuple[str, Callable[[str], bool], Allowed]] = {
    "1*": ("01", lambda string: "0" not in string, languages.only("1")),
    "(10)*": ("10", lambda string: string == "10" * (len(string) // 2), languages.alternating("1", "0")),
    "not 000": ("01", lambda string: "000" not in string, languages.not_three("0", "1")),
    "0*1*0*1*": ("01", lambda string: re.fullmatch("0*1*0*1*", string) is not None, languages.four_runs("0", "1")),
    "(aa)*": ("a", lambda string: len(string) % 2 == 0, languages.repeated("a", 2)),
    "(aaaa)*": ("a", lambda string: len(string) % 4 == 0, languages.repeated("a", 4)),
    "(abab)*": ("ab", lambda string: string == "abab" * (len(string) // 4), languages.alternating("a", "b", times=2)),
    **{f"D{depth}": ("ab", nested(depth), languages.dyck(depth)) for depth in (1, 2, 3, 4)},
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_is_told_by_what_may_follow_each_beginning(name: str) -> None:
    symbols, member, allowed = LANGUAGES[name]
    endings = ["".join(ending) for length in range(5) for ending in product(symbols, repeat=length)]

    def begins(read: str) -> bool:
        return any(member(read + ending) for ending in endings)

    def following(read: str) -> str:
        return f"{{{''.join(s for s in symbols if begins(read + s))}{'$' if member(read) else ''}}}"

    beginnings = ["".join(read) for length in range(1, 8) for read in product(symbols, repeat=length)]
    right = {read: following(read) for read in beginnings if begins(read)}
    assert len(right) >= 7
    program = languages.of_sets(allowed, sorted(set(right.values())))
    assert_says(program, [(["<bos>", *read], {len(read): word}) for read, word in right.items()])
