"""The log of a run, read as it grows: what was read once is not read again."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengthlab.errors import require
from lengthlab.store.plain_file import LONGEST_LINE, MOST_LOG, require_plain

FILE = "log.jsonl"
RECENT = 5
"""So many of the last lines of a phase tell how fast it goes."""
SLOWEST, FASTEST = 1e-9, 1e12
"""Samples per second that can be true."""
CHUNK = 2**20
"""Bytes read at a time."""
SEAM = 256
"""Bytes before the place read up to that are compared before what follows is taken for an addition to the same file."""


@dataclass(frozen=True)
class Line:
    """What a line of the log says. `phase` counts from 1; 0 where the line does not tell."""

    step: int
    skipped: int = 0
    phase: int = 0
    loss: float | None = None
    samples_per_second: float = 0.0
    accuracy: Mapping[int, float] = field(default_factory=dict)

    @property
    def clock(self) -> int:
        """How far the schedule had come: the steps made, and those that were not needed.

        >>> Line(step=300, skipped=700).clock
        1000
        """
        return self.step + self.skipped


def parse(data: bytes) -> dict[str, Any]:
    """A line of a log as plain data; ValueError where it is something else.

    >>> parse(b'{"step": 50, "loss": 1.5}')
    {'step': 50, 'loss': 1.5}
    """
    try:
        found = json.loads(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _checked(found)


def _checked(found: Any) -> dict[str, Any]:
    """Written for speed: a log has tens of thousands of lines, and there are hundreds of logs."""
    if type(found) is not dict or type(found.get("step")) is not int:
        raise ValueError("not a line of a log")
    get = found.get
    if (
        type(get("skipped", 0)) is not int
        or type(get("phase", 0)) is not int
        or type(get("loss", 0)) not in NUMBER
        or type(get("samples_per_second", 0)) not in NUMBER
    ):
        raise ValueError("not a number where one should be")
    if "accuracy" in found:
        _accuracy(found["accuracy"])
    if type(get("notes", [])) is not list:
        raise ValueError("notes are not a list")
    return found


NUMBER = (float, int)


def _accuracy(value: Any) -> dict[int, float]:
    try:
        return {int(length): float(share) for length, share in value.items()}
    except (AttributeError, TypeError, OverflowError):
        raise ValueError("accuracy is not given by length") from None


def _line(found: Mapping[str, Any]) -> Line:
    return Line(
        step=found["step"],
        skipped=found.get("skipped", 0),
        phase=found.get("phase", 0),
        loss=found.get("loss"),
        samples_per_second=found.get("samples_per_second", 0.0),
        accuracy=_accuracy(found.get("accuracy", {})),
    )


@dataclass
class Summary:
    """What the lines of a log come to: the last one, the latest accuracy, how fast each phase goes, and the first line that is
    none of ours.
    """

    lines: int = 0
    last: Line | None = None
    accuracy: Mapping[int, float] = field(default_factory=dict)
    pace: dict[int, deque[float]] = field(default_factory=dict)
    """By phase: samples per second of its last lines."""
    notes: list[str] = field(default_factory=list)
    """What is slower than it could be, and why, as the run said it; each once."""
    foreign: int | None = None

    def add(self, data: Sequence[bytes]) -> None:
        """Take in whole lines, in order."""
        self.take(_parsed(data))

    def take(self, lines: Sequence[Mapping[str, Any] | None]) -> None:
        """Take in what lines say; None is a foreign one. Whoever wants more of a log goes on from here."""
        last = None
        for found in lines:
            self.lines += 1
            if found is None:
                self.foreign = self.foreign or self.lines
                continue
            last = found
            if "accuracy" in found:
                self.accuracy = _accuracy(found["accuracy"])
            if "notes" in found:
                self.notes += [note for note in map(str, found["notes"]) if note not in self.notes]
            if SLOWEST < (pace := found.get("samples_per_second", 0)) < FASTEST:
                recent = self.pace.get(phase := found.get("phase", 0))
                if recent is None:
                    recent = self.pace[phase] = deque(maxlen=RECENT)
                recent.append(float(pace))
        if last is not None:
            self.last = _line(last)

    def to_json(self) -> dict[str, Any]:
        """Plain data.

        >>> summary = Summary()
        >>> summary.add([b'{"step": 50, "loss": 1.5, "samples_per_second": 80.0}'])
        >>> Summary.from_json(summary.to_json()) == summary
        True
        """
        last = None if self.last is None else {name: value for name, value in vars(self.last).items() if value is not None}
        return vars(self) | {"last": last, "pace": [[phase, *pace] for phase, pace in self.pace.items()]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Summary:
        """What was written so; ValueError where it can be none."""
        try:
            lines, last, paces, notes, foreign = (data[name] for name in ("lines", "last", "pace", "notes", "foreign"))
            pace = {phase: deque(map(float, recent), maxlen=RECENT) for phase, *recent in paces}
            line = None if last is None else _line(_checked(last))
        except (AttributeError, KeyError, TypeError, OverflowError):
            raise ValueError("not what a log comes to") from None
        numbers = [lines, foreign or 0, *pace]
        fast = all(recent and all(SLOWEST < each < FASTEST for each in recent) for recent in pace.values())
        texts = type(notes) is list and all(type(note) is str for note in notes)
        if not (fast and texts and all(type(number) is int for number in numbers)):
            raise ValueError("not what a log comes to")
        return Summary(lines, line, _accuracy(data.get("accuracy")), pace, notes, foreign)


def _parsed(lines: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """Each line, or None for a foreign one. All in one call of the parser where all are ours: that is three times as fast."""
    try:
        found = json.loads((b"[" + b",".join(lines) + b"]").decode())
        if len(found) == len(lines) and all(line[:1] == b"{" for line in lines):
            return [_checked(each) for each in found]
    except (ValueError, RecursionError):
        pass
    return [_or_none(line) for line in lines]


def _or_none(line: bytes) -> dict[str, Any] | None:
    try:
        return parse(line)
    except ValueError:
        return None


class Tail:
    """A log that others write to. `read` takes in what was added since the last time; one that was replaced (a resumed run
    forgets the lines past its checkpoint) or cut short is read from its start.

    >>> tail = Tail(Path("nowhere"))
    >>> tail.read(), tail.summary.lines
    (False, 0)
    """

    def __init__(self, path: Path, begin: Callable[[], Summary] = Summary) -> None:
        """`begin`: what lines come to, from the first one on."""
        self.path = str(path)  # asked for again and again: a text is quicker than a Path
        self.summary, self._begin = begin(), begin
        self._file: tuple[int, ...] | None = None
        self._offset, self._seam = 0, b""

    @property
    def begun(self) -> bool:
        """Whether it was there at the last look."""
        return self._file is not None

    def read(self) -> bool:
        """Whether there was anything to take in. The file is opened only if it is another than last time, or has grown."""
        there = identity(self.path)
        if there == self._file:
            return False
        before, self._file = self._file, there
        if there is None:
            self._start_over()
            return True
        require_plain(self.path, MOST_LOG)
        with open(self.path, "rb") as file:
            if before is None or there[0] != before[0] or not self._offset or not self._goes_on(file):
                self._start_over()
            file.seek(self._offset)
            self._take_in(file)
        return True

    def take_over(self, there: tuple[int, ...], summary: Summary) -> None:
        """What the file of this identity comes to, from somebody who has read it; when it becomes another, it is read whole."""
        self._file, self.summary = there, summary

    def _goes_on(self, file: Any) -> bool:
        """Whether what was read is still there. A file of the same inode may have been written anew."""
        file.seek(self._offset - len(self._seam))
        return bool(file.read(len(self._seam)) == self._seam)

    def _take_in(self, file: Any) -> None:
        """The whole lines from the offset on; one that is still being written is left for the next time."""
        rest = b""
        while piece := file.read(CHUNK):
            *lines, rest = (rest + piece).split(b"\n")
            require(len(rest) < LONGEST_LINE, f"{self.path} has a line that is longer than any of ours")
            if lines:
                self.summary.add(lines)
                self._offset += sum(map(len, lines)) + len(lines)
                self._seam = (b"\n".join(lines[-SEAM:]) + b"\n")[-SEAM:]

    def _start_over(self) -> None:
        self.summary = self._begin()
        self._offset, self._seam = 0, b""


def identity(path: str | Path) -> tuple[int, ...] | None:
    """Of the file at a path, None where none can be seen: two that differ in it are not the same file with the same content."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns
