"""Run folders: `runs/<id>/` holds all that is known of a run. Every file is replaced whole or not at all.

    run.json                 content; written first
    log.jsonl                a line every few steps
    checkpoint.safetensors   where to go on from; gone when the run is finished
    checkpoint.2.safetensors the same: the two are written in turn, so that the one before the newest is there, too
    weights.safetensors      what was learned
    measured.json            what was measured so far, where that takes long; gone when the run is finished
    result.json              what was measured; written last, so that its presence means finished
    why.json                 why it goes as far as it does, if somebody asked (diagnosis.py)
    failure.json             why the run stopped, if it did
    traceback.txt            where in the code that was

No pickle, no torch here: a report needs neither.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from traceback import format_exception
from typing import Any

from filelock import FileLock, Timeout

from lengthlab.errors import LabError, explain, reason, require
from lengthlab.store.disk import check_place, make_folder, named, replace_file, sweep
from lengthlab.store.ids import SHORT, same_run
from lengthlab.store.leased import is_leased, looks_until_free, wait_for_worker
from lengthlab.store.log import FILE as LOG
from lengthlab.store.log import identity, parse
from lengthlab.store.place import is_address
from lengthlab.store.plain_file import MOST_JSON, MOST_LOG, require_plain

try:
    import fcntl
except ImportError:  # Windows: there a lock is tried by taking it
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("lengthlab")
CHECKPOINT = "checkpoint.safetensors"
CHECKPOINTS = (CHECKPOINT, "checkpoint.2.safetensors")
"""Written in turn; the newest is the one with more steps."""
WEIGHTS = "weights.safetensors"
MEASURED = "measured.json"
FAILURE = "failure.json"
TRACEBACK = "traceback.txt"
PATIENCE = 0.1
"""Seconds after which a lock is held by somebody at work, and not by somebody who only looks whether it is held."""


class Busy(LabError):
    """Another process has the folder."""


@dataclass(frozen=True)
class Folder:
    """The folder of one run."""

    path: Path

    @property
    def id(self) -> str:
        return os.path.basename(os.path.realpath(self.path))

    @property
    def finished(self) -> bool:
        return os.path.exists(f"{self.path}/result.json")  # asked again and again: a text is quicker than a Path

    @cached_property
    def root(self) -> str:
        """The store that it lies in."""
        return os.path.dirname(self.path)

    def write(self, name: str, data: bytes) -> None:
        replace_file(self.path / name, data)

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        self.write(name, (json.dumps(data, indent=1) + "\n").encode())

    def read_json(self, name: str) -> dict[str, Any]:
        """What a file of the folder says; `LabError` where it says nothing, or something else."""
        path = self.path / name
        require_plain(path, MOST_JSON)
        try:
            data = json.loads(path.read_bytes())
            require(isinstance(data, dict), "")
        except FileNotFoundError:
            raise LabError(f"{path} is missing: put it back, or move the folder away and start again") from None
        except OSError as error:
            raise LabError(f"{explain(error)}; move it away and start the same command again") from None
        except (LabError, ValueError, RecursionError):
            raise LabError(f"{path} is truncated or foreign: move it away and start the same command again") from None
        return dict(data)

    def record_failure(self, error: BaseException, step: int = 0) -> None:
        """Why the run stopped, in a line, and where; a disk that takes no more takes no failure either."""
        note = {"run": self.id, "step": step, "message": explain(error)}
        with suppress(OSError):
            self.write(TRACEBACK, "".join(format_exception(error)).encode("utf-8", "backslashreplace"))
            self.write_json(FAILURE, note | {"date": datetime.now(UTC).isoformat(timespec="seconds")})

    def forget_failure(self) -> None:
        """A run that goes on has not failed."""
        self.remove(FAILURE)
        self.remove(TRACEBACK)

    def forget_checkpoints(self) -> None:
        """A run that is finished does not go on."""
        for name in (*CHECKPOINTS, MEASURED):
            self.remove(name)

    def explain_failure(self, error: Exception) -> str:
        """A failure as one line for the user. Where that may not be enough, because their own code or a bug raised it, it
        names the file with the stack trace.
        """
        kept, foreseen = (self.path / TRACEBACK).exists(), isinstance(error, LabError) and error.__cause__ is None
        return explain(error) if foreseen or not kept else f"{explain(error)} (where in the code: {self.address(TRACEBACK)})"

    def address(self, name: str) -> str:
        """Where a user finds this file."""
        return str(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def lock(self, wait: bool = True) -> Iterator[None]:
        """One process at a time. The lock dies with its process, so a killed one leaves nothing behind.

        Without `wait`, a folder that another process has is `Busy`.
        """
        make_folder(self.path)
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=PATIENCE / 4)
        except Timeout:
            if not wait:
                raise Busy(f"run {self.id} is in the hands of another process") from None
            log.warning("run %s is in the hands of another process; waiting for it", self.id)
            lock.acquire()
        try:
            if wait:
                wait_for_worker(self.path)
            elif any(True for _ in looks_until_free(self.path)):
                raise Busy(f"run {self.id} is in the hands of a worker")
            sweep(self.path)
            yield
        finally:
            lock.release()

    @property
    def held(self) -> bool:
        """Whether a process has the lock now, or a lease. To look disturbs nobody, makes no file, needs no right to write."""
        return self.locked or self.leased

    @property
    def leased(self) -> bool:
        """Whether a worker has the run, or had it when it was last heard of (lease.py)."""
        return is_leased(self.path)

    @property
    def locked(self) -> bool:
        """Whether a process has the lock now."""
        path = os.path.join(self.path, ".lock")
        try:
            with open(path, "rb", buffering=0) as file:
                if fcntl is None:
                    FileLock(path).acquire(timeout=0).lock.release()
                else:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, Timeout):
            return True
        except OSError as error:
            return error.errno == errno.ENOSYS  # where the disk knows no locks, the file itself is one
        return False

    def append_log(self, line: Mapping[str, Any]) -> None:
        with named(self.path / LOG), open(self.path / LOG, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def sync_log(self) -> None:
        """Have the disk keep the lines so far: a checkpoint is never there without them, whatever the power does."""
        with suppress(FileNotFoundError), named(self.path / LOG), open(self.path / LOG, "ab") as file:
            os.fsync(file.fileno())

    def read_log(self) -> list[dict[str, Any]]:
        """The lines so far; one that is still being written is left for the next time."""
        path = self.path / LOG
        require_plain(path, MOST_LOG)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        try:
            return [parse(line) for line in data.split(b"\n")[:-1]]
        except ValueError:
            raise LabError(f"{path} is foreign: move it away and start the same command again") from None

    def trim_log(self, step: int) -> None:
        """Forget lines past the step that a resumed run goes on from: they will be written again."""
        kept = [line for line in self.read_log() if line["step"] <= step]
        self.write(LOG, "".join(json.dumps(line) + "\n" for line in kept).encode())


class Store:
    """A folder of run folders.

    >>> Store("runs").folder("0123456789ab").path.as_posix()
    'runs/0123456789ab'
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        require(os.fspath(root) != "", "name a folder to keep runs in: an empty text would be this one")
        way = "put runs there by train --queue, train them by worker, and get them as a folder by fetch"
        require(not is_address(root), f"'{root}' is an object store, and this takes a folder: {way}")
        self.root = Path(root)

    def prepare(self) -> None:
        """Make the folder, and refuse one that cannot be written to before any work is done."""
        check_place(self.root, "store")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / f".{os.getpid()}.probe"
            probe.write_bytes(b"")
            probe.unlink(missing_ok=True)  # two machines on one store may have a process of the same number
        except OSError as error:
            raise LabError(f"store '{self.root}' is not writable: {reason(error)}") from None

    def folder(self, run_id: str) -> Folder:
        """Of a run, also where it lies under its short id of version 0.1."""
        long = os.path.join(self.root, run_id)
        known = os.path.exists(long) or not os.path.exists(short := os.path.join(self.root, run_id[:SHORT]))
        return Folder(Path(long if known else short))

    def folders(self) -> list[Folder]:
        """Every run folder, oldest first."""
        require(self.root.is_dir(), f"there is no store at '{self.root}'")
        found = {name: identity(os.path.join(self.root, name, "run.json")) for name in sorted(os.listdir(self.root))}
        there = {name: file[-1] for name, file in found.items() if file}
        return [Folder(self.root / name) for name in sorted(there, key=there.__getitem__)]

    def find(self, name: str) -> Folder:
        """The run folder whose id starts so."""
        require(bool(name), f"name a run: a run folder, or the start of an id in '{self.root}'")
        found = [folder for folder in self.folders() if folder.id.startswith(name) or same_run(folder.id, name)]
        require(len(found) > 0, f"no run in '{self.root}' has an id that starts with '{name}'")
        require(len(found) == 1, f"several runs in '{self.root}' start with '{name}': give more of the id")
        return found[0]


def named_folders(names: Sequence[str]) -> list[Folder]:
    """The run folders that these paths mean: each a run folder or a store."""
    folders: list[Folder] = []
    for name in names:
        path = Path(name)
        require(bool(name) and path.is_dir(), f"'{name}' is neither a run folder nor a store")
        folders += [Folder(path)] if (path / "run.json").exists() else Store(path).folders()
    require(len(folders) > 0, f"no runs in {', '.join(names)}")
    return list({os.path.realpath(folder.path): folder for folder in folders}.values())
