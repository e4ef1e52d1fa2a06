"""A program read on one sequence, position by position, as slowly and obviously as its definition: the reference."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lengthlab.theory.primitives import (
    And,
    Choice,
    Compare,
    Constant,
    Count,
    Difference,
    NamedCount,
    NamedPredicate,
    Not,
    Or,
    Periodic,
    Positions,
    Predicate,
    Sum,
    Token,
)
from lengthlab.theory.program import Program

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "≥": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "≤": operator.le,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Reading:
    """One sequence, at each position of which predicates are true or not and counts are numbers.

    >>> from lengthlab.theory.primitives import count, token
    >>> reading = Reading(("a", "b", "a"))
    >>> [reading.number(count(token("a")), at) for at in range(3)]
    [1, 1, 2]
    """

    words: Sequence[str]
    known: dict[tuple[str, int], int] = field(default_factory=dict)
    """What a named line came to at a position."""

    def true(self, predicate: Predicate, i: int) -> bool:
        match predicate:
            case Token(word):
                return self.words[i] == word
            case Periodic(period, remainder):
                return i % period == remainder
            case Not(part):
                return not self.true(part, i)
            case And(parts):
                return all(self.true(part, i) for part in parts)
            case Or(parts):
                return any(self.true(part, i) for part in parts)
            case Compare(left, sign, right):
                return SIGNS[sign](self.number(left, i), self.number(right, i))
            case NamedPredicate(name, value):
                if (name, i) not in self.known:
                    self.known[name, i] = self.true(value, i)
                return bool(self.known[name, i])
        raise TypeError(f"{predicate!r} is no predicate")

    def number(self, count: Count, i: int) -> int:
        match count:
            case Constant(number):
                return number
            case Positions(where, within):
                near, far = within or (0, i)
                return sum(self.true(where, j) for j in range(i + 1) if near <= i - j <= far)
            case Sum(left, right):
                return self.number(left, i) + self.number(right, i)
            case Difference(left, right):
                return self.number(left, i) - self.number(right, i)
            case Choice(where, then, otherwise):
                return self.number(then if self.true(where, i) else otherwise, i)
            case NamedCount(name, value):
                if (name, i) not in self.known:
                    self.known[name, i] = self.number(value, i)
                return self.known[name, i]
        raise TypeError(f"{count!r} is no count")


def say(program: Program, words: Sequence[str], at: int) -> str:
    """The word that comes after position `at`, by the program.

    >>> from lengthlab.theory.primitives import token
    >>> say(Program({"b": token("a"), "a": token("b")}), ("a", "b"), at=1)
    'a'
    """
    reading = Reading(words[: at + 1])
    return program.one_of([word for word, is_next in program.says.items() if reading.true(is_next, at)], words, at)
