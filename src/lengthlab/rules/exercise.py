"""A rule with the inputs it is practised on: what a length means, and how likely the likeliest input and answer are.

| exercise | length n | inputs |
|---|---|---|
| addition, base-9 | digits of one number | the other, the first or the second by a coin, has 1 to n digits, evenly |
| last-letters | words | of 2 to 5 letters, each of 26 drawn evenly |
| coin-flips | people | each flips with probability one half |
| digit-sum | digits | a number |

No number begins with 0, unless it has one digit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from string import ascii_lowercase
from typing import Any

from lengthlab.errors import LabError, nearest
from lengthlab.rules import written
from lengthlab.rules.rule import Rule

LONGEST = 500
"""A length beyond would have longer traces than rules are given steps (rule.py)."""
LETTERS = ascii_lowercase
WORD = (2, 5)
"""Letters of a word, from and to."""

Inputs = Callable[[int, Random], tuple[Any, ...]]
Share = Callable[[int], float]


@dataclass(frozen=True)
class Exercise:
    """`inputs(n, random)` draws what a rule is given; the other two are how often a blind guess is right at a length."""

    rule: Rule
    inputs: Inputs
    likeliest_answer: Share
    likeliest_input: Share
    letters: bool = False
    """Whether texts come up."""


def draw_number(digits: int, random: Random, base: int = 10) -> list[int]:
    """The digits of a number.

    >>> draw_number(3, Random(0))
    [5, 7, 4]
    """
    number = random.choices(range(base), k=digits)
    if digits > 1:
        number[0] = random.randrange(1, base)
    return number


def two_numbers(n: int, random: Random, base: int = 10) -> tuple[list[int], list[int]]:
    """One of n digits, and one of 1 to n."""
    one, other = draw_number(n, random, base), draw_number(random.randint(1, n), random, base)
    return (one, other) if random.random() < 0.5 else (other, one)


def draw_word(random: Random) -> str:
    return "".join(random.choices(LETTERS, k=random.randint(*WORD)))


def some_words(n: int, random: Random) -> tuple[list[str]]:
    return ([draw_word(random) for _ in range(n)],)


def some_flips(n: int, random: Random) -> tuple[list[bool]]:
    return (random.choices((False, True), k=n),)


def one_number(n: int, random: Random) -> tuple[list[int]]:
    return (draw_number(n, random),)


def _number_share(n: int, base: int = 10) -> float:
    """Of each number of n digits."""
    return 1 / base if n == 1 else 1 / (base - 1) * float(base) ** (1 - n)


def _pair_share(n: int, base: int) -> float:
    """Of the likeliest two: with more than one digit, those whose shorter number has one."""
    return _number_share(n, base) / base / (2 * n if n > 1 else 1)


def words_share(n: int) -> float:
    """Of the likeliest n words: those of the fewest letters."""
    return float(len(LETTERS) ** WORD[0] * (WORD[1] - WORD[0] + 1)) ** -n


def _rule(name: str) -> Rule:
    return Rule.of(inspect.getsource(written), name)


EXERCISES = {
    "addition": Exercise(
        _rule("addition"),
        partial(two_numbers, base=10),
        partial(
            _number_share, base=10
        ),  # whatever the other is, a sum is no likelier than a number; of one digit, 9 is as likely
        partial(_pair_share, base=10),
    ),
    "base-9": Exercise(
        _rule("base_9"), partial(two_numbers, base=9), partial(_number_share, base=9), partial(_pair_share, base=9)
    ),
    "last-letters": Exercise(_rule("last_letters"), some_words, lambda n: float(len(LETTERS)) ** -n, words_share, letters=True),
    "coin-flips": Exercise(_rule("coin_flips"), some_flips, lambda n: 0.5, lambda n: 0.5**n),
    "digit-sum": Exercise(_rule("digit_sum"), one_number, lambda n: 0.1 if n == 1 else 1 / 9, _number_share),
}


def exercise(name: str) -> Exercise:
    """One of ours by name.

    >>> exercise("adition")
    Traceback (most recent call last):
    lengthlab.errors.LabError: there is no rule 'adition'; did you mean 'addition'?
    """
    if name not in EXERCISES:
        raise LabError(f"there is no rule '{name}'; {nearest(name, EXERCISES)}")
    return EXERCISES[name]


def is_own(name: str) -> bool:
    """Whether a name is of a user's file.

    >>> is_own("my_rule.py:merge"), is_own("my_rule.py"), is_own("addition")
    (True, True, False)
    """
    return name not in EXERCISES and (":" in name or name.endswith(".py"))
