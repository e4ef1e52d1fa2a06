"""A pack of runs, trained on whatever machine its process was started: under leases (claims.py), in a store that it shares with
whoever asked for it. Ids and words are all that travels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from uuid import uuid4

from lengthlab import __version__
from lengthlab.errors import LabError, explain, require
from lengthlab.store import Store
from lengthlab.store.lease import HOST, SECONDS, Owner

SEEN_SECONDS = 60.0
"""So long a machine may still show what was in a folder before another one wrote to it, as NFS does."""
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Pack:
    """What a process is to train: these runs of a store, all of them side by side on a GPU, or one after the other."""

    store: str
    runs: tuple[str, ...]
    device: str = "cpu"
    precision: str | None = None
    lease: float = SECONDS
    version: str = __version__
    id: str = field(default_factory=lambda: uuid4().hex[:16])


def packed(
    runs: Sequence[str],
    store: str,
    device: str = "cpu",
    precision: str | None = None,
    lease: float = SECONDS,
    number: int | None = None,
) -> list[Pack]:
    """So many packs, none of them empty, of about as many runs each; one for each run if no number is given.

    >>> [pack.runs for pack in packed(["a", "b", "c", "d", "e"], "/shared/runs", number=2)]
    [('a', 'c', 'e'), ('b', 'd')]
    """
    number = min(number or len(runs), len(runs))
    return [Pack(store, tuple(runs[first::number]), device, precision, lease) for first in range(number)]


def train_pack(pack: Pack, host: str = HOST) -> dict[str, str]:
    """Why runs came to nothing here, by id. One that is neither finished nor named is left: this process was asked to stop, and
    gave it back. A machine that is not fit for the pack, whatever is in it, is a LabError.

    Whoever starts a pack again says thereby that the process it had before is gone: its runs are taken over at once.
    """
    from lengthlab.device import device_named
    from lengthlab.launch.claims import ClaimingWorker
    from lengthlab.launch.worker import require_content
    from lengthlab.training.precision import precision_named

    same = pack.version == __version__
    require(same, f"{host} has lengthlab {__version__}, not {pack.version} as whoever launched: install the same everywhere")
    _wait_until_seen(pack, host)
    store, errors = Store(pack.store), dict[str, str]()
    for run in pack.runs:
        try:
            require_content(store.folder(run), run)
        except Exception as error:
            errors[run] = explain(error)
    names = {store.folder(run).id: run for run in pack.runs if run not in errors}
    device, me = device_named(pack.device), Owner(host, seconds=pack.lease, family=pack.id)
    # Trusted: whoever named the ids has loaded the code of their runs, and what is here has just been found to be the same.
    worker = ClaimingWorker(pack.store, device, precision_named(pack.precision, device), me, trust=True, only=set(names))
    with suppress(KeyboardInterrupt):  # politely: what was learned is kept
        worker.work()
    return errors | {names[name]: why for name, why in worker.troubles.items() if not store.folder(name).finished}


def _wait_until_seen(pack: Pack, host: str) -> None:
    """Refuse to go on where the store is not what it is for others."""
    end = monotonic() + SEEN_SECONDS
    folders = [os.path.join(Store(pack.store).folder(run).path, "run.json") for run in pack.runs]
    while not all(map(os.path.exists, folders)):
        if not os.path.isdir(pack.store) or monotonic() > end:
            told = f"{host} does not see the runs in '{pack.store}'"
            raise LabError(f"{told}: --store has to be a folder that every machine sees by this name")
        sleep(LOOK_SECONDS)
        os.listdir(pack.store)
