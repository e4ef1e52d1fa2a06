"""What finished runs hold, in one file of their store, so that thousands of them are not opened one by one every time.

It is derived: safe to delete, made anew where it is missing, torn, foreign or of another version. Whatever is taken from it is
taken only while the file it was read from is the very same, and is checked as that file would be. Small stores have none.

    {"version": 1, "parts": [...], "runs": {"<folder>": {"result.json": [[inode, ...], {"seed": 0, "counts": [3]}]}}}

A list or a table in a file is one of `parts`, by its number: runs that differ in their seed share most of what they hold.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import time_ns
from typing import Any

from lengthlab.errors import LabError
from lengthlab.store.disk import replace_file, sweep
from lengthlab.store.folder import Folder
from lengthlab.store.log import identity
from lengthlab.store.plain_file import require_plain

FILE = ".index"
VERSION = 1
FEWEST = 50
"""Runs from which on a store has an index."""
MOST_BYTES = 2**29
SETTLED = 2_000_000_000
"""Nanoseconds after which a file is old enough: one written again within a tick of the disk's clock may look the same."""
NEW_SHARE = 50
"""The index is written again when more than one in so many runs is not in it as it is now."""

Identity = list[int]


class Index:
    """Of one store. `read_json` is that of a folder, but of what is known nothing is opened.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as store:
    ...     folder = Folder(Path(store) / "0123456789ab")
    ...     folder.write_json("result.json", {"seed": 3})
    ...     Index(Path(store)).read_json(folder, "result.json")
    {'seed': 3}
    """

    def __init__(self, root: Path, runs: int = 0) -> None:
        """`runs`: how many are to be read; few are read without an index."""
        self._root, self._used = root, runs >= FEWEST
        path = str(root / FILE)
        self._parts, self._runs = _read(path, identity(path)) if self._used else ([], {})
        self._fresh: dict[str, dict[str, tuple[Identity, Mapping[str, Any]]]] = {}
        self._seen: set[str] = set()

    def read_json(self, folder: Folder, name: str) -> dict[str, Any]:
        """What a file of a run says; `LabError` as `Folder.read_json`."""
        there = self.identity(folder, name)
        known = self.data(folder, name, there)
        if known is not None:
            return known
        data = folder.read_json(name)
        self.add(folder, name, there, data)
        return data

    def identity(self, folder: Folder, name: str) -> Identity | None:
        """Of a plain file; None of what is none, or if this store has no index."""
        if not self._used:
            return None
        try:
            found = os.lstat(f"{folder.path}/{name}")
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return [found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns]

    def data(self, folder: Folder, name: str, there: Identity | None) -> dict[str, Any] | None:
        """What is known of a file that is still the same."""
        if there is None:
            return None
        run = folder.path.name
        self._seen.add(run)
        found = self._unpacked(run, name)
        return found[1] if found and found[0] == there else None

    def add(self, folder: Folder, name: str, there: Identity | None, data: Mapping[str, Any]) -> None:
        """What was read of a file after it had this identity; of a run that is not finished nothing is kept."""
        if there is not None and max(there[3:]) < time_ns() - SETTLED and folder.finished:
            self._fresh.setdefault(folder.path.name, {})[name] = there, data

    def save(self) -> None:
        """Write it, where enough is new and the store can be written to; nothing depends on it."""
        if not self._used or NEW_SHARE * len(self._fresh) <= len(self._seen):
            return
        with suppress(OSError, ValueError, RecursionError):
            if os.access(self._root, os.W_OK):
                sweep(self._root)
                replace_file(self._root / FILE, self._packed())

    def _packed(self) -> bytes:
        """Everything known, but for runs that are no more; packed anew, so that no part stays that nobody has."""
        parts: dict[str, int] = {}

        def packed(item: Any) -> Any:
            return [parts.setdefault(_text(item), len(parts))] if isinstance(item, (dict, list)) else item

        runs: dict[str, dict[str, Any]] = {}
        for run in dict.fromkeys((*self._runs, *self._fresh)):
            if run in self._seen or os.path.exists(self._root / run):
                files = self._kept(run) | self._fresh.get(run, {})
                runs[run] = {
                    name: [there, {key: packed(item) for key, item in data.items()}] for name, (there, data) in files.items()
                }
        return f'{{"version": {VERSION}, "parts": [{",".join(parts)}], "runs": {_text(runs)}}}\n'.encode()

    def _kept(self, run: str) -> dict[str, tuple[Identity, Mapping[str, Any]]]:
        """What the index said of a run, as far as it can be read."""
        files = self._runs.get(run)
        unpacked = {name: self._unpacked(run, name) for name in files} if isinstance(files, dict) else {}
        return {name: found for name, found in unpacked.items() if found}

    def _unpacked(self, run: str, name: str) -> tuple[Identity, dict[str, Any]] | None:
        """None of what we did not write: the file may be anybody's."""
        try:
            there, packed = self._runs[run][name]
            return there, {key: self._parts[item[0]] if type(item) is list else item for key, item in packed.items()}
        except (AttributeError, LookupError, TypeError, ValueError):
            return None


_text = json.JSONEncoder(separators=(",", ":")).encode


@lru_cache(maxsize=1)
def _read(path: str, there: tuple[int, ...] | None) -> tuple[list[Any], dict[str, Any]]:
    """Parts and runs; none where the file is missing, torn, foreign, or of another version. `there`: which file it is; one that
    was read is not read again.
    """
    try:
        require_plain(path, MOST_BYTES)
        found = json.loads(Path(path).read_bytes())
        parts, runs = found["parts"], found["runs"]
        if found["version"] == VERSION and isinstance(parts, list) and isinstance(runs, dict):
            return parts, runs
    except (LabError, OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
        pass
    return [], {}


class Indexes:
    """Of all the stores that folders lie in.

    >>> Indexes([]).save()
    """

    def __init__(self, folders: Iterable[Folder]) -> None:
        numbers = Counter(folder.root for folder in folders)
        self._every = {root: Index(Path(root), number) for root, number in numbers.items()}

    def of(self, folder: Folder) -> Index:
        """The index of the store that a folder lies in."""
        return self._every.get(folder.root) or self._every.setdefault(folder.root, Index(Path(folder.root)))

    def read_json(self, folder: Folder, name: str) -> dict[str, Any]:
        """As `Index.read_json`."""
        return self.of(folder).read_json(folder, name)

    def save(self) -> None:
        """Every one that has enough that is new."""
        for index in self._every.values():
            index.save()
