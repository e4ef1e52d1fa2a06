"""A process that trains runs of a store: `python -m lengthlab.launch.worker STORE DEVICE PRECISION ID...`

What failed goes to standard error, one JSON object a line, and with its stack trace to the run's `failure.json`. The worker
stops politely when its parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lengthlab.errors import LabError, explain
from lengthlab.store import Store
from lengthlab.store.ids import hash_of, same_run

if TYPE_CHECKING:
    from lengthlab.spec.run import Run


def main(store: str, device: str, precision: str, *ids: str) -> int:
    """Train these runs: on a GPU side by side, elsewhere one after the other. One that fails does not take others down."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    failures = Failures()
    try:
        (_together if device.startswith("cuda") else _in_turn)(store, device, precision, ids, failures)
    except KeyboardInterrupt:
        return 130
    return 1 if failures.any else 0


class Failures:
    """Gives the parent the reason of what failed."""

    any = False

    def __call__(self, run_id: str, error: Exception) -> None:
        self.any = True
        print(json.dumps({"run": run_id, "error": explain(error)}), file=sys.stderr, flush=True)


def _in_turn(store: str, device: str, precision: str, ids: Sequence[str], failed: Failures) -> None:
    from lengthlab.training import train

    for run in _runs(store, ids, failed):
        try:
            train(run, store, device, precision or None)
        except Exception as error:
            failed(run.id, error)


def _together(store: str, device: str, precision: str, ids: Sequence[str], failed: Failures) -> None:
    from lengthlab.device import device_named
    from lengthlab.training.engine import Engine
    from lengthlab.training.precision import precision_named

    place = device_named(device)
    exact = precision_named(precision or None, place)
    Engine(Store(store), place, exact, lambda run, error: failed(run.id, error)).train(list(_runs(store, ids, failed)))


def _runs(store: str, ids: Sequence[str], failed: Failures) -> Iterator[Run]:
    """The runs of these ids, whose code may be run: whoever gave the ids has named it."""
    from lengthlab.training.result import read_run

    for run_id in ids:
        folder = Store(store).folder(run_id)
        try:
            yield read_run(folder, trust=True)
        except Exception as error:
            with suppress(LabError):  # a folder that is not this run's is left alone
                if same_run(hash_of(folder.read_json("run.json")), run_id):
                    folder.record_failure(error)
            failed(run_id, error)


def _leave_with_parent() -> None:
    """Standard input is a pipe from the parent: it ends when the parent does, however the parent ended."""
    while os.read(0, 1024):  # not sys.stdin: its lock, held by a thread, would break the interpreter's exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)  # a second SIGINT, after one that the parent passed on, would cut a step short


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
