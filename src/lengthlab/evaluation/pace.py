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
        self.reads: list[PieceRead] = []

    def add(self, read: PieceRead) -> None:
        self.reads.append(read)

    @property
    def knows(self) -> bool:
        return len(self.reads) >= min(ENOUGH, self.reads[0].pieces) if self.reads else False

    @property
    def seconds(self) -> float:
        """For all samples of the length, on as many threads as there are."""
        last = self.reads[-1]
        return self._batch_seconds * ceil(self._batches / last.threads)

    @property
    def share(self) -> float:
        """Of all work, how much is done."""
        fixed, growing = self._line
        done = sum(fixed + growing * read.piece for read in self.reads)
        return min(1.0, done / (self._batches * self._batch_seconds)) if done else 0.0

    @property
    def is_quadratic(self) -> bool:
        """Whether most of the time is spent on looking back."""
        fixed, growing = self._line
        return growing * (self.reads[0].pieces - 1) / 2 > fixed

    @property
    def _batches(self) -> int:
        return ceil(self.reads[0].samples / max(read.rows for read in self.reads))

    @property
    def _batch_seconds(self) -> float:
        fixed, growing = self._line
        pieces = self.reads[0].pieces
        return pieces * fixed + growing * pieces * (pieces - 1) / 2

    @property
    def _line(self) -> tuple[float, float]:
        """a and b: the line through all full pieces with the least squares, level where its slope may be chance. The very first
        piece is left out where there are others: it also pays for the start.
        """
        points = [(read.piece, read.seconds) for read in self.reads if read.piece < read.pieces - 1 or read.pieces == 1]
        points = points[1:] if len(points) > 2 else points or [(read.piece, read.seconds) for read in self.reads]
        middle, mean = (sum(each) / len(points) for each in zip(*points, strict=True))
        spread = sum((piece - middle) ** 2 for piece, _ in points)
        if len(points) < 3 or not spread:
            return mean, 0.0
        slope = sum((piece - middle) * (seconds - mean) for piece, seconds in points) / spread
        off = sum((seconds - mean - slope * (piece - middle)) ** 2 for piece, seconds in points)
        if slope <= 2 * sqrt(off / (len(points) - 2) / spread):
            return mean, 0.0
        return max(0.0, mean - slope * middle), slope
