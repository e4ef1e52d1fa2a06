"""What a rule of a user's own is given: each parameter says it by its type. The rule is read, never run.

| parameter | is given, at length n |
|---|---|
| `xs`, `xs: list[int]` | n digits |
| `xs: list[bool]` | n truth values, each with probability one half |
| `xs: list[str]` | n words of 2 to 5 letters, each of 26 drawn evenly |
| `k: int` | a digit |
| `k: bool` | a truth value |
| `k: str` | a word |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

from lengthlab.errors import LabError
from lengthlab.rules.exercise import Inputs, Share, draw_word, some_flips, some_words, words_share
from lengthlab.rules.rule import Rule


@dataclass(frozen=True)
class Parameter:
    """`draw(n, random)` is what it is given, `share(n)` how often the likeliest of that comes up."""

    draw: Callable[[int, Random], Any]
    share: Share


def some_digits(n: int, random: Random) -> list[int]:
    """
    >>> some_digits(3, Random(0))
    [8, 7, 4]
    """
    return random.choices(range(10), k=n)


TYPES = {
    "list[int]": Parameter(some_digits, lambda n: 0.1**n),
    "list[bool]": Parameter(lambda n, random: some_flips(n, random)[0], lambda n: 0.5**n),
    "list[str]": Parameter(lambda n, random: some_words(n, random)[0], words_share),
    "int": Parameter(lambda n, random: random.randrange(10), lambda n: 0.1),
    "bool": Parameter(lambda n, random: random.random() < 0.5, lambda n: 0.5),
    "str": Parameter(lambda n, random: draw_word(random), lambda n: words_share(1)),
}
UNTYPED = TYPES["list[int]"]


def own_inputs(rule: Rule) -> Inputs:
    """What draws the inputs of a rule, by the types of its parameters.

    >>> own_inputs(Rule.of("def rotate(xs: list[bool], k: int):\\n    return xs[k:] + xs[:k]"))(3, Random(0))
    ([True, True, False], 4)
    """
    drawn = own_parameters(rule)
    return lambda n, random: tuple(each.draw(n, random) for each in drawn)


def likeliest_own_input(rule: Rule, n: int) -> float:
    """How often the likeliest input of a length comes up.

    >>> likeliest_own_input(Rule.of("def rotate(xs: list[bool], k: int):\\n    return xs[k:] + xs[:k]"), 3)
    0.0125
    """
    return prod(each.share(n) for each in own_parameters(rule))


def own_parameters(rule: Rule) -> list[Parameter]:
    """The parameters of a rule, one after another.

    >>> own_parameters(Rule.of("def half(x: float):\\n    return x"))
    Traceback (most recent call last):
    lengthlab.errors.LabError: rule 'half': nothing is drawn for 'x: float'; write list[int], list[bool], list[str], int, bool \
or str, or no type for a list of digits
    """
    types = rule.types or ("",) * len(rule.parameters)
    return [_parameter(rule.name, name, written) for name, written in zip(rule.parameters, types, strict=True)]


def _parameter(rule: str, name: str, written: str) -> Parameter:
    found = TYPES.get(written.replace(" ", "")) if written else UNTYPED
    if found is None:
        *most, last = TYPES
        known = f"write {', '.join(most)} or {last}, or no type for a list of digits"
        raise LabError(f"rule '{rule}': nothing is drawn for '{name}: {written}'; {known}")
    return found
