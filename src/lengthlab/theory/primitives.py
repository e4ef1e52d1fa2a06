"""What a C-RASP[pos] program is made of, as data: predicates (true or false at a position) and counts (whole numbers there).

A position sees itself and what stands before it. Predicates are tokens, positions modulo a number, comparisons of counts, and
not, and, or; counts are constants, the number of positions, of all so far or of those at a bounded distance, at which a
predicate is true, sums, differences and choices. That is all there is (Huang et al., arXiv 2410.02140; arXiv 2505.21785 calls
it C-RASP[pos]).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lengthlab.errors import require, require_whole

Comparison = Literal["≥", ">", "=", "≤", "<"]


class Predicate:
    """True or false at every position. `&`, `|` and `~` are and, or and not."""

    @property
    def made_of(self) -> tuple[Expression, ...]:
        """Its parts; what a name stands for is none."""
        return ()

    def __and__(self, other: Predicate) -> And:
        return And((*_parts(And, self), *_parts(And, other)))

    def __or__(self, other: Predicate) -> Or:
        return Or((*_parts(Or, self), *_parts(Or, other)))

    def __invert__(self) -> Not:
        return Not(self)

    def named(self, name: str) -> NamedPredicate:
        """The same under a name: a line of the program, computed once."""
        return NamedPredicate(name, self)


class Count:
    """A whole number at every position. `+` and `-` add and subtract; `>=`, `>`, `<=`, `<` and `equals` compare."""

    @property
    def made_of(self) -> tuple[Expression, ...]:
        """Its parts; what a name stands for is none."""
        return ()

    def __add__(self, other: Count | int) -> Sum:
        return Sum(self, as_count(other))

    def __sub__(self, other: Count | int) -> Difference:
        return Difference(self, as_count(other))

    def __ge__(self, other: Count | int) -> Compare:
        return Compare(self, "≥", as_count(other))

    def __gt__(self, other: Count | int) -> Compare:
        return Compare(self, ">", as_count(other))

    def __le__(self, other: Count | int) -> Compare:
        return Compare(self, "≤", as_count(other))

    def __lt__(self, other: Count | int) -> Compare:
        return Compare(self, "<", as_count(other))

    def equals(self, other: Count | int) -> Compare:
        return Compare(self, "=", as_count(other))

    def named(self, name: str) -> NamedCount:
        """The same under a name: a line of the program, computed once."""
        return NamedCount(name, self)


@dataclass(frozen=True)
class Token(Predicate):
    """Q_σ(i): the token here is this word."""

    word: str


@dataclass(frozen=True)
class Periodic(Predicate):
    """φ(i): the position, counted from 0 at the first token, leaves this remainder."""

    period: int
    remainder: int

    def __post_init__(self) -> None:
        require_whole(self.period, "the period of a position", 1)
        require_whole(self.remainder, f"a remainder of positions modulo {self.period}", 0, self.period - 1)


@dataclass(frozen=True)
class Not(Predicate):
    part: Predicate

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.part,)


@dataclass(frozen=True)
class And(Predicate):
    """All of them; of none, true."""

    parts: tuple[Predicate, ...]

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return self.parts


@dataclass(frozen=True)
class Or(Predicate):
    """At least one of them; of none, false."""

    parts: tuple[Predicate, ...]

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return self.parts


@dataclass(frozen=True)
class Compare(Predicate):
    left: Count
    sign: Comparison
    right: Count

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class NamedPredicate(Predicate):
    name: str
    value: Predicate


@dataclass(frozen=True)
class Constant(Count):
    number: int


@dataclass(frozen=True)
class Positions(Count):
    """#[j ≤ i, ψ(i, j)] P(j): at how many positions so far P is true. With `within = (near, far)` only those count that lie
    near ≤ i - j ≤ far, a distance with a bound; without, all.
    """

    where: Predicate
    within: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.within is not None:
            near, far = self.within
            require_whole(near, "the least distance of a local count", 0)
            require(far >= near, f"a local count reaches from {near} to {far} positions back: the second must not be smaller")

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.where,)


@dataclass(frozen=True)
class Sum(Count):
    left: Count
    right: Count

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Difference(Count):
    left: Count
    right: Count

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Choice(Count):
    """One count where a predicate is true, another where it is not."""

    where: Predicate
    then: Count
    otherwise: Count

    @property
    def made_of(self) -> tuple[Expression, ...]:
        return (self.where, self.then, self.otherwise)


@dataclass(frozen=True)
class NamedCount(Count):
    name: str
    value: Count


ONE = Constant(1)
Named = NamedPredicate | NamedCount
Expression = Predicate | Count


def token(word: str) -> Token:
    """The token here is this word.

    >>> token("a") & ~token("b")
    And(parts=(Token(word='a'), Not(part=Token(word='b'))))
    """
    return Token(word)


def count(where: Predicate, within: tuple[int, int] | None = None) -> Positions:
    """At how many positions so far, or at a bounded distance, a predicate is true.

    >>> count(token("a")) > count(token("b"))
    Compare(left=Positions(where=Token(word='a'), within=None), sign='>', right=Positions(where=Token(word='b'), within=None))
    """
    return Positions(where, within)


def exists(where: Predicate, within: tuple[int, int] | None = None) -> Compare:
    """It is true at one of them at least.

    >>> exists(token("a"))
    Compare(left=Positions(where=Token(word='a'), within=None), sign='≥', right=Constant(number=1))
    """
    return Compare(count(where, within), "≥", ONE)


def back(where: Predicate, distance: int = 1) -> Compare:
    """It was true so many positions ago.

    >>> back(token("a")).left
    Positions(where=Token(word='a'), within=(1, 1))
    """
    return exists(where, (distance, distance))


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """At least one of several.

    >>> any_of([token("a"), token("b")])
    Or(parts=(Token(word='a'), Token(word='b')))
    """
    return Or(tuple(parts))


def all_of(parts: Iterable[Predicate]) -> And:
    """All of several.

    >>> all_of([token("a")])
    And(parts=(Token(word='a'),))
    """
    return And(tuple(parts))


def as_count(value: Count | int) -> Count:
    """A number as a count that is the same everywhere.

    >>> as_count(3)
    Constant(number=3)
    """
    if isinstance(value, Count):
        return value
    require_whole(value, "a number in a program", -(2**31))
    return Constant(value)


def _parts(kind: type[And] | type[Or], value: Predicate) -> tuple[Predicate, ...]:
    """And of an and is one and."""
    return value.parts if isinstance(value, kind) else (value,)
