"""Who has what: the workers of a store with their runs, and the runs that failed, with their reasons. Read alone; no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from lengthlab.store.folder import Store
from lengthlab.store.lease import HOST, WORKERS, Failure, Leases, Owner, heard
from lengthlab.store.place import FolderPlace, Names, Read, Steps, carry_out
from lengthlab.store.status import Status
from lengthlab.store.watch import Watch


@dataclass(frozen=True)
class Holder:
    """A worker, as it last said; `heard` is when that was, by its own clock."""

    id: str
    host: str
    process: int
    device: str
    heard: str
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Holders:
    """Where every run is, which worker has it, and why a run failed, host by host."""

    statuses: tuple[Status, ...]
    workers: tuple[Holder, ...]
    failures: Mapping[str, tuple[Failure, ...]]
    parked: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many runs are finished, parked, and so on."""
        return dict(Counter("parked" if each.run in self.parked else each.state for each in self.statuses))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        failures = {run: [asdict(each) for each in found] for run, found in self.failures.items()}
        return {
            "runs": [status.to_json() for status in self.statuses],
            "workers": [asdict(worker) for worker in self.workers],
            "failures": failures,
            "parked": list(self.parked),
        }


def holders_of(store: Store) -> Holders:
    """What the folders of a store say now."""
    place, looking = FolderPlace(store.root), Leases(Owner(HOST), monotonic)
    statuses = Watch(store).look().statuses
    unfinished = [status.run for status in statuses if status.state != "finished"]
    pasts = {run: carry_out(looking.past(run), place) for run in unfinished}
    owners = {run: str(past.holder.get("owner")) for run, past in pasts.items() if past.holder is not None}
    return Holders(
        statuses=statuses,
        workers=tuple(carry_out(_workers(owners), place)),
        failures={run: past.failures for run, past in pasts.items() if past.failures},
        parked=tuple(run for run, past in pasts.items() if past.parked),
    )


def _workers(owners: Mapping[str, str]) -> Steps[Sequence[Holder]]:
    """Those that have runs, or beat; a run belongs to who claimed it, whatever a worker says of itself."""
    found = []
    for name in (yield Names(WORKERS)):
        if name.isalnum():
            said = heard((yield Read(f"{WORKERS}/{name}")))
            runs = tuple(run for run, owner in owners.items() if owner == name)
            words = {key: str(said.get(key, "?")) for key in ("host", "device", "at")}
            process = said.get("process")
            number = process if isinstance(process, int) else 0
            found.append(Holder(name, words["host"], number, words["device"], words["at"], runs))
    return found
