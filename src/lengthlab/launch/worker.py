"""A process that trains runs of a store: `python -m lengthlab.launch.worker STORE DEVICE PRECISION`.

It reads standard input: a line of ids is a pack of runs to train, an empty line says that there will be no more, and the end
of the file that the parent is gone, whereupon the worker stops politely. It writes one JSON object a line to standard error:
what failed, what the user is to know, and that a pack is done. A stack trace goes to the run's `traceback.txt`.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from lengthlab.errors import require
from lengthlab.store import Folder, Store
from lengthlab.store.ids import hash_of

if TYPE_CHECKING:
    from lengthlab.spec.run import Run


def main(store: str, device: str, precision: str) -> int:
    """Train packs: on a GPU side by side, elsewhere one run after the other. One that fails does not take others down."""
    packs: SimpleQueue[list[str]] = SimpleQueue()
    threading.Thread(target=_listen, args=(packs,), daemon=True).start()
    failures = Failures(Store(store))
    logging.getLogger("lengthlab").addHandler(Warnings(logging.WARNING))
    try:
        while ids := packs.get():
            _train(store, device, precision, ids, failures)
            say({"done": ids})
    except KeyboardInterrupt:
        return 130
    return 1 if failures.any else 0


def say(said: dict[str, Any]) -> None:
    """To the parent, on a line of its own: a progress bar of the user's may have left one unfinished."""
    print(f"\n{json.dumps(said)}", file=sys.stderr, flush=True)


class Warnings(logging.Handler):
    """Gives the parent what would be said on a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        say({"warning": record.getMessage()})


class Failures:
    """Gives the parent the reason of what failed."""

    def __init__(self, store: Store) -> None:
        self.store, self.any = store, False

    def __call__(self, run_id: str, error: Exception) -> None:
        self.any = True
        say({"run": run_id, "error": self.store.folder(run_id).explain_failure(error)})


def _train(store: str, device: str, precision: str, ids: Sequence[str], failed: Failures) -> None:
    """Without a look at them beforehand: whoever gave the ids has examined their runs."""
    from lengthlab.device import device_named
    from lengthlab.training.engine import Engine
    from lengthlab.training.precision import precision_named

    place = device_named(device)
    engine = Engine(Store(store), place, precision_named(precision or None, place), lambda run, error: failed(run.id, error))
    runs = _runs(store, ids, failed)
    for pack in [list(runs)] if place.type == "cuda" else ([run] for run in runs):
        engine.train(pack)


def _runs(store: str, ids: Sequence[str], failed: Failures) -> Iterator[Run]:
    """The runs of these ids, whose code may be run: whoever gave the ids has named it."""
    from lengthlab.training.result import read_run

    for run_id in ids:
        folder = Store(store).folder(run_id)
        try:
            require_content(folder, run_id)
        except Exception as error:  # a folder that is not this run's is left alone
            failed(run_id, error)
            continue
        try:
            run = read_run(folder, trust=True)
        except Exception as error:
            folder.record_failure(error)
            failed(run_id, error)
            continue
        yield run


def require_content(folder: Folder, run_id: str) -> None:
    """Refuse a folder that holds another run: by all 20 digits, because an old folder is named by 12 of them."""
    there = hash_of(folder.read_json("run.json"))
    require(there == run_id, f"{folder.path / 'run.json'} is the content of run {there}, not of {run_id}: move it away")


def _listen(packs: SimpleQueue[list[str]]) -> None:
    """Standard input is a pipe from the parent: it ends when the parent does, however the parent ended."""
    waiting = b""
    while got := os.read(0, 1 << 16):  # not sys.stdin: its lock, held by a thread, would break the interpreter's exit
        *lines, waiting = (waiting + got).split(b"\n")
        for line in lines:
            packs.put(line.decode().split())
    os.kill(os.getpid(), signal.SIGTERM)  # a second SIGINT, after one that the parent passed on, would cut a step short


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
