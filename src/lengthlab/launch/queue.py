"""Runs put into a store for workers to find (claims.py): their folders say what is to be trained; nothing is trained yet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from time import monotonic

from lengthlab.device import AUTO, device_named
from lengthlab.errors import cut, require
from lengthlab.spec.run import Run
from lengthlab.spec.source import refuse_while_loading
from lengthlab.store.bucket import leased_store
from lengthlab.store.fenced import LeasedStore
from lengthlab.store.lease import FINISHED, HOST, Leases, Owner
from lengthlab.store.place import Remove, carry_out
from lengthlab.training.examination import examine
from lengthlab.training.result import claim


def queue(runs: Sequence[Run], store: str | os.PathLike[str] = "runs", device: str = AUTO) -> list[str]:
    """The ids of those that are not finished; one that failed before, even one that is parked, will be tried again.

    >>> import lengthlab as ll, tempfile
    >>> task, model = ll.tasks.ModuloRecall(modulus=2, keys=8), ll.models.lstm(width=8)
    >>> run = ll.Run(task, model, ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queue([run], folder) == [run.id]
    True
    """
    refuse_while_loading("queue")
    listed = isinstance(runs, Sequence) and all(isinstance(run, Run) for run in runs)
    require(listed, f"what is queued is a list of runs, each as ll.Run makes it, not {cut(repr(runs))}")
    with closing(leased_store(store)) as place:
        examine(runs, place.root, str(device_named(device)), say=None)
        place.prepare()
        return [run.id for run in {run.id: run for run in runs}.values() if _put(run, place)]


def _put(run: Run, store: LeasedStore) -> bool:
    """Whether there is something to do."""
    folder, leases = store.folder(run.id), Leases(Owner(HOST), monotonic)
    name = folder.path.name
    store.waits(name)
    claim(folder, run)
    if store.is_finished(name):
        return False
    store.place.do(Remove(f"{FINISHED}/{name}"))  # of a folder that was there before
    carry_out(leases.ask_again(name), store.place)
    return True
