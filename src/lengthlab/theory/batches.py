"""The same program on many sequences at once, with numpy. Held against plain.py by the tests.

Shapes: B sequences, T tokens; padding on the right is read like anything else, and nothing before it knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lengthlab.errors import LabError, nearest
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

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


SIGNS: dict[str, np.ufunc] = {"≥": np.greater_equal, ">": np.greater, "=": np.equal, "≤": np.less_equal, "<": np.less}


@dataclass(frozen=True)
class BatchReading:
    """Many sequences of token ids, and the id of each word."""

    tokens_BT: Ids
    ids: Mapping[str, int]
    true_BT: dict[str, Bools] = field(default_factory=dict)
    """What a named predicate came to."""
    number_BT: dict[str, Numbers] = field(default_factory=dict)
    """What a named count came to."""

    def true(self, predicate: Predicate) -> Bools:
        """true_BT of a predicate."""
        match predicate:
            case Token(word):
                here_BT: Bools = self.tokens_BT == self.id_of(word)
                return here_BT
            case Periodic(period, remainder):
                return np.broadcast_to(np.arange(self.tokens_BT.shape[1]) % period == remainder, self.tokens_BT.shape)
            case Not(part):
                return ~self.true(part)
            case And(parts):
                return self._joined(np.logical_and, parts, of_none=True)
            case Or(parts):
                return self._joined(np.logical_or, parts, of_none=False)
            case Compare(left, sign, right):
                compared_BT: Bools = SIGNS[sign](self.number(left), self.number(right))
                return compared_BT
            case NamedPredicate(name, value):
                if name not in self.true_BT:
                    self.true_BT[name] = self.true(value)
                return self.true_BT[name]
        raise TypeError(f"{predicate!r} is no predicate")

    def id_of(self, word: str) -> int:
        """The token of a word; a word that the task does not have is a slip of the program's."""
        if word not in self.ids:
            raise LabError(f"the program speaks of '{word}', which is no word of the task; {nearest(word, self.ids)}")
        return self.ids[word]

    def _joined(self, join: np.ufunc, parts: Sequence[Predicate], of_none: bool) -> Bools:
        if not parts:
            return np.full(self.tokens_BT.shape, of_none)
        joined_BT = self.true(parts[0])
        for part in parts[1:]:
            joined_BT = join(joined_BT, self.true(part))
        return joined_BT

    def number(self, count: Count) -> Numbers:
        """number_BT of a count."""
        match count:
            case Constant(number):
                return np.broadcast_to(np.int32(number), self.tokens_BT.shape)
            case Positions(where, within):
                return counted(self.true(where), within)
            case Sum(left, right):
                return self.number(left) + self.number(right)
            case Difference(left, right):
                return self.number(left) - self.number(right)
            case Choice(where, then, otherwise):
                return np.where(self.true(where), self.number(then), self.number(otherwise))
            case NamedCount(name, value):
                if name not in self.number_BT:
                    self.number_BT[name] = self.number(value)
                return self.number_BT[name]
        raise TypeError(f"{count!r} is no count")


def counted(true_BT: Bools, within: tuple[int, int] | None) -> Numbers:
    """At how many positions up to each, or at a bounded distance before it, something is true.

    >>> counted(np.array([[True, False, True]]), None), counted(np.array([[True, False, True]]), (1, 2))
    (array([[1, 1, 2]], dtype=int32), array([[0, 1, 1]], dtype=int32))
    """
    so_far_BT = np.cumsum(true_BT, axis=1, dtype=np.int32)
    if within is None:
        return so_far_BT
    near, far = within
    return _shifted(so_far_BT, near) - _shifted(so_far_BT, far + 1)


def _shifted(number_BT: Numbers, by: int) -> Numbers:
    """What it was `by` positions ago; 0 before the first."""
    length = number_BT.shape[1]
    shifted_BT = np.zeros_like(number_BT)
    shifted_BT[:, by:] = number_BT[:, : max(0, length - by)]
    return shifted_BT


def say_all(program: Program, tokens_BT: Ids, vocabulary: Sequence[str], asked_BT: Bools) -> Ids:
    """The token that comes after each position that is asked, by the program; -1 elsewhere.

    >>> from lengthlab.theory.primitives import token
    >>> program = Program({"b": token("a"), "a": token("b")})
    >>> say_all(program, np.array([[0, 1, 1]]), ("a", "b"), np.array([[True, True, False]]))
    array([[ 1,  0, -1]])
    """
    ids = {word: at for at, word in enumerate(vocabulary)}
    reading = BatchReading(tokens_BT, ids)
    said_BT = np.full(tokens_BT.shape, -1, dtype=np.int64)
    times_BT = np.zeros(tokens_BT.shape, dtype=np.int32)
    for word, predicate in program.says.items():
        true_BT = reading.true(predicate) & asked_BT
        said_BT[true_BT] = reading.id_of(word)
        times_BT += true_BT
    wrong = np.argwhere(asked_BT & (times_BT != 1))
    if len(wrong):
        row, at = map(int, wrong[0])
        true = [word for word, predicate in program.says.items() if reading.true(predicate)[row, at]]
        program.one_of(true, [vocabulary[token] for token in tokens_BT[row]], at)
    return said_BT
