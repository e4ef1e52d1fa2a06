"""Runs of an object store as folders here: finished ones whole (`lengthlab fetch`), all in outline (`lengthlab status`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from lengthlab.errors import require
from lengthlab.store.bucket import place_to_read
from lengthlab.store.folder import FAILURE, WEIGHTS, Folder, Store
from lengthlab.store.ids import hash_of, same_run
from lengthlab.store.lease import LEASE, WORKERS, heard, names_in
from lengthlab.store.log import FILE as LOG
from lengthlab.store.mirrored import CONTENT, RESULT, files_of
from lengthlab.store.place import Place, Read, carry_out, is_address

THREADS = 16
"""Requests at a time."""
T = TypeVar("T")


@dataclass(frozen=True)
class Fetched:
    """How many runs were fetched, were there before, and are not finished yet."""

    new: int
    there: int
    unfinished: int


def fetch(address: str, folder: str | os.PathLike[str]) -> Fetched:
    """Bring the finished runs of an object store into a folder, for everything that reads folders; those that are there stay as
    they are. Each has its result last, so that the same call goes on after a kill.
    """
    place, store = place_to_read(address), Store(folder)
    store.prepare()
    done = _each(place, lambda run: _fetched(place, store, run))
    require(len(done) > 0, f"no runs at '{address}'")
    return Fetched(done.count("new"), done.count("there"), done.count("unfinished"))


def _fetched(place: Place, store: Store, run: str) -> str:
    folder = store.folder(run)
    if folder.finished:
        return "there"
    _, files = carry_out(files_of(run, (RESULT, WEIGHTS, LOG)), place)
    if RESULT not in files:
        return "unfinished"
    content = place.do(Read(f"{run}/{CONTENT}"))
    require(
        same_run(hash_of(heard(content)), run),
        f"what is to be run {run} in the object store is another: nothing is fetched of it",
    )
    with folder.lock():
        for name, data in {CONTENT: content, **dict(reversed(files.items()))}.items():
            folder.write(name, data)
        folder.forget_checkpoints()
        folder.forget_failure()
    return "new"


@contextmanager
def to_look_at(store: str) -> Iterator[Store]:
    """A store to be read: the folder itself, or for a while what an object store says of its runs and workers."""
    if not is_address(store):
        yield Store(store)
        return
    place = place_to_read(store)
    with TemporaryDirectory(prefix="lengthlab-") as folder:
        _each(place, lambda run: _outlined(place, Path(folder), run))
        for worker in carry_out(names_in(WORKERS), place):
            if worker.isalnum():
                _copy(place, Path(folder), f"{WORKERS}/{worker}")
        yield Store(folder)


def _outlined(place: Place, folder: Path, run: str) -> None:
    """First who has it, then the files, as whoever looks at a folder does."""
    for name in carry_out(names_in(f"{run}/{LEASE}"), place):
        if name.removesuffix(".end").isdigit():
            _copy(place, folder, f"{run}/{LEASE}/{name}")
    for name, data in carry_out(files_of(run, (RESULT, FAILURE, LOG)), place)[1].items():
        Folder(folder / run).write(name, data)
    _copy(place, folder, f"{run}/{CONTENT}")


def _copy(place: Place, folder: Path, name: str) -> None:
    data = place.do(Read(name))
    if data is not None:
        path = folder / name
        Folder(path.parent).write(path.name, data)


def _each(place: Place, act: Callable[[str], T]) -> list[T]:
    """What comes of every run, many at a time: an object store answers slowly."""
    runs = [name for name in carry_out(names_in(""), place) if name.isalnum()]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(act, runs))
