"""Runs without a result, as plain data for a page, and what is new in them as small patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from lengthlab.report.course import Course, Stretch, stretches_of
from lengthlab.report.html_data import POINTS, course_facts
from lengthlab.report.origins_table import reason_of
from lengthlab.serve.growth import Growth
from lengthlab.store import Folder, Status, Watch
from lengthlab.store.ids import SHORT
from lengthlab.store.log import FILE, identity
from lengthlab.store.status import Accuracy, visible
from lengthlab.store.watch import Watched

AT_ONCE = 4 * 2**20
"""Bytes of logs that are read in one look at runs that are new: others wait for the next."""
Told = Mapping[str, Any]


class Drawing:
    """The course of one run as a page has it: what was written of it before is not written again."""

    def __init__(self) -> None:
        self._points: dict[str, Sequence[tuple[int, float]]] = {}
        self._written: dict[str, list[Any]] = {}
        self._content: Mapping[str, Any] | None = None
        self._stretches: tuple[Stretch, ...] = ()

    def course(self, run: Watched) -> dict[str, Any]:
        assert isinstance(run.log, Growth)
        if run.content is not self._content:
            self._content, self._stretches = run.content, stretches_of(run.content)
        course = run.log.course(run.status.seed or 0, _longest(run.content), self._stretches)
        return course_facts(course) | {name: self._line(name, course) for name in POINTS}

    def _line(self, name: str, course: Course) -> list[Any]:
        """Points stay as they are but for the last, until there are too many and two become one."""
        before, points = self._points.get(name, ()), getattr(course, name)
        kept = max(0, len(before) - 1)
        kept = kept if points[:kept] == before[:kept] else 0
        self._points[name] = points
        self._written[name] = [*self._written.get(name, [])[:kept], *map(POINTS[name], points[kept:])]
        return self._written[name]


class UnderWay:
    """`told` has every run by a number of its own, which it keeps."""

    def __init__(self) -> None:
        self.told: dict[str, Told] = {}
        self.statuses: tuple[Status, ...] = ()
        self._watch = Watch((), Growth)
        self._numbers: dict[Path, str] = {}
        self._drawings: dict[Path, Drawing] = {}

    def look(self, folders: Sequence[Folder]) -> bool:
        """Take in what is new; whether there is more to read."""
        taken = _within(folders, self._numbers)
        for folder in taken:
            self._numbers.setdefault(folder.path, str(len(self._numbers)))
        look = self._watch.look(taken)
        watched = self._watch.watched()
        before, self.statuses = self.told, look.statuses
        self.told = {}
        self._drawings = {path: self._drawings.get(path) or Drawing() for path in watched}
        for path, run in watched.items():
            number = self._numbers[path]
            new = number not in before or run.status.run in look.changed
            self.told[number] = told(run, self._drawings[path]) if new else before[number]
        return len(taken) < len(folders)


def _within(folders: Sequence[Folder], known: Mapping[Path, str]) -> list[Folder]:
    """Those that are known, and of the others as many as can be read at once; one at least."""
    taken, left = [], AT_ONCE
    for folder in folders:
        if folder.path not in known:
            if left <= 0:
                continue
            left -= 2**12 + (identity(folder.path / FILE) or (0, 0, 0))[2]
        taken.append(folder)
    return taken


def told(run: Watched, drawing: Drawing) -> Told:
    """Of one run: texts in which nothing acts on a reader, and numbers that JSON can hold."""
    status = run.status
    seed = "–" if status.seed is None else str(status.seed)
    texts = {"run": status.run[:SHORT], "task": status.task, "model": status.model, "training": status.training, "seed": seed}
    return {
        **{name: visible(text) for name, text in texts.items()},
        "state": status.state,
        "off": visible(", ".join(status.off)),
        "step": status.step,
        "steps": status.steps,
        "loss": None if status.loss is None or not isfinite(status.loss) else float(f"{status.loss:.4g}"),
        "inside": _share(status.in_range),
        "beyond": _share(status.beyond),
        "left": status.time_left,
        "reason": "" if status.state == "training" and not status.trouble else visible(reason_of(status)),
        "course": drawing.course(run),
    }


def _share(accuracy: Accuracy | None) -> list[float] | None:
    known = accuracy is not None and isfinite(accuracy.share)
    return [accuracy.length, round(accuracy.share, 4)] if accuracy and known else None


def _longest(content: Mapping[str, Any]) -> float:
    lengths = content.get("lengths")
    last = lengths[-1] if isinstance(lengths, list) and lengths else inf
    return last if isinstance(last, (int, float)) else inf


def patch(before: Mapping[str, Told], now: Mapping[str, Told]) -> dict[str, Any]:
    """What makes one the other: of a run the fields that differ, of a line of its course how many points stay and what comes
    after them. Empty where nothing is new.

    >>> was = {"0": {"state": "training", "step": 1, "course": {"loss": [[1, 2.0]]}}}
    >>> patch(was, {"0": {"state": "training", "step": 2, "course": {"loss": [[1, 2.0], [2, 1.5]]}}})
    {'runs': {'0': {'step': 2, 'lines': {'loss': [1, [[2, 1.5]]]}}}}
    """
    runs = {key: _difference(before.get(key), run) for key, run in now.items() if run is not before.get(key)}
    gone = [key for key in before if key not in now]
    changed = {key: difference for key, difference in runs.items() if difference}
    return ({"runs": changed} if changed else {}) | ({"gone": gone} if gone else {})


def _difference(before: Told | None, now: Told) -> Told:
    if before is None:
        return now
    fields = {name: value for name, value in now.items() if name != "course" and value != before.get(name)}
    here, there = now["course"], before["course"]
    if any(here[name] != there[name] for name in here if name not in POINTS):
        return fields | {"course": here}
    lines = {name: _grown(there[name], here[name]) for name in POINTS if name in here and here[name] != there[name]}
    return fields | ({"lines": lines} if lines else {})


def _grown(before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """Most often all but the last point are as they were."""
    kept = max(0, min(len(before), len(now)) - 1)
    if before[:kept] != now[:kept]:
        kept = next(place for place, (one, other) in enumerate(zip(before, now, strict=False)) if one != other)
    elif before[kept : kept + 1] == now[kept : kept + 1]:
        kept = min(len(before), len(now))
    return [kept, list(now[kept:])]
