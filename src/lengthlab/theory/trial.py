"""A program held against its task: on every short input, and on long ones that are drawn.

Shapes: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from lengthlab.errors import LabError, cut, explain, require
from lengthlab.theory.batches import say_all
from lengthlab.theory.program import Program

if TYPE_CHECKING:
    from lengthlab.tasks import Task

Prompts = Callable[[int], Iterable[Sequence[str]]]
"""Every input of a length: its words up to where the answer begins."""
SHORT, SHORT_EACH = 10, 20
"""So many lengths are drawn besides the long ones, and so many inputs of each."""
LONG_TOKENS, LONG_EACH = (150, 300), 5
"""Tokens of the long ones, about, and how many of each."""
MOST, LONGEST = 4000, 40
"""Inputs that are listed, and their length: every length as long as all of it fits."""
CELLS, CELLS_OF_LINES = 2**16, 2**27
"""Tokens that are read at once; and times the lines of the program, each of which is kept until all are read."""


@dataclass(frozen=True)
class Case:
    """One written sequence, and the word that is right after each position that asks."""

    words: tuple[str, ...]
    answers: Mapping[int, str]


@dataclass(frozen=True)
class Trial:
    """On how many inputs a program was held against what the task's `solve` says, and the first that it gets wrong."""

    inputs: int
    longest: int
    """Of all inputs of up to this length; of drawn ones, tokens of the longest sequence."""
    wrong: str | None = None


def try_every(program: Program, task: Task, prompts: Prompts, most: int = MOST) -> Trial:
    """On every input of the shortest length, the next, … as long as there are no more than `most` in all."""
    tried, reached = 0, 0
    for length in range(task.shortest, min(task.longest or LONGEST, LONGEST) + 1):
        listed = list(islice(prompts(length), most - tried + 1))
        if tried + len(listed) > most:
            break
        wrong = first_wrong(program, task.words, (_prompted(task, prompt) for prompt in listed))
        tried, reached = tried + len(listed), length if listed else reached
        if wrong:
            return Trial(tried, reached, wrong)
    return Trial(tried, reached)


def try_drawn(program: Program, task: Task) -> Trial:
    """On some of each short length, and on some of 150 to 300 tokens, or as long as the task reaches."""
    short = range(task.shortest, task.shortest + SHORT)
    plan = {length: SHORT_EACH for length in short if length <= (task.longest or length)}
    plan |= {_length_of(task, tokens): LONG_EACH for tokens in LONG_TOKENS}
    cases = [case for length, each in plan.items() for case in _drawn(task, length, each)]
    return Trial(len(cases), max(len(case.words) for case in cases), first_wrong(program, task.words, cases))


def first_wrong(program: Program, vocabulary: Sequence[str], cases: Iterable[Case]) -> str | None:
    """The first case that a program gets wrong, in a sentence; None if there is none.

    >>> from lengthlab.theory.primitives import token
    >>> always_b = Program({"b": token("a") | ~token("a")})
    >>> first_wrong(always_b, ("a", "b"), [Case(("a", "b"), {0: "b"}), Case(("a", "a"), {1: "a"})])
    "after 'a a' the program says b, and right is a"
    """
    ids = {word: at for at, word in enumerate(vocabulary)}
    cells = min(CELLS, CELLS_OF_LINES // (1 + len(program.lines)))
    for some in _chunks(sorted(cases, key=lambda case: len(case.words)), cells):
        tokens_BT = np.zeros((len(some), max(len(case.words) for case in some)), dtype=np.int64)
        right_BT = np.full(tokens_BT.shape, -1, dtype=np.int64)
        for row, case in enumerate(some):
            tokens_BT[row, : len(case.words)] = [ids[word] for word in case.words]
            for at, word in case.answers.items():
                right_BT[row, at] = ids.get(word, -2)
        try:
            said_BT = say_all(program, tokens_BT, vocabulary, right_BT != -1)
        except LabError as error:
            return str(error)
        wrong = np.argwhere(said_BT != right_BT)
        if len(wrong):
            row, at = map(int, wrong[0])
            read, said = cut(" ".join(some[row].words[: at + 1]), 200), vocabulary[said_BT[row, at]]
            return f"after '{read}' the program says {said}, and right is {some[row].answers[at]}"
    return None


def _chunks(cases: Sequence[Case], cells: int) -> Iterator[Sequence[Case]]:
    """Cases in groups of no more tokens, with padding, than `cells`; the shortest first."""
    group: list[Case] = []
    for case in cases:
        if group and (len(group) + 1) * len(case.words) > cells:
            yield group
            group = []
        group.append(case)
    if group:
        yield group


def _prompted(task: Task, prompt: Sequence[str]) -> Case:
    """An input with the answer that `solve` has for it, asked from the last word of the input on. Labels are of what is read,
    from the second word on.
    """
    answer = tuple(word for words in _solved(task, prompt).values() for word in words)
    if task.labels:
        return Case(tuple(prompt), dict(enumerate(answer, start=1)))
    return Case((*prompt, *answer), dict(enumerate(answer, start=len(prompt) - 1)))


def _drawn(task: Task, length: int, each: int) -> Iterator[Case]:
    """Sequences as the task draws them, asked where it asks, with the answers of `solve`."""
    from torch import Generator

    from lengthlab.tasks import IGNORE

    batch = task.sample(each, (length, length), Generator().manual_seed(length))
    for row, tokens_T in enumerate(batch.tokens_BT):
        words = task.decode(tokens_T)
        answers: dict[int, str] = {}
        for question, said in _solved(task, words).items():
            asked = [at for at, token in enumerate(batch.target[question][row].tolist()) if token != IGNORE]
            told = f"'{question}' is asked {len(asked)} times of '{cut(' '.join(words))}', and solve has {len(said)} words"
            require(len(asked) == len(said), f"task '{task.name}': {told}; see lengthlab check")
            answers |= zip(asked, said, strict=True)
        yield Case(tuple(words), answers)


def _solved(task: Task, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    try:
        return task.solve(words)
    except Exception as error:  # a user's own solve
        raise LabError(f"task '{task.name}' cannot solve '{cut(' '.join(words))}': {explain(error)}") from error


def _length_of(task: Task, tokens: int) -> int:
    """The greatest length with so many tokens at most; half as many, if the task does not tell."""
    most = min(tokens, task.longest or tokens)
    fitting = [length for length in range(task.shortest, most + 1) if (task.tokens(length) or 2 * length) <= tokens]
    return fitting[-1] if fitting else task.shortest
