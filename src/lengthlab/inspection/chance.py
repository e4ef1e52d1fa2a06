"""How often a blind guess is right, measured: the best answer that does not read the sequence, against what a task states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from lengthlab.inspection.draws import Draws
from lengthlab.inspection.verdict import Seen
from lengthlab.store.interval import wilson
from lengthlab.tasks import ALL, Mixture

Answer = tuple[str, ...]
RARE = 3


def compare_chance(draws: Draws, errors: float, apart: float = 0.0) -> Seen:
    """What the task states against the best blind guess at each length. They differ where they are further apart than so many
    standard errors of what was measured, and than `apart`.

    >>> from lengthlab.tasks import ModuloRecall
    >>> compare_chance(Draws(ModuloRecall(modulus=2, keys=8), lengths=(4,), each=400), errors=4.0)
    (True, 'at n = 4: modulo 0.5 stated, 0.49 measured; recall 0.1 stated, 0.11 measured; all 0.05 stated, 0.06 measured')
    """
    told = []
    for n in draws.lengths:
        stated, found = draws.task.chances(n), []
        for question, answers in _asked(draws, n):
            if question not in stated or not 0 <= stated[question] <= 1:
                return (
                    False,
                    f"chance({n}) gives {stated.get(question)} for '{question}'; what is needed is a share from 0 to 1",
                )
            guess, right, total = _blind(answers)
            low, high = wilson(right, total, errors)
            measured, own = right / total, stated[question]
            rare = right <= RARE and own <= high  # a hit or two of what hardly ever happens say nothing
            if not low <= own <= high and not rare and abs(measured - own) > apart:
                always = f"always to answer '{' '.join(guess)}' is right in {measured:.3g} of {total:,} samples"
                return False, f"chance states {own:.3g} for '{question}' at n = {n}, and {always}"
            found.append(f"{question} {own:.3g} stated, {measured:.3g} measured")
        told.append(f"at n = {n}: {'; '.join(found)}")
    return True, told[-1]


def _asked(draws: Draws, n: int) -> Iterator[tuple[str, list[Answer]]]:
    """The answers of the samples of a length, by question, and of several questions together: `all` of them."""
    rows = [row for row, own in enumerate(draws.n_B.tolist()) if own == n]
    answers = {question: [every[row] for row in rows] for question, every in draws.answers.items()}
    for question, every in answers.items():
        if asked := [answer for answer in every if answer]:  # a sample of a mixture asks the questions of its own task
            yield question, asked
    if len(answers) > 1 and not isinstance(draws.task, Mixture):
        yield ALL, [sum(each, ()) for each in zip(*answers.values(), strict=True)]


def _blind(answers: Sequence[Answer]) -> tuple[Answer, int, int]:
    """The best guess, and how often it is right. It is chosen on one half of the samples and counted on the other: counted on
    its own half, it would look better than it is.
    """
    chosen, counted = answers[::2], answers[1::2] or answers
    whole = Counter(chosen).most_common(1)[0][0]
    by_token = tuple(Counter(column).most_common(1)[0][0] for column in zip_longest(*chosen, fillvalue=""))
    right = {guess: sum(answer == guess for answer in counted) for guess in (whole, by_token)}
    best = max(right, key=right.__getitem__)
    return best, right[best], len(counted)
