"""What was measured of a run so far: sequences of millions of tokens take hours, and a kill should not lose all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from time import monotonic

from lengthlab.errors import LabError
from lengthlab.store import Folder
from lengthlab.store.folder import MEASURED, WEIGHTS
from lengthlab.store.rows import Count

KEEP_SECONDS = 2.0
"""What takes less than this is not worth a file, and is measured again after a kill."""


class Measured:
    """Counts by length, of the weights that lie in the folder. Those of other weights are not taken for theirs."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._weights = sha256((folder.path / WEIGHTS).read_bytes()).hexdigest()
        self.counts: dict[int, list[Count]] = {}
        for count in self._read():
            self.counts.setdefault(count.length, []).append(count)
        self._kept = monotonic()

    def add(self, length: int, counts: Sequence[Count]) -> None:
        """Of one more length; kept, if there is something to lose."""
        self.counts[length] = list(counts)
        if monotonic() - self._kept >= KEEP_SECONDS:
            every = [count.to_json() for known in self.counts.values() for count in known]
            self.folder.write_json(MEASURED, {"run": self.folder.id, "weights": self._weights, "counts": every})
            self._kept = monotonic()

    def _read(self) -> list[Count]:
        """Nothing, where there is nothing that can be relied on: it is only measured again."""
        with suppress(LabError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            kept = self.folder.read_json(MEASURED)
            if kept["weights"] == self._weights:
                return [Count.from_json(count) for count in kept["counts"]]
        return []
