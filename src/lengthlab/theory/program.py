"""A program: for each token that can be said, a predicate 'this one is next'.

A yes/no question is two such tokens. A program that is right says exactly one of them wherever it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lengthlab.errors import LabError, a_kind, cut, require
from lengthlab.theory.primitives import And, Expression, Named, NamedCount, NamedPredicate, Or, Predicate


@dataclass(frozen=True)
class Program:
    """`says[word]` is true where `word` comes next.

    >>> from lengthlab.theory.primitives import count, token
    >>> ones = count(token("1")).named("ONES")
    >>> zeros = count(token("0")).named("ZEROS")
    >>> program = Program({"1": (ones > zeros).named("MORE"), "0": ~(ones > zeros)})
    >>> [line.name for line in program.lines], program.size
    (['ONES', 'ZEROS', 'MORE'], 5)
    """

    says: Mapping[str, Predicate]

    def __post_init__(self) -> None:
        require(len(self.says) > 0, "a program says nothing: give it a predicate for each token that can come next")
        for word, predicate in self.says.items():
            require(
                isinstance(predicate, Predicate), f"what a program says of '{word}' is {a_kind(predicate)}, not a predicate"
            )
        _ = self.lines  # refuses a name that stands for two lines

    @classmethod
    def deciding(cls, predicate: Predicate, yes: str, no: str) -> Program:
        """Of a yes/no question: one word where a predicate is true, the other where it is not."""
        return cls({yes: predicate, no: ~predicate})

    @cached_property
    def lines(self) -> tuple[Named, ...]:
        """What has a name, each after what it is made of."""
        found: dict[str, Named] = {}
        for predicate in self.says.values():
            _collect(predicate, found)
        return tuple(found.values())

    @cached_property
    def size(self) -> int:
        """Operations in all its lines: logic, comparisons, counts and sums. Tokens, positions, constants and names are free."""
        bodies = [line.value for line in self.lines]
        outputs = [predicate for predicate in self.says.values() if not isinstance(predicate, NamedPredicate)]
        return sum(map(_operations, (*bodies, *outputs)))

    def one_of(self, true: Sequence[str], words: Sequence[str], at: int) -> str:
        """The only word that is true at a position; none, or several, is an error of the program's."""
        if len(true) == 1:
            return true[0]
        many = f"several predicates are true ({', '.join(true)})" if true else "no predicate is true"
        read = cut(" ".join(words[: at + 1]), 200)
        raise LabError(f"the program must say exactly one token, and at position {at} of '{read}' {many}")


def _collect(expression: Expression, found: dict[str, Named]) -> None:
    if isinstance(expression, (NamedPredicate, NamedCount)):
        known = found.get(expression.name)
        if known is not None:
            require(
                known is expression or known == expression,
                f"two lines of a program are called '{expression.name}': give one of them another name",
            )
            return
        _collect(expression.value, found)
        require(expression.name not in found, f"line '{expression.name}' of a program is made of one of the same name")
        found[expression.name] = expression
    for part in expression.made_of:
        _collect(part, found)


def _operations(expression: Expression) -> int:
    own = expression.made_of
    joined = len(own) - 1 if isinstance(expression, (And, Or)) else 1
    return (max(0, joined) if own else 0) + sum(map(_operations, own))
