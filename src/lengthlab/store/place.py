"""Where claims are kept, as few operations: what a plain folder, an NFS-like one and an object store can all do.

The code of leases (lease.py) only says what it wants done: it yields operations and is sent their answers. So the same code
works on a folder (`FolderPlace`), on an object store, and in a simulation where a thousand workers wait for slow answers.

    Names(folder)         the names in it; none if it is not there
    Read(name)            what is in it, None if it is not there
    Create(name, data)    whether it was created; False if it was there before. It is there whole or not at all
    Replace(name, data)   for names that one process alone writes
    Remove(name)          it need not be there
    Open(fence)           a folder that its owner's writes have to pass through, see fenced.py
    Close(fence)          after this, nothing passes

Where the answer is lost, TimeoutError (or another OSError) is thrown: then nobody knows whether it was done.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

T = TypeVar("T")
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
GONE = (errno.ENOENT, errno.ESTALE)
MOST = 2**20
"""Bytes of a claim or a heartbeat that are read: far more than there are."""


@dataclass(frozen=True)
class Names:
    folder: str


@dataclass(frozen=True)
class Read:
    name: str


@dataclass(frozen=True)
class Create:
    name: str
    data: bytes


@dataclass(frozen=True)
class Replace:
    name: str
    data: bytes


@dataclass(frozen=True)
class Remove:
    name: str


@dataclass(frozen=True)
class Open:
    fence: str


@dataclass(frozen=True)
class Close:
    fence: str


Operation = Names | Read | Create | Replace | Remove | Open | Close
Steps = Generator[Operation, Any, T]
"""Code that yields operations, is sent their answers, and comes to a T."""


class Place(Protocol):
    """Carries operations out."""

    def do(self, operation: Operation) -> Any: ...


def is_address(store: str | os.PathLike[str]) -> bool:
    """Whether a store is an object store, and no folder.

    >>> is_address("s3://bucket/runs"), is_address("/shared/runs")
    (True, False)
    """
    return "://" in os.fspath(store)


def carry_out(steps: Steps[T], place: Place) -> T:
    """Go through the steps, one operation after the other.

    >>> from tempfile import TemporaryDirectory
    >>> def steps():
    ...     return (yield Create("a/1", b"one")), (yield Create("a/1", b"two")), (yield Names("a")), (yield Read("a/1"))
    >>> with TemporaryDirectory() as folder:
    ...     carry_out(steps(), FolderPlace(folder))
    (True, False, ['1'], b'one')
    """
    answer, error = None, None
    while True:
        try:
            operation = steps.throw(error) if error else steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answer, error = None, None
        try:
            answer = place.do(operation)
        except OSError as trouble:
            error = trouble


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that somebody put in its place is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class FolderPlace:
    """A folder that several hosts may see. It needs no locks, and no clock: a file is created by a link to one that is whole,
    which every file system with links does for one of many alone; where there are no links, by exclusive opening.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def do(self, operation: Operation) -> Any:
        match operation:
            case Names(folder):
                return self._names(self.root / folder)
            case Read(name):
                return self._read(self.root / name)
            case Create(name, data):
                return self._create(self.root / name, data)
            case Replace(name, data):
                return os.replace(self._written(self.root / name, data), self.root / name)
            case Remove(name):
                return (self.root / name).unlink(missing_ok=True)
            case Open(fence):
                return (self.root / fence).mkdir(parents=True, exist_ok=True)
            case Close(fence):
                return self._close(self.root / fence)

    def _names(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except OSError as error:
            if error.errno in GONE:
                return []
            raise

    def _read(self, path: Path) -> bytes | None:
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                return file.read(MOST)
        except OSError as error:
            if error.errno in GONE:  # replaced by another host while it was opened: the next look finds it
                return None
            raise

    def _create(self, path: Path, data: bytes) -> bool:
        written = self._written(path, data)
        try:
            os.link(written, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            return self._create_without_links(path, data)
        finally:
            written.unlink(missing_ok=True)
        return True

    def _create_without_links(self, path: Path, data: bytes) -> bool:
        """Who reads it too soon finds it empty, and takes it for that of an owner who has not been heard of yet."""
        try:
            with open(path, "xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True

    def _written(self, path: Path, data: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.parent / f".{uuid4().hex}.partial"
        try:
            with open(partial, "xb") as file:
                file.write(data)
        except OSError:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        return partial

    def _close(self, fence: Path) -> None:
        """Until it is gone: an owner that is still at work may put another file into it meanwhile."""
        if fence.is_symlink():  # none of ours: nothing behind it is touched
            fence.unlink(missing_ok=True)
        while fence.is_dir():
            shutil.rmtree(fence, ignore_errors=True)
