"""A run folder that is written under a lease: once the lease is another's, nothing of ours gets into it any more.

Every file is written beside the others, in a folder of the lease's own, and moved from there to its place. Who takes over
removes that folder first, so a move that comes late finds nothing to move, wherever its process had been suspended: the disk
itself decides, in one operation, and not a look before. Log lines go to the very file that this owner made, which is no longer
the run's as soon as the next owner has made its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lengthlab.errors import LabError
from lengthlab.store.disk import named, sync_names
from lengthlab.store.folder import CHECKPOINTS, Busy, Folder, Store
from lengthlab.store.lease import Lease
from lengthlab.store.log import FILE as LOG
from lengthlab.store.place import GONE, FolderPlace, Place


class Lost(LabError):
    """The lease is another's by now."""

    def __init__(self, run: str, why: str = "was taken over by another process, which goes on with it") -> None:
        super().__init__(f"run {run} {why}")


@dataclass(frozen=True)
class FencedFolder(Folder):
    """The folder of a run that this process has a lease of; `fence` is the folder that its writes pass through."""

    fence: Path
    open_files: dict[str, IO[bytes]] = field(default_factory=dict, repr=False, compare=False)
    kept: set[str] = field(default_factory=set, repr=False, compare=False)
    """The ids of runs with a checkpoint of ours."""
    on_kept: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """Called when this run has come to be one of them."""

    def write(self, name: str, data: bytes) -> None:
        self._pass(name, data).close()
        if name in CHECKPOINTS and self.id not in self.kept:
            self.kept.add(self.id)
            self.on_kept()

    def _pass(self, name: str, data: bytes) -> IO[bytes]:
        """The file, open still, at its place."""
        partial = self.fence / name
        with self._or_lost():
            file = open(partial, "wb")  # noqa: SIM115
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.replace(partial, self.path / name)
                sync_names(self.path)
            except OSError as error:
                file.close()
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
                raise OSError(error.errno, error.strerror, str(self.path / name)) from None
            return file

    def remove(self, name: str) -> None:
        """By way of the fence, too: what is there may be the next owner's."""
        with self._or_lost():
            if (self.path / name).exists():
                os.replace(self.path / name, self.fence / name)
                (self.fence / name).unlink(missing_ok=True)
            self._require_open()

    def record_failure(self, error: BaseException, step: int = 0) -> None:
        with suppress(Lost):  # then it is the next owner's
            super().record_failure(error, step)

    def trim_log(self, step: int) -> None:
        kept = [line for line in self.read_log() if line["step"] <= step]
        self.open_files[LOG] = self._pass(LOG, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def append_log(self, line: Mapping[str, Any]) -> None:
        with self._or_lost():
            self._require_open()
            file = self.open_files[LOG]
            with named(self.path / LOG):
                file.write((json.dumps(line) + "\n").encode())
                file.flush()

    def sync_log(self) -> None:
        with self._or_lost():
            if LOG in self.open_files:
                with named(self.path / LOG):
                    os.fsync(self.open_files[LOG].fileno())

    @contextmanager
    def lock(self, wait: bool = True) -> Iterator[None]:
        """The lease is the lock. A command of this machine that works without one is respected: then the run is `Busy`."""
        if self.locked:
            raise Busy(f"run {self.id} is in the hands of another process")
        try:
            with self._or_lost():
                self._require_open()
            yield
        finally:
            for file in self.open_files.values():
                file.close()
            self.open_files.clear()

    def _require_open(self) -> None:
        os.stat(self.fence)

    @contextmanager
    def _or_lost(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in GONE:
                raise Lost(self.id) from None
            raise


class LeasedStore(Store):
    """A store that has the folders of these leases to write to."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self.place: Place = FolderPlace(self.root)
        """Where claims are kept."""
        self.leases: dict[str, Lease] = {}
        """By run."""
        self.kept: set[str] = set()
        self.on_kept: Callable[[], None] = lambda: None

    def waits(self, run: str) -> bool:
        """Whether there is a run of this name that may be unfinished; then its `run.json` is in its folder now."""
        folder = self.folder(run)
        return not folder.finished and (folder.path / "run.json").exists()

    def is_finished(self, run: str) -> bool:
        """Whether a result is there."""
        return self.folder(run).finished

    def take(self, lease: Lease) -> None:
        """From now on the run's folder is ours; what the owners before kept is in it."""
        self.leases[lease.run] = lease

    def forget(self, run: str) -> None:
        """It is not ours any more."""
        self.kept.discard(run)

    def close(self) -> None:
        """It is not needed any more; nothing that was kept goes with it."""

    def folder(self, run_id: str) -> Folder:
        folder = super().folder(run_id)
        lease = self.leases.get(folder.id)
        if lease is None:
            return folder
        return FencedFolder(folder.path, self.root / lease.fence, kept=self.kept, on_kept=self.on_kept)
