"""Claims in an object store (`s3://bucket/folder`, or what else obstore reaches): no rename, no folders, no locks.

A claim is put on the condition that nothing is there, which the store itself decides for one of many alone. There is nothing to
close a fence with, so what is written under a lease has its number in its name (`put`), readers take the highest that is
committed, and the mark of that is put last: an owner that comes back too late writes to names that nobody reads any more.

Needs the extra `objects` (obstore), and a store that knows conditional puts, as S3, R2, GCS, Azure and MinIO do.
"""

from __future__ import annotations

from typing import Any

from lengthlab.errors import LabError
from lengthlab.store.lease import Lease
from lengthlab.store.place import Create, Names, Operation, Read, Replace, Steps


class BucketPlace:
    """`BucketPlace("s3://bucket/runs", endpoint="http://localhost:9000")`; further words go to obstore as they are."""

    def __init__(self, url: str, **config: Any) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise LabError("an object store needs obstore: pip install 'lengthlab[objects]'") from None
        self._obstore, self._store = obstore, from_url(url, **config)

    def do(self, operation: Operation) -> Any:
        """As asked; where the network fails, TimeoutError: nobody knows whether it was done."""
        try:
            return self._do(operation)
        except FileNotFoundError:
            return None
        except self._obstore.exceptions.BaseError as error:
            raise TimeoutError(str(error)) from error

    def _do(self, operation: Operation) -> Any:
        match operation:
            case Names(folder):
                found = self._obstore.list_with_delimiter(self._store, f"{folder}/" if folder else None)
                paths = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
                return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)
            case Read(name):
                return bytes(self._obstore.get(self._store, name).bytes())
            case Create(name, data):
                try:
                    self._obstore.put(self._store, name, data, mode="create")
                except self._obstore.exceptions.AlreadyExistsError:
                    return False
                return True
            case Replace(name, data):
                self._obstore.put(self._store, name, data)
        return None


def put(lease: Lease, name: str, data: bytes) -> Steps[None]:
    """Write a file of a run under a lease, whole or not at all: first what is in it, then the mark that it is there."""
    yield Replace(f"{lease.run}/{name}/{lease.number:08}", data)
    yield Replace(f"{lease.run}/{name}.committed/{lease.number:08}", b"")


def get(run: str, name: str) -> Steps[bytes | None]:
    """What the newest owner wrote that came so far; None if nobody did."""
    committed: list[str] = yield Names(f"{run}/{name}.committed")
    if not committed:
        return None
    data: bytes | None = yield Read(f"{run}/{name}/{max(committed)}")
    return data
