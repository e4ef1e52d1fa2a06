"""Finished runs: the result of each is read once, and then its log, a little at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from lengthlab.report.course import Course, stretches_of
from lengthlab.report.curves import Curve, read_curves
from lengthlab.serve.growth import Growth
from lengthlab.store import Folder
from lengthlab.store.log import FILE, Tail, identity

Files = tuple[tuple[int, ...] | None, ...]


@dataclass
class _Known:
    """What was read of a run, and of which files."""

    files: Files
    curve: Curve | None
    problem: str = ""
    course: Course | None = None


class Finished:
    """What a page shows of them, as far as it is read."""

    def __init__(self) -> None:
        self._known: dict[Path, _Known] = {}

    def look(self, folders: Sequence[Folder], seconds: float) -> bool:
        """Take in what is new, results before logs, for so long; whether there is more to read."""
        files: dict[Path, tuple[Folder, Files]] = {folder.path: (folder, _files(folder)) for folder in folders}
        self._known = {path: known for path, known in self._known.items() if path in files and files[path][1] == known.files}
        end = perf_counter() + seconds
        for path, (folder, its_files) in files.items():
            if path not in self._known:
                curves, problems = read_curves([folder])
                self._known[path] = _Known(its_files, curves[0] if curves else None, "; ".join(problems))
                if perf_counter() > end:  # not before one is read, so that every look comes further
                    return True
        return self._read_logs(end)

    def _read_logs(self, end: float) -> bool:
        for known in self._known.values():
            if known.curve and not known.course:
                known.course = _course(known.curve)
                if perf_counter() > end:
                    return True
        return False

    @property
    def version(self) -> tuple[object, ...]:
        """Another one where the page would be another; logs count when all are read."""
        read = all(known.course or not known.curve for known in self._known.values())
        return (*sorted((str(path), known.files) for path, known in self._known.items()), read)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Each run once."""
        curves = {known.curve.first.run: known.curve for known in self._known.values() if known.curve}
        return tuple(sorted(curves.values(), key=lambda curve: curve.first.seed))

    @property
    def courses(self) -> Mapping[str, Course]:
        found = [known for known in self._known.values() if known.curve and known.course and known.course.loss]
        return {known.curve.first.run: known.course for known in found if known.curve and known.course}

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(known.problem for known in self._known.values() if known.problem)

    @property
    def unread(self) -> int:
        """Runs whose log is still to be read."""
        return sum(known.course is None and known.curve is not None for known in self._known.values())


def _files(folder: Folder) -> Files:
    """Those that a page is made of, but for the log, which is read once."""
    return tuple(identity(f"{folder.path}/{name}") for name in ("result.json", "run.json", "why.json"))


def _course(curve: Curve) -> Course:
    tail = Tail(curve.folder.path / FILE, Growth)
    with suppress(OSError):  # without a log, a run has no curve of its training
        tail.read()
    assert isinstance(tail.summary, Growth)
    return tail.summary.course(curve.first.seed, curve.trained[1], stretches_of(curve.content, curve.made.get("ends")))
