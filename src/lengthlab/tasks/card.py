"""A task at a glance: a sample, what is scored, and what scores mean nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc

import torch

from lengthlab.errors import LabError, a_kind
from lengthlab.tasks.batch import IGNORE
from lengthlab.tasks.task import ALL, Guess, Task

SAMPLES = 2000


@dataclass(frozen=True)
class Card:
    """`sample` is one sequence; `scored` are the places in it that count: those of the answers, or of what has labels.
    `answers` are their words; `trivial` holds accuracies that need no learning.
    """

    name: str
    about: str
    """The first paragraph of the docstring of the task's class."""
    sample: tuple[str, ...]
    scored: Mapping[str, tuple[int, ...]]
    answers: Mapping[str, tuple[str, ...]]
    chance: Mapping[str, float]
    vocabulary: int
    shortest: int
    longest: int | None
    trivial: Mapping[str, Mapping[str, float]]
    trivial_length: int
    """Of the samples on which trivial answers are scored; chance is that of this length, too."""


@dataclass(frozen=True)
class Sample:
    """One sequence, and the places in it that count, by question; `answers` are their words."""

    words: tuple[str, ...]
    scored: Mapping[str, tuple[int, ...]]
    answers: Mapping[str, tuple[str, ...]]


def sample_of(task: Task, length: int = 5, generator: torch.Generator | None = None) -> Sample:
    """A sample of that length, or of the nearest that the task has.

    >>> from lengthlab.tasks import ModuloRecall
    >>> sample_of(ModuloRecall(keys=32), 2).scored
    {'modulo': (6,), 'recall': (9,)}
    """
    generator = generator or torch.Generator().manual_seed(0)
    batch = task.sample(1, (_reached(task, length),) * 2, generator)
    targets = {question: target_BT[0].tolist() for question, target_BT in batch.target.items()}
    return Sample(
        tuple(task.decode(batch.tokens_BT[0])),
        {question: _scored(task, target) for question, target in targets.items()},
        {question: _answer(task, target) for question, target in targets.items()},
    )


def card(task: Task, sample_length: int = 5, trivial_length: int = 25) -> Card:
    """The card of a task; trivial answers are scored on 2,000 samples of `trivial_length`.

    >>> from lengthlab.tasks import ModuloRecall
    >>> made = card(ModuloRecall(keys=32))
    >>> made.vocabulary, made.scored, [made.sample[place] for (place,) in made.scored.values()]
    (46, {'modulo': (12,), 'recall': (15,)}, ['5', '2'])
    """
    generator = torch.Generator().manual_seed(0)
    sample, trivial_length = sample_of(task, sample_length, generator), _reached(task, trivial_length)
    many = task.sample(SAMPLES, (trivial_length,) * 2, generator)
    sequences = [task.decode(tokens) for tokens in many.tokens_BT]
    truths = [_solved(task, words) for words in sequences]
    for row, (words, truth) in enumerate(zip(sequences, truths, strict=True)):
        _hold(task, words, {question: target_BT[row].tolist() for question, target_BT in many.target.items()}, truth)
    guesses: dict[str, Guess] = {"always the commonest answer": _commonest(truths), **task.guesses}
    return Card(
        name=task.name,
        about=_about(task),
        sample=sample.words,
        scored=sample.scored,
        answers=sample.answers,
        chance=task.chances(trivial_length),
        vocabulary=task.vocabulary,
        shortest=task.shortest,
        longest=task.longest,
        trivial={name: _score(guess, sequences, truths) for name, guess in guesses.items()},
        trivial_length=trivial_length,
    )


def _reached(task: Task, length: int) -> int:
    """A length, or the nearest that can be drawn. A task that begins beyond it is shown so much longer than it has to be: in
    the shortest sequence of a passkey there is no noise.
    """
    wanted = length if length >= task.shortest else task.shortest + length
    return min(wanted, task.longest or wanted)


def _about(task: Task) -> str:
    """The first paragraph of its class's docstring, unless that is what `dataclass` writes where there is none."""
    text = cleandoc(type(task).__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return "" if text.startswith(f"{type(task).__name__}(") else text


def _hold(task: Task, words: Sequence[str], targets: Mapping[str, Sequence[int]], truth: Mapping[str, tuple[str, ...]]) -> None:
    """What `draw` wrote as an answer against what `solve` says."""
    for question, target in targets.items():
        written = _answer(task, target)
        if truth.get(question, ()) != written:
            said = f"solve answers {question} by {truth.get(question, ())}, draw wrote {written}"
            raise LabError(f"task '{task.name}': of {' '.join(words)} {said}; one of the two is wrong")


def _scored(task: Task, target: Sequence[int]) -> tuple[int, ...]:
    """The tokens that are answers: each comes right after the position that asks for it. A label is of the position itself."""
    return tuple(place + (not task.labels) for place, token in enumerate(target) if token != IGNORE)


def _answer(task: Task, target: Sequence[int]) -> tuple[str, ...]:
    vocabulary = task.words  # made anew at every look
    return tuple(vocabulary[token] for token in target if token != IGNORE)


def _solved(task: Task, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    answers: object = task.solve(words)
    if not isinstance(answers, Mapping):
        raise LabError(f"task '{task.name}': solve gave {a_kind(answers)}, and has to give words by question")
    return _words(answers)


def _words(answers: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {question: tuple(words) for question, words in answers.items()}


def _commonest(truths: Sequence[Mapping[str, tuple[str, ...]]]) -> Guess:
    best = {question: Counter(answers).most_common(1)[0][0] for question, answers in _by_question(truths).items()}
    return lambda words: best


def _by_question(truths: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, list[tuple[str, ...]]]:
    """The answers of the samples that ask it: in a mixture a sample asks the questions of its own task."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for truth in truths:
        for question, answer in truth.items():
            found.setdefault(question, []).append(answer)
    return found


def _score(guess: Guess, sequences: Sequence[list[str]], truths: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, float]:
    hits = []
    for words, truth in zip(sequences, truths, strict=True):
        guessed = _words(guess(words))
        hits.append({question: guessed.get(question) == answer for question, answer in truth.items()})
    asked = {question: [hit[question] for hit in hits if question in hit] for question in _by_question(truths)}
    scores = {question: sum(right) / len(right) for question, right in asked.items()}
    return scores | {ALL: sum(all(hit.values()) for hit in hits) / len(hits)}
