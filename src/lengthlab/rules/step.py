"""What a rule does, line by line, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Scalar = int | str
"""A whole number, a truth value (which Python counts among whole numbers) or a text."""
Value = Scalar | tuple[Scalar, ...]
"""What a variable holds, kept: a list is a tuple here, so that nobody changes it afterwards."""
Kind = Literal["set", "if", "while", "for", "break", "continue", "return"]

LOOPS = ("while", "for")
JUMPS = ("break", "continue")
TO_COME = "to come"
"""What a `for` loop has still to go through stands beside its variables under this name, which no variable can have."""


class Step(NamedTuple):
    """One line, carried out once.

    `before` are the variables that it reads, as they were, `after` those that it changes, as they are then. `value` is what a
    condition comes to (does the loop take a turn?), what is returned, or the line of the loop that `break` or `continue` is of.
    `notes` are sums worked out and parts of a condition, written with the values in the place of the names; they are there if
    the rule was traced with them.
    """

    line: int
    kind: Kind
    before: tuple[tuple[str, Value], ...]
    after: tuple[tuple[str, Value], ...]
    value: Value | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """All steps of a rule on one input."""

    inputs: tuple[tuple[str, Value], ...]
    steps: tuple[Step, ...]

    @property
    def answer(self) -> Value:
        value = self.steps[-1].value
        assert value is not None
        return value

    @property
    def turns(self) -> dict[int, int]:
        """How many turns the loop of each line took in all; a loop that was never reached is not there."""
        found: dict[int, int] = {}
        for step in self.steps:
            if step.kind in LOOPS:
                found[step.line] = found.get(step.line, 0) + bool(step.value)
        return found


def kept(value: object) -> Value:
    """A value as it is now.

    >>> kept([1, 2]), kept(3)
    ((1, 2), 3)
    """
    return tuple(value) if type(value) is list else value  # type: ignore[return-value]


def shown(value: Value) -> str:
    """A value as Python writes it.

    >>> shown((5, 9)), shown(True), shown("ab")
    ('[5, 9]', 'True', "'ab'")
    """
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are the same, truth values told from numbers.

    >>> same((1, 2), (1, 2)), same(True, 1)
    (True, False)
    """
    return repr(one) == repr(other)
