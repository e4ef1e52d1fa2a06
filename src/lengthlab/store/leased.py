"""Whether a worker has a run, for whoever on this machine has no lease but a lock: to look, and to wait (lease.py)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from lengthlab.store.lease import HOST, LEASE, Leases, Owner
from lengthlab.store.place import FolderPlace, carry_out

log = logging.getLogger("lengthlab")


@cache
def _leases_in(root: str) -> Leases:
    """What this process knows of those who have a lease in this store."""
    return Leases(Owner(HOST), monotonic)


def is_leased(run: Path) -> bool:
    """Whether a worker has the run of this folder, or had it when it was last heard of."""
    if not os.path.exists(os.path.join(run, LEASE)):
        return False
    leases = _leases_in(os.path.realpath(run.parent))
    return carry_out(leases.past(run.name), FolderPlace(run.parent)).holder is not None


def looks_until_free(run: Path) -> Iterator[None]:
    """Ends when no worker has the run, or when one that has it has been silent for so long that its lease is over: then nothing
    of it can be written any more. Until then, one look a step.
    """
    if not os.path.exists(os.path.join(run, LEASE)):
        return
    place, leases = FolderPlace(run.parent), _leases_in(os.path.realpath(run.parent))
    while (past := carry_out(leases.clear(run.name), place)) is None:
        yield
    if past.number:
        carry_out(leases.close_fences(run.name, past.number), place)


def wait_for_worker(run: Path) -> None:
    """Until no worker has the run."""
    for number, _ in enumerate(looks_until_free(run)):
        if not number:
            log.warning("run %s is in the hands of a worker; waiting for it", run.name)
        sleep(1.0)
