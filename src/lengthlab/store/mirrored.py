"""Run folders in an object store: a worker trains in a scratch folder of its own machine, and what it writes there is put into
the store, under the number of its lease.

    STORE/<run>/run.json          what is to be trained, put by who queued it
    STORE/<run>/<n>/<file>        the run's folder as the owner of lease n has it, put by that owner alone
    STORE/<run>/.committed/<n>    put when all that the owners before had kept is in <n>, too: from then on <n> counts

There is nothing to close a fence with. Readers take the highest number that is committed, so an owner that comes back too late
writes to names that nobody reads any more. It finds out, too: what it has put counts only if nobody had ended its lease by
then, and who takes over ends the lease first and reads afterwards.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

from lengthlab.errors import explain
from lengthlab.store.fenced import LeasedStore, Lost
from lengthlab.store.folder import CHECKPOINTS, MEASURED, WEIGHTS, Folder
from lengthlab.store.lease import Lease, Leases
from lengthlab.store.log import FILE as LOG
from lengthlab.store.place import Names, Operation, Place, Read, Remove, Replace, Steps, carry_out

COMMITTED = ".committed"
CONTENT, RESULT = "run.json", "result.json"
KEPT = (RESULT, MEASURED, WEIGHTS, *CHECKPOINTS, LOG)
"""What the next owner takes over. Who finds one of them finds those after it, too, as they were then or later: they are written
in the opposite order.
"""


def newest(run: str) -> Steps[int]:
    """The number of the lease whose files count; 0 if nobody has had the run."""
    marks: list[str] = yield Names(f"{run}/{COMMITTED}")
    return max((int(mark) for mark in marks if mark.isascii() and mark.isdigit()), default=0)


def files_of(run: str, names: tuple[str, ...]) -> Steps[tuple[int, dict[str, bytes]]]:
    """Those of a run's files that are there, and the number of the lease they are from: all of one, whoever takes over."""
    while True:
        number, found = (yield from newest(run)), {}
        for name in names if number else ():
            data: bytes | None = yield Read(f"{run}/{number}/{name}")
            if data is not None:
                found[name] = data
        if (yield from newest(run)) == number:
            return number, found


def take_over(lease: Lease) -> Steps[dict[str, bytes]]:
    """What the owners before kept, now under the number of this lease, which counts from now on."""
    before, files = yield from files_of(lease.run, KEPT)
    for name in reversed(files):
        yield Replace(f"{lease.run}/{lease.number}/{name}", files[name])
    yield Replace(f"{lease.run}/{COMMITTED}/{lease.number}", b"")
    for name in (each for each in CHECKPOINTS if each in files):
        yield Remove(f"{lease.run}/{before}/{name}")  # the largest files there are, and nobody reads them any more
    return files


@dataclass(frozen=True)
class MirroredFolder(Folder):
    """The scratch folder of a run that this process has a lease of. A file that is in it is in the store."""

    store: MirroredStore = field(repr=False, compare=False)
    lease: Lease

    def write(self, name: str, data: bytes) -> None:
        self._do(Replace(self._there(name), data))
        super().write(name, data)
        if name in CHECKPOINTS and self.id not in self.store.kept:
            self.store.kept.add(self.id)
            self.store.on_kept()

    def remove(self, name: str) -> None:
        if (self.path / name).exists():
            self._do(Remove(self._there(name)))
            super().remove(name)

    def sync_log(self) -> None:
        """Lines are put with the checkpoint that they lead to, and not one by one."""
        self._do(Replace(self._there(LOG), (self.path / LOG).read_bytes()))

    def record_failure(self, error: BaseException, step: int = 0) -> None:
        with suppress(Lost):  # then it is the next owner's
            super().record_failure(error, step)

    def address(self, name: str) -> str:
        return f"{self.store.address}/{self._there(name)}"

    def _there(self, name: str) -> str:
        return f"{self.lease.run}/{self.lease.number}/{name}"

    def _do(self, operation: Operation) -> None:
        """`Lost` where it came too late, or where the store does not answer: then whoever has the run next goes on from what
        was put before, this worker too.
        """
        try:
            self.store.place.do(operation)
            holds = carry_out(Leases.holds(self.lease), self.store.place)
        except OSError as error:
            raise Lost(self.id, f"is given back: {explain(error)}") from None
        if not holds:
            raise Lost(self.id)


@dataclass(frozen=True)
class QueuedFolder(Folder):
    """The scratch folder of a run that this process has no lease of: what is written is what is to be trained."""

    store: MirroredStore = field(repr=False, compare=False)

    def write(self, name: str, data: bytes) -> None:
        self.store.place.do(Replace(f"{self.id}/{name}", data))
        super().write(name, data)


class MirroredStore(LeasedStore):
    """`MirroredStore(BucketPlace("s3://bucket/runs"), "s3://bucket/runs")`; `close` removes the scratch folder."""

    def __init__(self, place: Place, address: str) -> None:
        self._scratch = TemporaryDirectory(prefix="lengthlab-", ignore_cleanup_errors=True)
        super().__init__(self._scratch.name)
        self.place, self.address = place, address.rstrip("/")

    def prepare(self) -> None:
        """Nothing has to be made; whoever opened the place has tried it."""

    def waits(self, run: str) -> bool:
        content = self.place.do(Read(f"{run}/{CONTENT}")) if run.isalnum() else None
        if content is not None:
            Folder(self.root / run).write(CONTENT, content)
        return content is not None

    def is_finished(self, run: str) -> bool:
        return RESULT in carry_out(files_of(run, (RESULT,)), self.place)[1]

    def take(self, lease: Lease) -> None:
        super().take(lease)
        files = carry_out(take_over(lease), self.place)
        if not carry_out(Leases.holds(lease), self.place):
            raise Lost(lease.run)
        for name in reversed(files):
            Folder(self.root / lease.run).write(name, files[name])

    def forget(self, run: str) -> None:
        super().forget(run)
        shutil.rmtree(self.root / run, ignore_errors=True)

    def close(self) -> None:
        self._scratch.cleanup()

    def folder(self, run_id: str) -> Folder:
        lease = self.leases.get(run_id)
        path = self.root / run_id
        return MirroredFolder(path, self, lease) if lease else QueuedFolder(path, self)
