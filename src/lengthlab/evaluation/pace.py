"""How long it will take to measure a length, going by what was read so far.

Piece i of a sequence takes about a + b·i seconds: b is what attention pays to look back, and nothing without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

ENOUGH = 12
"""Pieces to go by; all, where a sequence has fewer."""


@dataclass(frozen=True)
class PieceRead:
    """One piece of a batch, or all of a batch that is read at once: number `piece` of `pieces`, from 0."""

    length: int
    samples: int
    """That are measured at this length."""
    rows: int
    """Samples of this batch."""
    tokens: int
    """Of a sample."""
    piece: int
    pieces: int
    seconds: float
    threads: int
    """That read batches side by side."""


Watch = Callable[[PieceRead], None]
"""Told of every piece, by the thread that has read it."""


class Pace:
    """Of one length. It may be asked once it `knows` enough.

    >>> pace = Pace()
    >>> for piece in range(20):  # of the first of ten samples, each later piece taking longer
    ...     pace.add(PieceRead(1000, 10, 1, 81920, piece, 20, 1.0 + 0.5 * piece, threads=1))
    >>> pace.knows, round(pace.seconds), round(pace.share, 2), pace.is_quadratic
    (True, 1150, 0.1, True)
    """

    def __init__(self) -> None:
        self.number = 0
        """Of pieces that were read."""
        self._places = self._seconds = 0.0
        self._rows = 1
        self._points = _Points()

    def add(self, read: PieceRead) -> None:
        """In no time, however many there were before."""
        if self.number == 0:
            self.first = read
        elif read.piece < read.pieces - 1 or read.pieces == 1:  # not the very first, which also pays for the start, nor an end
            self._points.add(read.piece, read.seconds)
        self.number += 1
        self._places += read.piece
        self._seconds += read.seconds
        self._rows = max(self._rows, read.rows)

    @property
    def knows(self) -> bool:
        return self.number > 0 and self.number >= min(ENOUGH, self.first.pieces)

    @property
    def seconds(self) -> float:
        """For all samples of the length, on as many threads as there are."""
        return self._batch_seconds * ceil(self._batches / self.first.threads)

    @property
    def share(self) -> float:
        """Of all work, how much is done."""
        fixed, growing = self._line
        done = fixed * self.number + growing * self._places
        return min(1.0, done / (self._batches * self._batch_seconds)) if done else 0.0

    @property
    def is_quadratic(self) -> bool:
        """Whether most of the time is spent on looking back."""
        fixed, growing = self._line
        return growing * (self.first.pieces - 1) / 2 > fixed

    @property
    def _batches(self) -> int:
        return ceil(self.first.samples / self._rows)

    @property
    def _batch_seconds(self) -> float:
        (fixed, growing), pieces = self._line, self.first.pieces
        return pieces * fixed + growing * pieces * (pieces - 1) / 2

    @property
    def _line(self) -> tuple[float, float]:
        """a and b."""
        return self._points.line if self._points.number else (self._seconds / self.number, 0.0)


class _Points:
    """A line through points, by sums over them."""

    def __init__(self) -> None:
        self.number = 0
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def add(self, x: float, y: float) -> None:
        self.number += 1
        self._x, self._y = self._x + x, self._y + y
        self._xx, self._xy, self._yy = self._xx + x * x, self._xy + x * y, self._yy + y * y

    @property
    def line(self) -> tuple[float, float]:
        """Where it begins and how it rises, by least squares; level, where its slope may be chance."""
        middle, mean = self._x / self.number, self._y / self.number
        spread = self._xx - self.number * middle**2
        if self.number < 3 or spread <= 0:
            return mean, 0.0
        slope = (self._xy - self.number * middle * mean) / spread
        off = max(0.0, self._yy - self.number * mean**2 - slope**2 * spread)
        if slope <= 2 * sqrt(off / (self.number - 2) / spread):
            return mean, 0.0
        return max(0.0, mean - slope * middle), slope
