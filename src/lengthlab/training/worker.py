"""A process that trains runs of a store: `python -m lengthlab.training.worker STORE DEVICE ID...`

What failed goes to standard error, one JSON object a line. The worker stops politely when its parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from lengthlab.errors import explain
from lengthlab.store import Store


def main(store: str, device: str, *ids: str) -> int:
    """Train these runs one after the other; one that fails does not take the others down."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    from lengthlab.training.reference import train
    from lengthlab.training.result import read_run

    failed = False
    for run_id in ids:
        try:
            train(read_run(Store(store).folder(run_id)), store, device)
        except KeyboardInterrupt:
            return 130
        except Exception as error:
            failed = True
            print(json.dumps({"run": run_id, "error": explain(error)}), file=sys.stderr, flush=True)
    return 1 if failed else 0


def _leave_with_parent() -> None:
    """Standard input is a pipe from the parent: it ends when the parent does, however the parent ended."""
    while os.read(0, 1024):  # not sys.stdin: its lock, held by a thread, would break the interpreter's exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)  # a second SIGINT, after one that the parent passed on, would cut a step short


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
