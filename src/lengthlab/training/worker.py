"""A process that trains runs of a store: `python -m lengthlab.training.worker STORE DEVICE PRECISION ID...`

What failed goes to standard error, one JSON object a line. The worker stops politely when its parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence

from lengthlab.errors import explain
from lengthlab.store import Store


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
    """Tells the parent what failed."""

    any = False

    def __call__(self, run_id: str, reason: str) -> None:
        self.any = True
        print(json.dumps({"run": run_id, "error": reason}), file=sys.stderr, flush=True)


def _in_turn(store: str, device: str, precision: str, ids: Sequence[str], failed: Failures) -> None:
    from lengthlab.training.reference import train
    from lengthlab.training.result import read_run

    for run_id in ids:
        try:
            train(read_run(Store(store).folder(run_id)), store, device, precision or None)
        except Exception as error:
            failed(run_id, explain(error))


def _together(store: str, device: str, precision: str, ids: Sequence[str], failed: Failures) -> None:
    from lengthlab.compute import device_named
    from lengthlab.training.engine import Engine
    from lengthlab.training.precision import precision_named
    from lengthlab.training.result import read_run

    runs = []
    for run_id in ids:
        try:
            runs.append(read_run(Store(store).folder(run_id)))
        except Exception as error:
            failed(run_id, explain(error))
    place = device_named(device)
    Engine(Store(store), place, precision_named(precision or None, place), failed).train(runs)


def _leave_with_parent() -> None:
    """Standard input is a pipe from the parent: it ends when the parent does, however the parent ended."""
    while os.read(0, 1024):  # not sys.stdin: its lock, held by a thread, would break the interpreter's exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)  # a second SIGINT, after one that the parent passed on, would cut a step short


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
