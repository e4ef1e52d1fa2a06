"""A task at a glance: a sample, what is scored, and what scores mean nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from lengthlab.tasks.task import Guess, Task

SAMPLES = 2000


@dataclass(frozen=True)
class Card:
    """`sample` is one sequence; `scored` are the places in it that count; `trivial` holds accuracies that need no learning."""

    name: str
    sample: tuple[str, ...]
    scored: Mapping[str, int]
    chance: Mapping[str, float]
    vocabulary: int
    longest: int | None
    trivial: Mapping[str, Mapping[str, float]]
    trivial_length: int


def card(task: Task, sample_length: int = 5, trivial_length: int = 25) -> Card:
    """The card of a task; trivial answers are scored on 2,000 samples of `trivial_length`.

    >>> from lengthlab.tasks import ModuloRecall
    >>> made = card(ModuloRecall(keys=32))
    >>> made.vocabulary, [made.sample[place] for place in made.scored.values()]
    (46, ['5', '2'])
    """
    generator = torch.Generator().manual_seed(0)
    limit = task.longest or trivial_length
    batch = task.sample(1, (min(sample_length, limit),) * 2, generator)
    trivial_length = min(trivial_length, limit)
    many = task.sample(SAMPLES, (trivial_length,) * 2, generator)
    sequences = [task.decode(tokens) for tokens in many.tokens_BT]
    truths = [task.solve(words) for words in sequences]
    guesses: dict[str, Guess] = {"always the commonest answer": _commonest(truths), **task.guesses}
    return Card(
        name=task.name,
        sample=tuple(task.decode(batch.tokens_BT[0])),
        scored={question: int(answer.position_B[0]) + 1 for question, answer in batch.answers.items()},
        chance=task.chance,
        vocabulary=task.vocabulary,
        longest=task.longest,
        trivial={name: _score(guess, sequences, truths) for name, guess in guesses.items()},
        trivial_length=trivial_length,
    )


def _commonest(truths: Sequence[Mapping[str, str]]) -> Guess:
    best = {question: Counter(truth[question] for truth in truths).most_common(1)[0][0] for question in truths[0]}
    return lambda words: best


def _score(guess: Guess, sequences: Sequence[list[str]], truths: Sequence[Mapping[str, str]]) -> dict[str, float]:
    hits = [
        {question: guess(words)[question] == answer for question, answer in truth.items()}
        for words, truth in zip(sequences, truths, strict=True)
    ]
    scores = {question: sum(hit[question] for hit in hits) / len(hits) for question in truths[0]}
    return scores | {"both": sum(all(hit.values()) for hit in hits) / len(hits)}
