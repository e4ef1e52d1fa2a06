"""A disk that goes wrong below one folder, in this process: `python -m disk_faults FAULT FOLDER lengthlab WORDS…`.

Faults are put between Python and the system, so that everything above them is what runs elsewhere:

    eio:N        the Nth call that writes, syncs or renames there fails with "Input/output error", and all that follow
    eio-once:N   the Nth alone
    slow         every write there takes 20 ms, and writes no more than 1,000 bytes of what it is given
    halves       a rename is not atomic: the old name is gone for 5 ms before the new one is there
    clock        the clock jumps, by up to a year in either direction, at every look at it
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from math import inf
from typing import Any

YEAR = 366 * 24 * 3600


class Faults:
    """`before` is called ahead of every call that changes something there; `most` bytes are written at a time."""

    def __init__(self, folder: str, before: Callable[[], None], most: int | None = None) -> None:
        self.folder, self.before, self.most = os.path.realpath(folder), before, most

    def concerns(self, path: Any) -> bool:
        return not isinstance(path, int) and os.path.realpath(os.fspath(path)).startswith(self.folder)

    def install(self) -> None:
        plain_open, fsync = io.open, os.fsync
        faults = self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                faults.before()
                return super().write(memoryview(data)[: faults.most])

        def opening(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **more: Any) -> Any:
            if not set(mode) & set("wax+") or not self.concerns(file):
                return plain_open(file, mode, buffering, encoding, *rest, **more)
            buffered = io.BufferedWriter(File(file, mode.replace("b", "").replace("t", "")))
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, *rest, **more)

        def syncing(fd: Any) -> None:
            if os.path.realpath(f"/proc/self/fd/{fd if isinstance(fd, int) else fd.fileno()}").startswith(self.folder):
                self.before()
            fsync(fd)

        builtins.open = io.open = opening  # type: ignore[assignment]
        os.fsync = syncing
        for name in ("replace", "rename", "link"):
            setattr(os, name, self._guarded(getattr(os, name)))

    def _guarded(self, real: Callable[..., None]) -> Callable[..., None]:
        def act(path: Any, to: Any, **more: Any) -> None:
            if self.concerns(to):
                self.before()
            real(path, to, **more)

        return act


def failing(number: int, for_ever: bool) -> Callable[[], None]:
    made = 0

    def before() -> None:
        nonlocal made
        made += 1
        if made == number or (for_ever and made > number):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return before


def rename_in_halves(folder: str) -> None:
    replace, root = os.replace, os.path.realpath(folder)

    def halves(path: Any, to: Any, **more: Any) -> None:
        if os.path.realpath(os.fspath(to)).startswith(root) and os.path.exists(to):
            os.unlink(to)
            time.sleep(0.005)
        replace(path, to, **more)

    os.replace = halves


def let_the_clock_jump() -> None:
    real, chance = time.time, random.Random(0)

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(real(), tz) + timedelta(seconds=chance.uniform(-YEAR, YEAR))

    time.time = lambda: real() + chance.uniform(-YEAR, YEAR)
    sys.modules["datetime"].datetime = Jumping  # type: ignore[attr-defined]


def go_wrong(fault: str, folder: str) -> None:
    """From now on, in this process."""
    kind, _, number = fault.partition(":")
    if kind in ("eio", "eio-once"):
        Faults(folder, failing(int(number), kind == "eio")).install()
    elif kind == "slow":
        Faults(folder, lambda: time.sleep(0.02), most=1000).install()
    elif kind == "halves":
        rename_in_halves(folder)
    elif kind == "clock":
        let_the_clock_jump()
    else:
        raise ValueError(fault)


if __name__ == "__main__":
    go_wrong(*sys.argv[1:3])
    sys.argv[:] = sys.argv[3:]
    from lengthlab.cli import main
    from lengthlab.launch import in_process

    in_process.START_SECONDS = inf
    main()
