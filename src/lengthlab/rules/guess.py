"""How often a blind guess is right where nobody has worked it out: counted on samples, for rules of users and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from random import Random

from lengthlab.rules.exercise import Exercise
from lengthlab.rules.parameters import likeliest_own_input, own_inputs
from lengthlab.rules.rule import Rule
from lengthlab.rules.step import shown
from lengthlab.rules.wording import Form, Wording, has_letters

CHOSEN, GUESSED = 1_000, 2_000
"""Samples by which the best guess is chosen, and others on which it is counted: on its own, it would look better than it is."""
SETTLED, RARE = 20, 3
"""Beyond this length it stays as it is; what came up so seldom came up by chance."""


def commonest(drawn: Callable[[Random], Hashable]) -> float:
    """The share of what is drawn most often.

    >>> commonest(lambda random: random.random() < 0.25)
    0.7555
    """
    random = Random(0)
    guess = Counter(drawn(random) for _ in range(CHOSEN)).most_common(1)[0][0]
    return sum(drawn(random) == guess for _ in range(GUESSED)) / GUESSED


@lru_cache(maxsize=64)
def own_exercise(rule: Rule) -> Exercise:
    """A rule of a user's own with inputs by the types of its parameters.

    >>> evens = own_exercise(Rule.of("def evens(xs):\\n    n = 0\\n    for x in xs:\\n        n += 1 - x % 2\\n    return n"))
    >>> round(evens.likeliest_answer(2), 1), round(evens.likeliest_input(2), 3), evens.letters
    (0.5, 0.01, False)
    """
    inputs, whole = own_inputs(rule), partial(likeliest_own_input, rule)
    return Exercise(rule, inputs, partial(_likeliest_answer, rule), whole, has_letters(rule))


@lru_cache(maxsize=256)
def likeliest_words(rule: Rule, form: Form, n: int) -> float:
    """The same of all that is said in a form. Where nothing comes up often, it is taken to tell the whole input."""
    draw, wording, settled = own_inputs(rule), Wording(rule, {}), min(n, SETTLED)
    share = commonest(lambda random: tuple(wording.answer(rule.trace(*draw(settled, random)), form)))
    return share if share * GUESSED > RARE else likeliest_own_input(rule, n)


@lru_cache(maxsize=256)
def _likeliest_answer(rule: Rule, n: int) -> float:
    draw, settled = own_inputs(rule), min(n, SETTLED)
    return commonest(lambda random: shown(rule.trace(*draw(settled, random)).answer))
