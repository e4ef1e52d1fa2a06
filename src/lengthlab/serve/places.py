"""Which run folders a server may read: those within the folders that its user named, and no link out of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from time import time_ns

from lengthlab.errors import require
from lengthlab.store import Folder
from lengthlab.store.log import identity

FILES = ("run.json", "log.jsonl", "result.json", "failure.json", "why.json", ".lock")
"""All that is read of a run."""
SETTLED = 100_000_000
"""Nanoseconds after which the time of a folder tells it from what it becomes next: the clocks of disks tick more often."""


class Places:
    """Stores and run folders, as they were named.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as store:
    ...     (Path(store) / "0123456789ab").mkdir()
    ...     (Path(store) / "0123456789ab" / "run.json").symlink_to("/etc/hostname")
    ...     folders, problems = Places([store]).look()
    ...     len(folders), [problem.rpartition(": ")[2] for problem in problems]
    (0, ['run.json is no file in it'])
    """

    def __init__(self, names: Sequence[str]) -> None:
        for name in names:
            require(bool(name) and os.path.isdir(name), f"'{name}' is neither a run folder nor a store")
        self.roots = tuple(dict.fromkeys(os.path.realpath(name) for name in names))
        self._plain: dict[str, tuple[int, ...]] = {}
        """Folders in which nothing is a link, as they were when that was seen."""

    def look(self) -> tuple[list[Folder], list[str]]:
        """The run folders there are now, by name, and a line for each that is not read."""
        folders: list[Folder] = []
        problems: list[str] = []
        for path in dict.fromkeys(path for root in self.roots for path in _runs_in(root)):
            wrong = self.wrong(path)
            if wrong:
                problems.append(f"{path}: {wrong}")
            else:
                folders.append(Folder(Path(path)))
        return folders, problems

    def wrong(self, path: str) -> str:
        """What keeps a folder from being read; empty where nothing does. What comes, goes or is replaced in a folder changes
        its time: where nothing in it was a link, nothing has become one as long as that is the same.
        """
        there = identity(path)
        if there is not None and self._plain.get(path) == there:
            return ""
        self._plain.pop(path, None)
        linked = os.path.islink(path)
        if linked and not self._within(path):
            return "a link that leads out of what is served"
        files = [os.path.join(path, name) for name in FILES]
        outside = [name for name in files if not self._own(name)]
        if outside:
            return f"{os.path.basename(outside[0])} is no file in it"
        settled = there is not None and time_ns() - there[-1] > SETTLED
        if there is not None and settled and not linked and not any(map(os.path.islink, files)):
            self._plain[path] = there
        return ""

    def _own(self, path: str) -> bool:
        """Whether it is a file of ours, or none: no link out, and nothing that a reader would wait for, like a pipe."""
        try:
            found = os.lstat(path)
            if S_ISLNK(found.st_mode):
                found = os.stat(path)
                return S_ISREG(found.st_mode) and self._within(path)
        except OSError:
            return not os.path.islink(path)
        return S_ISREG(found.st_mode)

    def _within(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(real == root or real.startswith(root + os.sep) for root in self.roots)


def _runs_in(root: str) -> Iterator[str]:
    """A run folder itself, or those in a store; none where it is gone."""
    if os.path.lexists(os.path.join(root, "run.json")):
        yield root
        return
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return
    for name in names:
        path = os.path.join(root, name)
        if os.path.lexists(os.path.join(path, "run.json")) and S_ISDIR(_mode(path)):
            yield path


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0
