"""An object store (`s3://bucket/folder`, or what else obstore reaches) as a place for claims: no rename, no folders, no locks.

A claim is put on the condition that nothing is there, which the store itself decides for one of many alone. What is kept of
runs there is in mirrored.py.

Needs the extra `objects` (obstore), and a store that knows conditional puts, as S3, R2, GCS, Azure and MinIO do. Where it is
and with which keys obstore finds in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

from lengthlab.errors import LabError, cut, require
from lengthlab.store.fenced import LeasedStore
from lengthlab.store.lease import names_in
from lengthlab.store.mirrored import MirroredStore
from lengthlab.store.place import Create, Names, Operation, Read, Remove, Replace, Steps, carry_out, is_address

QUICK = {"max_retries": 2}
"""For the first word: an address that is wrong shall be known at once."""
PATIENT = {"max_retries": 100, "retry_timeout": timedelta(seconds=20)}
"""After that: so long a store that does not answer is asked again."""


class BucketPlace:
    """`BucketPlace("s3://bucket/runs", endpoint="http://localhost:9000")`; further words go to obstore as they are."""

    def __init__(self, url: str, **config: Any) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise LabError("an object store needs obstore: pip install 'lengthlab[objects]'") from None
        self._obstore = obstore
        try:
            self._store = from_url(url, **config)
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise LabError(f"'{url}' cannot be used: {_reason(error)}; an address is like s3://bucket/runs") from None

    def do(self, operation: Operation) -> Any:
        """As asked; where the network fails, TimeoutError: nobody knows whether it was done."""
        try:
            return self._do(operation)
        except (self._obstore.exceptions.BaseError, FileNotFoundError) as error:  # the latter: of a put, there is no bucket
            raise TimeoutError(_reason(error)) from error

    def _do(self, operation: Operation) -> Any:
        match operation:
            case Names(folder):
                found = self._obstore.list_with_delimiter(self._store, f"{folder}/" if folder else None)
                paths = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
                return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)
            case Read(name):
                with suppress(FileNotFoundError):
                    return bytes(self._obstore.get(self._store, name).bytes())
            case Create(name, data):
                try:
                    self._obstore.put(self._store, name, data, mode="create")
                except self._obstore.exceptions.AlreadyExistsError:
                    return False
                return True
            case Replace(name, data):
                self._obstore.put(self._store, name, data)
            case Remove(name):
                with suppress(FileNotFoundError):
                    self._obstore.delete(self._store, name)
        return None


def leased_store(store: str | os.PathLike[str]) -> LeasedStore:
    """The folder, or the object store, that workers find their runs in; refused if it cannot be written to."""
    return MirroredStore(place_at(str(store), _claims()), str(store)) if is_address(store) else LeasedStore(store)


def place_to_read(address: str) -> BucketPlace:
    """An object store that is only looked at."""
    require(is_address(address), f"'{address}' is no address of an object store, like s3://bucket/runs")
    return place_at(address, names_in(""))


def place_at(address: str, first: Steps[object]) -> BucketPlace:
    """An object store in which these first steps went well; what is wrong with it in one line, if they did not."""
    try:
        carry_out(first, BucketPlace(address, retry_config=QUICK))
    except OSError as error:
        raise LabError(f"'{address}' cannot be used: {error}") from None
    return BucketPlace(address, retry_config=PATIENT)


def _claims() -> Steps[None]:
    """Refuse a store in which two could have one claim."""
    name = f".probe/{uuid4().hex}"
    created = [(yield Create(name, b"first")), (yield Create(name, b"second"))]
    yield Remove(name)
    require(
        created == [True, False],
        "this object store has no conditional puts (If-None-Match: *), without which there are no claims",
    )


def _reason(error: Exception) -> str:
    """What is wrong in one line: obstore's texts are pages.

    >>> _reason(ValueError("GET http://here - 404: <Error><Message>The specified bucket does not exist</Message></Error>"))
    'The specified bucket does not exist'
    """
    text = str(error).partition("\n\nDebug source")[0]
    if "/latest/api/token" in text:  # where a machine of AWS would be told its keys
        return "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    said = re.search("<Message>(.*?)</Message>", text)
    return cut(said[1] if said else text, 300)
