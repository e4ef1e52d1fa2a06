"""A number that changes with the steps, and a draw for each of them that needs no random state."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from operator import index
from typing import Any

from lengthlab.errors import LabError, cut, require

Course = tuple[tuple[int, float], ...]
"""From that step on, that value; nothing before the first."""


def course(given: Any, name: str, most: float, whole: bool = False) -> Course:
    """What a user wrote: one number for all steps, or pairs of a step and the number that holds from there on.

    >>> course(0.5, "p", 1.0), course([(0, 0.25), (1_000, 0.5)], "p", 1.0)
    (((0, 0.5),), ((0, 0.25), (1000, 0.5)))
    """
    pairs = given if isinstance(given, Sequence) and not isinstance(given, str) else [(0, given)]
    paired = len(pairs) > 0 and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs)
    require(paired, f"{name} is a number, or pairs of a step and a number, like [[0, {1 if whole else 0.5}]], not {given!r}")
    made = tuple((_step(step, name), _value(value, name, most, whole)) for step, value in pairs)
    steps = [step for step, _ in made]
    require(steps == sorted(set(steps)), f"the steps of {name} go up from pair to pair, not {steps}")
    return made


def value_at(pairs: Course, step: int) -> float:
    """
    >>> [value_at(((10, 0.5), (20, 1.0)), step) for step in (9, 10, 25)]
    [0.0, 0.5, 1.0]
    """
    return next((value for start, value in reversed(pairs) if step >= start), 0.0)


def draw(seed: int, step: int) -> float:
    """A number from 0 up to 1 of a seed and a step alone: every process draws the same, and so does one that is resumed.

    >>> draw(0, 7) == draw(0, 7), draw(0, 7) == draw(0, 8)
    (True, False)
    """
    digest = sha256(f"{seed}/{step}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def whole_seed(seed: Any) -> int:
    require(isinstance(seed, int) and not isinstance(seed, bool), f"seed must be a whole number, not {cut(repr(seed))}")
    return int(seed)


def _step(step: Any, name: str) -> int:
    try:
        made = index(step)
    except TypeError:
        raise LabError(f"a step of {name} must be a whole number, not {step!r}") from None
    require(made >= 0, f"a step of {name} must be at least 0, not {made}")
    return made


def _value(value: Any, name: str, most: float, whole: bool) -> float:
    number = isinstance(value, int) if whole else isinstance(value, (int, float))
    require(number and not isinstance(value, bool), f"{name} must be a {'whole ' * whole}number, not {value!r}")
    fits = (value >= 1) if whole else (0 <= value <= most)
    require(fits, f"{name} must be {'at least 1' if whole else f'from 0 to {most:g}'}, not {value}")
    return int(value) if whole else float(value)
