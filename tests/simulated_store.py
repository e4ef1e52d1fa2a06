"""A store that is simulated: it does what the code of leases asks for, in memory, and lets or does not let writes through."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from lengthlab.store.lease import Lease
from lengthlab.store.place import Close, Create, Names, Open, Operation, Read, Remove, Replace


class SimulatedStore:
    """`fenced`: a folder, whose fences hold. Otherwise an object store, which has none: there what is written has the number of
    its lease in its name, and readers take the highest.
    """

    def __init__(self, fenced: bool = True) -> None:
        self.fenced = fenced
        self.files: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        self.written: defaultdict[str, dict[int, Any]] = defaultdict(dict)
        """By run and number of the lease."""
        self.last_writer: dict[str, int] = {}
        self.mixed = 0
        """How many writes went to the place of those of a newer lease."""

    def do(self, operation: Operation) -> Any:
        match operation:
            case Names(folder):
                return sorted(self.files[folder])
            case Read(name):
                folder, _, last = name.rpartition("/")
                return self.files[folder].get(last)
            case Create(name, data):
                folder, _, last = name.rpartition("/")
                return self.files[folder].setdefault(last, data) is data
            case Replace(name, data):
                folder, _, last = name.rpartition("/")
                self.files[folder][last] = data
            case Remove(name):
                folder, _, last = name.rpartition("/")
                self.files[folder].pop(last, None)
            case Open(fence) if self.fenced:
                folder, _, last = fence.rpartition("/")
                self.files[folder][last] = b""
            case Close(fence) if self.fenced:
                folder, _, last = fence.rpartition("/")
                self.files[folder].pop(last, None)
        return None

    def write(self, lease: Lease, data: Any) -> bool:
        """Of a run's own files, under a lease; whether it got through."""
        folder, _, last = lease.fence.rpartition("/")
        if self.fenced and last not in self.files[folder]:
            return False
        if self.fenced:
            self.mixed += self.last_writer.get(lease.run, 0) > lease.number
            self.last_writer[lease.run] = lease.number
        self.written[lease.run][lease.number] = data
        return True

    def newest(self, run: str) -> Any:
        """What a reader finds; None if nothing was written."""
        written = self.written.get(run)
        if not written:
            return None
        return written[self.last_writer[run] if self.fenced else max(written)]
