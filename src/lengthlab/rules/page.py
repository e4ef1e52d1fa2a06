"""Tokens of many answers at once: columns of values, one for each variable, and a page that they are written on.

Shapes: B inputs, R rows of them that are written to, L elements of the longest list, E elements of all lists, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthlab.rules.pointers import POINTER
from lengthlab.rules.wording import SMALL, TRUTH

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class NotTogether(Exception):
    """These inputs have to be taken one by one."""


@dataclass
class Scalars:
    """A number for each input, or a truth value."""

    value_B: Ints
    truth: bool


@dataclass
class Lists:
    """A list for each input: the first `length_B` elements of its row; told by a pointer, if it is `pointed` at."""

    element_BL: Ints
    length_B: Ints
    truth: bool
    pointed: bool = False


Column = Scalars | Lists


class Page:
    """Rows of tokens that grow to the right, each at its own pace."""

    def __init__(self, size: int, token: Mapping[str, int]) -> None:
        self.token = token
        self.tokens_BT: Ints = np.zeros((size, 64), np.int64)
        self.end_B: Ints = np.zeros(size, np.int64)
        self._number, self._truth = (np.array([token[word] for word in words]) for words in (SMALL, TRUTH))

    def words(self, rows_R: Ints, *words: str) -> None:
        """The same words at the end of these rows."""
        if not len(rows_R):
            return
        end_R = self.end_B[rows_R]
        self._room(int(end_R.max()) + len(words))
        at_RW = end_R[:, None] + np.arange(len(words))
        self.tokens_BT[rows_R[:, None], at_RW] = [self.token[word] for word in words]
        self.end_B[rows_R] += len(words)

    def value(self, rows_R: Ints, column: Column) -> None:
        """What each of these rows has in a column."""
        if isinstance(column, Scalars):
            self.scalars(rows_R, column.value_B[rows_R], column.truth)
            return
        if column.pointed:
            self.words(rows_R, POINTER)
            return
        self.words(rows_R, "[")
        length_R = column.length_B[rows_R]
        inside_RL = np.arange(column.element_BL.shape[1]) < length_R[:, None]
        place_R, place_L = inside_RL.nonzero()
        row_E = rows_R[place_R]
        self._room(int(self.end_B.max() + column.element_BL.shape[1]))
        self.tokens_BT[row_E, self.end_B[row_E] + place_L] = self._tokens(column.element_BL[row_E, place_L], column.truth)
        self.end_B[rows_R] += length_R
        self.words(rows_R, "]")

    def scalars(self, rows_R: Ints, value_R: Ints, truth: bool) -> None:
        """One value at the end of each of these rows."""
        self._room(int(self.end_B.max()) + 1)
        self.tokens_BT[rows_R, self.end_B[rows_R]] = self._tokens(value_R, truth)
        self.end_B[rows_R] += 1

    def _tokens(self, value_E: Ints, truth: bool) -> Ints:
        table = self._truth if truth else self._number
        if len(value_E) and (value_E.min() < 0 or value_E.max() >= len(table)):
            raise NotTogether
        return table[value_E]

    def _room(self, width: int) -> None:
        size, there = self.tokens_BT.shape
        if width > there:
            wider = np.zeros((size, max(width, 2 * there)), np.int64)
            wider[:, :there] = self.tokens_BT
            self.tokens_BT = wider
