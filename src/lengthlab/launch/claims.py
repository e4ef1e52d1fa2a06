"""A worker that finds its runs in a store: it claims unfinished ones by leases (store/lease.py), trains as many side by side as
its device has room for, and goes on until nothing is left that it could do.

Any number of workers, on any host that sees the folder, or reaches the object store; the store is all they share. A run that
fails is tried again on other hosts, and parked when it has failed on three.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from threading import Event, Thread
from time import monotonic, sleep

import torch

from lengthlab.device import in_words
from lengthlab.errors import LabError, explain
from lengthlab.spec.run import Run
from lengthlab.store.bucket import leased_store
from lengthlab.store.fenced import LeasedStore, Lost
from lengthlab.store.lease import BEATS, FINISHED, WORKERS, Lease, Leases, Owner, Past, names_in
from lengthlab.store.place import Remove, carry_out
from lengthlab.training.engine import Engine
from lengthlab.training.footprint import require_room
from lengthlab.training.precision import Precision
from lengthlab.training.result import read_run

LOOK_SECONDS = 5.0
"""Between two looks for runs, while there are none to claim; twice as long after each, …"""
IDLE = 1 / 3
"""… up to this share of the time that a lease lasts: idle workers shall not be what keeps a store busy."""
OTHERS = 16
"""So many runs in the hands of others are tried at a look, whether their owners are silent: of a thousand, some."""


@dataclass
class Tally:
    """What a worker has done."""

    trained: int = 0
    failed: int = 0
    taken_over: int = 0


class ClaimingWorker:
    """`ClaimingWorker(store, device, precision, Owner("host")).work()`"""

    def __init__(
        self,
        store: str | os.PathLike[str] | LeasedStore,
        device: torch.device,
        precision: Precision,
        me: Owner,
        trust: bool = False,
        say: Callable[[str], None] = lambda line: None,
        only: Collection[str] | None = None,
        most: int | None = None,
    ) -> None:
        """`only`: the folders of the store that it works on; all of them if it is not told. `most`: so many runs side by side,
        however much room a GPU has.
        """
        self.store = store if isinstance(store, LeasedStore) else leased_store(store)
        self.device, self.precision, self.me = device, precision, me
        self.trust, self.say, self.only, self.tally = trust, say, only, Tally()
        self.most = most or inf
        self._leases, self._place = Leases(me, monotonic), self.store.place
        self._random = random.Random(me.id)
        self._over: set[str] = set()
        """Runs that this worker can do nothing for: finished, parked, failed on this host, too large for the device."""
        self._others = 0
        """How many runs were found in the hands of others since the last look at the whole store."""
        self.troubles: dict[str, str] = {}
        """Why runs came to nothing here, by folder."""
        self._waiting: list[str] = []
        self._errors: dict[str, str] = {}
        self._next_look, self._pause = 0.0, self._first_pause
        self._engine = Engine(self.store, device, precision, self._failed)

    def work(self, watch: bool = False) -> Tally:
        """Until nothing is left, or for ever. On Ctrl-C what was learned is kept, the leases are given back, and
        KeyboardInterrupt goes up.
        """
        with closing(self.store), self._beating():
            try:
                while True:
                    self._engine.train([], more=self._more)
                    self._give_back()
                    if not (watch or self._others or self._left() or self._others):
                        return self.tally
                    if watch and not self._others:
                        self._over.clear()  # somebody may have asked for them again
                    sleep(self._pause)
                    self._pause = min(2 * self._pause, self.me.seconds * IDLE)
            finally:
                self._give_back(all_of_them=True)

    @property
    def _first_pause(self) -> float:
        return min(LOOK_SECONDS, self.me.seconds / BEATS)

    # Runs to do

    def _left(self) -> list[str]:
        """Folders of the store that may hold a run to do, in an order of its own, so that two workers seldom want the same."""
        try:
            listed = {name for name in carry_out(names_in(""), self._place) if not name.startswith(".")}
            listed &= listed if self.only is None else set(self.only)
            self._over |= set(carry_out(names_in(FINISHED), self._place)) if listed else set()
        except TimeoutError as error:
            self._no_answer(error)
            return []
        return self._random.sample(left := sorted(listed - self._over - self.store.leases.keys()), len(left))

    def _more(self, inside: int) -> Sequence[Run]:
        """A run of which this worker has the lease now, for the engine, which has room for one; none if there is none."""
        self._give_back()
        full = inside >= (self.most if self.device.type == "cuda" else 1)
        if full or (inside and monotonic() < self._next_look):
            return []
        if not self._waiting:
            self._others = 0
            self._waiting = self._left()
        while self._waiting and self._others < OTHERS:
            run = self._claimed(self._waiting.pop())
            if run:
                return [run]
        self._waiting.clear()
        self._next_look = monotonic() + self._pause
        return []

    def _claimed(self, name: str) -> Run | None:
        """The run in this folder, if it is one to do, and ours now."""
        try:
            if not self.store.waits(name):
                self._over.add(name)
                return None
            past = carry_out(self._leases.past(name), self._place)
            if past.parked or self.me.host in past.hosts:
                self._leave_alone(name, _story(past))
                return None
            free = carry_out(self._leases.clear(name, past), self._place)
            if free is None:
                self._others += 1
                return None
            if free.parked:  # by the end of whoever had it
                self._leave_alone(name, _story(free))
                return None
            run = read_run(self.store.folder(name), self.trust)
            require_room(run, str(self.device))
            lease = carry_out(self._leases.claim(name, free), self._place)
        except LabError as error:
            self._leave_alone(name, explain(error))
            return None
        except TimeoutError as error:
            self._no_answer(error)
            return None
        except OSError:  # of a disk that does not answer: another time
            self._others += 1
            return None
        self._others += lease is None  # somebody was quicker
        return self._taken(run, lease, past) if lease else None

    def _taken(self, run: Run, lease: Lease, past: Past) -> Run | None:
        try:
            self.store.take(lease)
        except (Lost, OSError):
            with suppress(OSError):
                self._end(lease.run)
            return None
        if self.store.folder(lease.run).finished:  # while we looked
            self._end(lease.run)
            return None
        self._pause = self._first_pause
        self.tally.taken_over += past.holder is not None
        self.say(f"{run.title} (run {run.id}): {'taken over from ' + str(past.holder.get('host')) if past.holder else 'begun'}")
        return run

    def _no_answer(self, error: TimeoutError) -> None:
        """Of the whole store: somebody may have what we cannot see, so we look again later, and at nothing else now."""
        self._others += 1
        self._waiting.clear()
        self.say(f"the store does not answer: {error}")

    def _leave_alone(self, name: str, why: str) -> None:
        self._over.add(name)
        if name not in self.troubles and not self.store.folder(name).finished:
            self.troubles[name] = why
            self.say(f"run {name} is left alone: {why}")

    # Runs done

    def _failed(self, run: Run, error: Exception) -> None:
        name = self.store.folder(run.id).id
        if isinstance(error, Lost):
            with suppress(OSError):
                self._end(name)
            self.say(f"{run.title}: {error}")
            return
        self.troubles[name] = self._errors[name] = self.store.folder(run.id).explain_failure(error)
        self.tally.failed += 1
        self.say(f"{run.title} (run {run.id}) failed: {self._errors[name]}")

    def _give_back(self, all_of_them: bool = False) -> None:
        """The leases of runs that are not in training any more."""
        busy = {self.store.folder(each).id for each in self._in_training()} if not all_of_them else set()
        for name in [name for name in self.store.leases if name not in busy]:
            with suppress(OSError):  # of a disk that does not answer: our silence will say it
                self.tally.trained += self._end(name)

    def _in_training(self) -> Iterator[str]:
        yield from (slot.run.id for slot in self._engine.inside)
        yield from (run.id for run in self._engine.waiting)

    def _end(self, name: str) -> bool:
        """Whether it was ours to the end, which is that of the run."""
        lease, why = self.store.leases.pop(name), self._errors.pop(name, "")
        finished = self.store.folder(name).finished
        self.store.forget(name)
        ours = carry_out(self._leases.end(lease, "finished" if finished else "failed" if why else "released", why), self._place)
        return finished and ours

    # A heart

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """While inside, the heart of this worker beats, in a thread of its own: a step may take long. It beats out of turn when
        the first checkpoint of a run is kept: who dies before that is known is taken for one whom the run has killed.
        """
        over, wake = Event(), Event()
        self.store.on_kept = wake.set

        def beat() -> None:
            while True:
                wake.clear()
                if over.is_set():
                    return
                with suppress(OSError):
                    words = {"device": in_words(self.device, 1), "at": datetime.now(UTC).isoformat(timespec="seconds")}
                    carry_out(self._leases.beat(list(self.store.leases), list(self.store.kept), **words), self._place)
                wake.wait(self.me.seconds / BEATS)

        heart = Thread(target=beat, daemon=True)
        heart.start()
        try:
            yield
        finally:
            over.set()
            wake.set()
            heart.join()
            with suppress(OSError):
                self._place.do(Remove(f"{WORKERS}/{self.me.id}"))


def _story(past: Past) -> str:
    """
    >>> from lengthlab.store.lease import Failure
    >>> _story(Past(1, None, (Failure("one", "loss is nan"),)))
    'it failed on one: loss is nan'
    """
    reasons = [f"it failed on {failure.host}: {failure.message}" for failure in past.failures]
    return "; ".join([*(["it is parked"] if past.parked else []), *reasons])
