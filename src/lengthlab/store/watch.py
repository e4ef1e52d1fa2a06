"""Runs, watched: their folders alone tell where they are, and nothing in them is read twice. No torch."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError, explain
from lengthlab.store.folder import CHECKPOINTS, Folder, Store
from lengthlab.store.garbage_collection import uncollected
from lengthlab.store.ids import NOT_CONTENT, hash_of
from lengthlab.store.index import Indexes
from lengthlab.store.log import FILE, Summary, Tail, identity
from lengthlab.store.phases import Phases, phases_in
from lengthlab.store.rows import ALL, Count
from lengthlab.store.status import Accuracy, State, Status, seconds_left


@dataclass(frozen=True)
class Look:
    """The runs, and the ids of those that are not what they were at the look before: new, changed or gone."""

    statuses: tuple[Status, ...]
    changed: frozenset[str]


@dataclass(frozen=True)
class Watched:
    """A run as it was at the last look: where it is, what its `run.json` says, what its log comes to."""

    status: Status
    content: Mapping[str, Any]
    log: Summary


class Watch:
    """Every `look` reads what was added to the folders of runs since the last one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as store:
    ...     Store(store).folder("0123456789ab").write_json("run.json", {})
    ...     watch = Watch(Store(store))
    ...     [(status.run, status.state) for status in watch.look().statuses], len(watch.look().changed)
    ([('0123456789ab', 'waiting')], 0)
    """

    def __init__(self, runs: Store | Iterable[Folder], begin: Callable[[], Summary] = Summary) -> None:
        """A store: all that is in it at the time of a look. Folders: these, there already or not. `begin`: what the lines of a
        log come to, where that is more than a summary.
        """
        self._runs, self._begin = runs if isinstance(runs, Store) else tuple(runs), begin
        self._readers: dict[Path, _Reader] = {}
        self._before: dict[Path, Status] = {}

    @uncollected()
    def look(self, folders: Iterable[Folder] | None = None) -> Look:
        """At the runs that were named at first, or at `folders`."""
        if folders is None:
            folders = self._runs.folders() if isinstance(self._runs, Store) else self._runs
        folders = list(folders)
        indexes = Indexes(folder for folder in folders if folder.path not in self._readers)
        self._readers = {folder.path: self._readers.get(folder.path) or _Reader(folder, self._begin) for folder in folders}
        furthest: dict[str, Mapping[int, float]] = {}  # by settings: the seconds of the steps of the run that has come furthest
        for reader in self._readers.values():
            reader.read(indexes)
            furthest[reader.settings] = max(furthest.get(reader.settings, {}), reader.step_seconds, key=len)
        indexes.save()
        now = {path: reader.status(furthest[reader.settings]) for path, reader in self._readers.items()}
        before, self._before = self._before, now
        changed = [path for path in (*now, *before) if now.get(path) != before.get(path)]
        return Look(tuple(now.values()), frozenset((now.get(path) or before[path]).run for path in changed))

    def watched(self) -> dict[Path, Watched]:
        """Every run of the last look, by its folder."""
        readers = self._readers
        return {path: Watched(status, readers[path].content, readers[path].log) for path, status in self._before.items()}


def status_of(folder: Folder) -> Status:
    """Of one run, once."""
    return Watch([folder]).look().statuses[0]


@dataclass
class _File:
    """A JSON file that is read again only when it has become another."""

    folder: Folder
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    trouble: str | None = None
    there: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.path = os.path.join(self.folder.path, self.name)

    def read(self, indexes: Indexes) -> bool:
        """Whether it has."""
        before, self.there = self.there, identity(self.path)
        if self.there == before:
            return False
        self.data, self.trouble = {}, None
        if self.there is not None:
            try:
                self.data = indexes.read_json(self.folder, self.name)
            except (LabError, OSError) as error:
                self.trouble = explain(error)
        return True


class _Reader:
    """What is known of a run, kept between two looks."""

    def __init__(self, folder: Folder, begin: Callable[[], Summary]) -> None:
        self.folder, self.id = folder, folder.id
        self.phases, self.settings, self.step_seconds = Phases(), "", dict[int, float]()
        """`step_seconds`: of a step in each phase that was timed, phases counted from 0."""
        self._held, self._begin = False, begin
        self._content, self._result, self._failure = (_File(folder, f"{name}.json") for name in ("run", "result", "failure"))
        self._tail = Tail(folder.path / FILE, begin)
        self._unreadable: str | None = None
        self._known: tuple[Mapping[int, float], Status] | None = None

    @property
    def content(self) -> Mapping[str, Any]:
        return self._content.data

    @property
    def log(self) -> Summary:
        return self._tail.summary

    def read(self, indexes: Indexes) -> None:
        # First who has it, then the files: what a process leaves behind is there before it lets go.
        held, self._held = self._held, self.folder.held
        content = self._content.read(indexes)
        if content:
            self._take_in_content()
        ended = [file.read(indexes) for file in (self._result, self._failure)]
        log = self._read_log(indexes)
        if content or log or any(ended) or held != self._held or not self._tail.summary.last:
            self._known = None
        if content or log:
            batch, paces = _number(self._content.data.get("batch")), self._tail.summary.pace
            self.step_seconds = {phase - 1: batch * sum(1 / each for each in pace) / len(pace) for phase, pace in paces.items()}

    def _read_log(self, indexes: Indexes) -> bool:
        try:
            self._unreadable = None
            return self._tail.read() if self._tail.begun or not self._result.there else self._read_whole_log(indexes)
        except LabError as error:
            self._unreadable = str(error)
            return True
        except OSError as error:
            self._unreadable = f"{self._tail.path}: {error.strerror}"
            return True

    def _read_whole_log(self, indexes: Indexes) -> bool:
        """Of a finished run; what it comes to is known, or is known from now on."""
        index, before = indexes.of(self.folder), identity(self._tail.path)
        there = index.identity(self.folder, FILE) if self._begin is Summary else None
        known = index.data(self.folder, FILE, there)
        if known is not None and before is not None:
            with suppress(ValueError):
                self._tail.take_over(before, Summary.from_json(known))
                return True
        read = self._tail.read()
        index.add(self.folder, FILE, there, self._tail.summary.to_json())
        return read

    def _take_in_content(self) -> None:
        content = self._content.data
        self.settings = hash_of(content, without=(*NOT_CONTENT, "seed"))
        self.phases = Phases()
        if content:
            try:
                self.phases = phases_in(content)
            except LabError as error:
                self._content.trouble = f"{self._content.path}: {error}"

    def status(self, furthest: Mapping[int, float]) -> Status:
        """What it was, as long as nothing is new."""
        if self._known is None or self._known[0] != furthest:
            self._known = furthest, self._status(furthest)
        return self._known[1]

    def _status(self, furthest: Mapping[int, float]) -> Status:
        log, state = self._tail.summary, self._state()
        clock, skipped = (log.last.clock, log.last.skipped) if log.last else (0, 0)
        number = self.phases.at(clock)
        here = self.phases.every[number] if state != "waiting" and number < len(self.phases.every) else None
        seconds, at_least = None, False
        if state == "training" and log.last:
            seconds, at_least = seconds_left(self.phases, clock, log.last.phase - 1, self.step_seconds, furthest)
        in_range, beyond = self._accuracies()
        return Status(
            run=self.id,
            state=state,
            **_names(self._content.data),
            phase=number + 1 if here else None,
            phases=len(self.phases.every),
            off=here.off if here else (),
            step=log.last.step if log.last else 0,
            steps=self.phases.steps - skipped if self.phases.every else None,
            at_most=state != "finished" and self.phases.open_ended(clock),
            loss=log.last.loss if log.last else None,
            in_range=in_range,
            beyond=beyond,
            seconds_left=seconds,
            at_least=at_least,
            failure=self._reason() if state == "failed" else None,
            trouble=self._trouble(),
            notes=tuple(self._tail.summary.notes),
        )

    def _state(self) -> State:
        if self._result.there:
            return "finished"
        if self._failure.there:
            return "failed"
        last = self._tail.summary.last
        if self._held:
            return "measuring" if last and self.phases.every and last.clock >= self.phases.steps else "training"
        return "stopped" if last or any((self.folder.path / name).exists() for name in CHECKPOINTS) else "waiting"

    def _reason(self) -> str:
        return self._failure.trouble or str(self._failure.data.get("message", "no reason is given"))

    def _trouble(self) -> str | None:
        line = self._tail.summary.foreign
        foreign = None if line is None else f"line {line} of {self._tail.path} is foreign"
        return self._content.trouble or self._unreadable or foreign or self._result.trouble

    def _accuracies(self) -> tuple[Accuracy | None, Accuracy | None]:
        """The latest at the longest length in the training range, and at the longest beyond it."""
        measured = _measured(self._result.data) or [Accuracy(*each) for each in self._tail.summary.accuracy.items()]
        limit = max((phase.longest for phase in self.phases.every), default=math.inf)
        inside = [each for each in measured if each.length <= limit]
        return max(inside, default=None), max((each for each in measured if each.length > limit), default=None)


def _measured(result: Mapping[str, Any]) -> list[Accuracy]:
    try:
        counts = map(Count.from_json, result.get("counts", ()))
        return [Accuracy(int(count.length), count.accuracy) for count in counts if count.question == ALL]
    except (LabError, AttributeError, KeyError, TypeError, ValueError):
        return []


def _names(content: Mapping[str, Any]) -> dict[str, Any]:
    seed = content.get("seed")
    parts = {"task": content.get("task"), "model": content.get("model"), "training": content.get("schedule")}
    return {key: _name(part) for key, part in parts.items()} | {"seed": seed if isinstance(seed, int) else None}


def _name(part: Any) -> str:
    """What a task, a model or a schedule is called: by its name; by the questions it was made to ask; by its class."""
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("name"), str):
        return str(part["name"])
    if isinstance(part.get("questions"), list):
        return "-".join(map(str, part["questions"]))
    return str(part.get("kind", "")).rpartition(":")[2]


def _number(value: Any) -> float:
    """0 where it is none, or none that a batch can be."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < 2**53 else 0.0
