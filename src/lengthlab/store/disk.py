"""How files get to the disk: whole or not at all, and still there after a power cut."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from lengthlab.errors import LabError, reason
from lengthlab.store.lease import HOST
from lengthlab.store.log import identity

SILENT_SECONDS = 3600.0
"""After which what a process of another machine has half written is given up."""


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one move; whoever reads meets the old one or the new one, and a full disk leaves the old one."""
    make_folder(path.parent)
    partial = path.parent / f".{path.name}.{HOST}.{os.getpid()}.partial"
    try:
        with named(path):
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            sync_names(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An error of the disk names this file: one of a write names none, and one of a file that is moved in its place another."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_folder(path: Path) -> None:
    """A folder, and those above it, that will still be there after a power cut."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        sync_names(path.parent)


def sync_names(folder: Path) -> None:
    """Have the disk keep which files a folder has: a power cut may undo later moves, but none up to now, so that a result is
    never there without its weights. Where folders cannot be synced, the disk keeps the order of moves by itself.
    """
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_place(folder: Path, what: str) -> None:
    """Refuse a folder that cannot be made or written to, before any work is done; nothing is made of it yet.

    >>> check_place(Path(__file__) / "runs", "--out")
    Traceback (most recent call last):
    lengthlab.errors.LabError: --out '...' is not writable: Not a directory; a file is in the way of a folder
    """
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if _is_there(place))
        number = 0 if os.access(there, os.W_OK | os.X_OK) else errno.EACCES
        number = number if os.path.isdir(there) else errno.ENOTDIR
        if number:
            raise OSError(number, os.strerror(number))
    except OSError as error:
        raise LabError(f"{what} '{folder}' is not writable: {reason(error)}") from None


def _is_there(place: Path) -> bool:
    """Whether something has this name; a link that leads nowhere has."""
    try:
        os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return place.is_symlink()
    return True


def sweep(folder: Path) -> None:
    """Remove what killed processes left half written in a folder."""
    with os.scandir(folder) as found:
        names = [each.name for each in found if each.name.startswith(".") and each.name.endswith(".partial")]
    for partial in (folder / name for name in names):
        if _abandoned(partial):
            partial.unlink(missing_ok=True)


def _abandoned(partial: Path) -> bool:
    """Whether nobody writes this file any more: its process is gone, or, on another machine, has been silent for long."""
    *_, host, process, _ = partial.name.rsplit(".", 3)
    if host == HOST:
        return not _alive(process)
    there = identity(partial)
    return there is not None and time() - there[-1] / 1e9 > SILENT_SECONDS


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True
