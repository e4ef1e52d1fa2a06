"""What a live page shows: run folders, looked at again and again, a page of what is finished, patches for what is under way."""

from __future__ import annotations

import json
from asyncio import AbstractEventLoop, Queue, QueueFull
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event, Lock, Thread
from time import perf_counter, thread_time
from typing import Any

from lengthlab.errors import explain
from lengthlab.report.compared import compared
from lengthlab.report.course import Course
from lengthlab.report.curves import Curve
from lengthlab.report.html_page import live_html
from lengthlab.report.html_sections import Report
from lengthlab.report.why_section import read_diagnoses
from lengthlab.serve.finished import Finished
from lengthlab.serve.places import Places
from lengthlab.serve.under_way import UnderWay, patch
from lengthlab.store import Folder
from lengthlab.store.status import Status, visible

SLICE = 0.2
"""Seconds that one look may read results and logs that are new; the rest is read in the next."""
PAUSE, ASLEEP = 0.1, 2.0
"""Seconds between two looks, while somebody watches and while nobody does."""
LISTING = 1.0
"""Seconds after which new folders are looked for."""
SHARE = 4
"""Looks and pages take at most one part in so many and one of the time: what is watched is at work on the same machine."""
WAITING = 256
"""Events that a reader may be behind; one that is further behind is let go, comes again, and gets all anew."""
READERS = 100


@dataclass(eq=False)
class Reader:
    """Somebody who watches; None in the queue is the end."""

    loop: AbstractEventLoop
    queue: Queue[bytes | None]
    ended: bool = False

    def send(self, event: bytes | None) -> None:
        """From any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: bytes | None) -> None:
        if self.ended:
            return
        try:
            self.queue.put_nowait(event)
        except QueueFull:
            self.ended = True
            while not self.queue.empty():
                self.queue.get_nowait()
            self.queue.put_nowait(None)


@dataclass(frozen=True)
class _Listed:
    """The folders that there are; `problems`: a line for each that is not read."""

    done: tuple[Folder, ...] = ()
    under_way: tuple[Folder, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Read:
    """What a page is made of, as it was at a look."""

    curves: tuple[Curve, ...] = ()
    courses: Mapping[str, Course] = field(default_factory=dict)
    statuses: tuple[Status, ...] = ()
    problems: tuple[str, ...] = ()


class Live:
    """Runs, looked at from two threads: one reads folders, one makes pages. Whoever joins gets all there is, then patches."""

    def __init__(self, places: Places, command: str = "", listing: float = LISTING) -> None:
        """`listing`: seconds after which new folders are looked for."""
        self.places, self.command, self._listing = places, command, listing
        self._finished, self._under_way = Finished(), UnderWay()
        self._lock, self._stop, self._stale = Lock(), Event(), Event()
        self._readers: set[Reader] = set()
        self._state: dict[str, Any] = {"version": "", "reading": True, "problem": ""}
        self._told: Mapping[str, Any] = {}
        self._wanted, self._read = "", _Read()
        self._listed, self._due, self._unread = _Listed(), 0.0, True
        self._finished_version = ""
        self.page = live_html(Report((), {}), "")
        self._threads = [Thread(target=each, daemon=True) for each in (self._look_on, self._write_on)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Every reader is told."""
        self._stop.set()
        self._stale.set()
        with self._lock:
            for reader in self._readers:
                reader.send(None)

    def join(self, loop: AbstractEventLoop) -> Reader | None:
        """A reader, who first gets all; None where there are too many, or no more events to come."""
        with self._lock:
            if self._stop.is_set() or len(self._readers) >= READERS:
                return None
            reader = Reader(loop, Queue(WAITING))
            reader.queue.put_nowait(event("all", self._state | {"runs": self._told}))
            self._readers.add(reader)
            return reader

    def leave(self, reader: Reader) -> None:
        with self._lock:
            self._readers.discard(reader)

    def look(self) -> bool:
        """Read what is new and tell the readers; whether there is more to read."""
        if perf_counter() >= self._due or any(map(self._changed, self._listed.under_way)):
            self._list()
        taking = more = self._under_way.look(self._listed.under_way)
        if self._unread:
            self._unread = self._finished.look(self._listed.done, SLICE)
            self._finished_version = _digest(self._finished.version)  # of hundreds of runs: not at every look
        more, told, problems = more or self._unread, self._under_way.told, [*self._listed.problems]
        states = sorted((status.run, status.state) for status in self._under_way.statuses)
        version = _digest((self._finished_version, states, problems))
        with self._lock:
            new = patch(self._told, told)
            self._told = told
            self._tell(new | self._set(reading=more, problem=""))
            if version != self._wanted and not taking:  # a page of half of them would be made anew at once
                self._wanted = version
                problems = [*problems, *self._finished.problems]
                statuses = self._under_way.statuses
                self._read = _Read(self._finished.curves, self._finished.courses, statuses, tuple(problems))
                self._stale.set()
        return more

    def _list(self) -> None:
        """Which folders there are: not at every look, because of many most are finished, and stay as they are."""
        folders, problems = self.places.look()
        done = [folder for folder in folders if folder.finished]
        under_way = [folder for folder in folders if not folder.finished]
        self._listed = _Listed(tuple(done), tuple(under_way), tuple(problems))
        self._unread, self._due = True, perf_counter() + self._listing

    def _changed(self, folder: Folder) -> bool:
        return folder.finished or bool(self.places.wrong(str(folder.path)))

    def write(self) -> None:
        """Make the page of what was read, and say that it is there."""
        with self._lock:
            version, read = self._wanted, self._read
        groups = tuple(compared(read.curves)) if read.curves else ()
        diagnoses, unread = read_diagnoses(read.curves)
        problems = (*read.problems, *unread)
        page = live_html(Report(groups, read.courses, read.statuses, problems, self.command, diagnoses), version)
        with self._lock:
            self.page = page
            self._tell(self._set(version=version))

    def _set(self, **state: Any) -> dict[str, Any]:
        """What of it is new."""
        new = {name: value for name, value in state.items() if self._state[name] != value}
        self._state |= new
        return new

    def _tell(self, new: Mapping[str, Any]) -> None:
        if new:
            data = event("patch", new)
            for reader in self._readers:
                reader.send(data)

    def _look_on(self) -> None:
        while not self._stop.is_set():
            started, more = thread_time(), False
            try:
                more = self.look()
            except Exception as error:  # a server that stays says what is wrong, and looks again
                self._complain(error)
            took = thread_time() - started
            self._stop.wait(0 if more else max(PAUSE if self._readers else ASLEEP, SHARE * took))

    def _write_on(self) -> None:
        while not self._stop.is_set():
            self._stale.wait()
            self._stale.clear()
            started = thread_time()
            try:
                self.write()
            except Exception as error:
                self._complain(error)
            self._stop.wait(SHARE * (thread_time() - started))

    def _complain(self, error: Exception) -> None:
        with self._lock:
            self._tell(self._set(problem=visible(explain(error))))


def _digest(value: object) -> str:
    return sha256(repr(value).encode()).hexdigest()[:16]


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """One of the events that a page listens to.

    >>> event("patch", {"reading": False})
    b'event: patch\\ndata: {"reading":false}\\n\\n'
    """
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()
