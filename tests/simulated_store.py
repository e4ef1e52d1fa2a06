"""A store that is simulated: it does what the code of leases asks for, in memory, and lets or does not let writes through."""

from __future__ import annotations

from bisect import bisect_left, insort
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
        self.names: defaultdict[str, list[str]] = defaultdict(list)
        """Of the files of each folder, in their order: a hundred thousand are not sorted anew at every look."""
        self.written: defaultdict[str, dict[int, Any]] = defaultdict(dict)
        """By run and number of the lease."""
        self.last_writer: dict[str, int] = {}
        self.mixed = 0
        """How many writes went to the place of those of a newer lease."""

    def do(self, operation: Operation) -> Any:
        match operation:
            case Names(folder):
                return list(self.names[folder])
            case Read(name):
                folder, _, last = name.rpartition("/")
                return self.files[folder].get(last)
            case Create(name, data):
                return self._put(name, data, anew=True)
            case Replace(name, data):
                self._put(name, data)
            case Remove(name):
                self._take_away(name)
            case Open(fence) if self.fenced:
                self._put(fence, b"")
            case Close(fence) if self.fenced:
                self._take_away(fence)
        return None

    def _put(self, name: str, data: bytes, anew: bool = False) -> bool:
        """Whether it was put: with `anew`, only where nothing is."""
        folder, _, last = name.rpartition("/")
        there = last in self.files[folder]
        if anew and there:
            return False
        self.files[folder][last] = data
        if not there:
            insort(self.names[folder], last)
        return True

    def _take_away(self, name: str) -> None:
        folder, _, last = name.rpartition("/")
        if self.files[folder].pop(last, None) is not None:
            names = self.names[folder]
            del names[bisect_left(names, last)]

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
