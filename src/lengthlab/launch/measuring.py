"""Measuring, watched: how long a length will take, said first, and a bar on standard error, or plain lines where there is no
terminal. Of what takes a moment nothing is said.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from lengthlab.evaluation.pace import Pace, PieceRead
from lengthlab.launch.progress import PLAIN_SECONDS, QUIET_SECONDS
from lengthlab.store.status import duration


class Measuring:
    """`with Measuring() as watch: measure(folder, lengths, watch=watch)`"""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._paces: dict[int, Pace] = {}
        self._bars: dict[int, TaskID] = {}
        self._spoke = 0.0
        self._lock = threading.Lock()
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}"))
        self._progress = Progress(*columns, console=self._console)

    def __enter__(self) -> Measuring:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):
            if self._bars and self._console.is_terminal:
                self._progress.stop()

    def __call__(self, read: PieceRead) -> None:
        with self._lock, suppress(Exception):  # who looks on does not stop who works
            pace = self._paces.setdefault(read.length, Pace())
            pace.add(read)
            if pace.knows:
                self._show(read, pace)

    def _show(self, read: PieceRead, pace: Pace) -> None:
        name, share, seconds = f"length {read.length:,}", pace.share, pace.seconds
        left = f"about {duration(seconds * (1 - share))} left"
        if read.length not in self._bars:
            if seconds < QUIET_SECONDS:
                return
            self._say(f"{name}: {forecast(pace)}")
            self._bars[read.length] = self._progress.add_task(name, total=1.0, left=left)
            if self._console.is_terminal:
                self._progress.start()
        if self._console.is_terminal:
            self._progress.update(self._bars[read.length], completed=share, left=left if share < 1 else "")
        elif monotonic() - self._spoke > PLAIN_SECONDS:
            self._say(f"{name}: {share:.0%} read, {left}")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False, emoji=False)
        self._spoke = monotonic()


def forecast(pace: Pace) -> str:
    """
    >>> pace = Pace()
    >>> pace.add(PieceRead(length=50_000, samples=8, rows=2, tokens=50_001, piece=0, pieces=1, seconds=30.0, threads=2))
    >>> forecast(pace)
    '8 samples of 50,001 tokens will take about 1 min 0 s, going by the first batch'
    """
    read = pace.first
    samples = f"{read.samples:,} sample{'s' * (read.samples > 1)} of {read.tokens:,} tokens"
    by = f"{pace.number} pieces" if read.pieces > 1 else "batch"
    slow = "; attention looks back from every token, so twice the length takes four times as long" if pace.is_quadratic else ""
    return f"{samples} will take about {duration(pace.seconds)}, going by the first {by}{slow}"
