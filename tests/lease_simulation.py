"""Beyond these machines: the code of leases, as it is, in a thousand workers of a simulated store.

`python tests/lease_simulation.py` prints the table of docs/reliability.md. Simulated are the store (its answers come late, one
in a thousand not at all, and then nobody knows whether it did what was asked), the clocks (each wrong by up to an hour, and
faster or slower than the others by up to 4 %), the training (a run takes its time and keeps a checkpoint after 2, 4, 8, … and
then every 60 seconds), and the workers' ends: killed and replaced two minutes later, or suspended for up to ten minutes.

What a worker does between operations follows launch/claims.py.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from time import monotonic
from typing import Any

from lengthlab.launch.claims import IDLE, LOOK_SECONDS, OTHERS
from lengthlab.store.lease import BEATS, FINISHED, SECONDS, Lease, Leases, Owner, names_in
from lengthlab.store.place import Close, Create, Names, Open, Read
from lengthlab.training.recorder import CHECKPOINT_SECONDS, FIRST_CHECKPOINT_SECONDS
from simulated_store import SimulatedStore

PAGE = 1000
"""Names that an object store gives with one answer."""
ANSWER_SECONDS = 5.0
"""After so long, an answer is lost."""
REPLACED_SECONDS = 120.0
"""After a kill, until a new worker is there."""


@dataclass(frozen=True)
class Kind:
    """A kind of store: the median of its latency in seconds, and whether it has folders."""

    name: str
    latency: float
    fenced: bool


FOLDER, OBJECTS = Kind("folder", 0.002, True), Kind("object store", 0.04, False)


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Write:
    """Of a run's own files: how many seconds of it are behind us."""

    lease: Lease
    seconds: float


@dataclass
class Found:
    """What came out. Seconds are simulated."""

    finished: int = 0
    parked: int = 0
    mixed: int = 0
    killed: int = 0
    suspended: int = 0
    taken_over: int = 0
    refused: int = 0
    """Writes of an owner that came too late."""
    seconds: float = 0.0
    worked: float = 0.0
    needed: float = 0.0
    operations: Counter[str] = field(default_factory=Counter)

    @property
    def twice(self) -> float:
        """The share of work that was done more than once."""
        return self.worked / self.needed - 1

    @property
    def a_second(self) -> float:
        return sum(self.operations.values()) / self.seconds


Life = Generator[Any, Any, None]


@dataclass(frozen=True)
class Campaign:
    """So many workers on so many runs."""

    workers: int
    runs: int
    store: Kind
    run_seconds: float = 600.0
    killed_an_hour: float = 0.05
    suspended_an_hour: float = 0.01
    lost: float = 0.001
    seed: int = 0

    def simulate(self) -> Found:
        return _World(self).go()


class _World:
    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self.random = campaign, Random(campaign.seed)
        self.store, self.found = SimulatedStore(campaign.store.fenced), Found()
        self.now, self.order = 0.0, count()
        self.queue: list[tuple[float, int, _Process, Life, Any]] = []
        self.needed = {
            f"{number:020x}": self.random.uniform(0.5, 1.5) * campaign.run_seconds for number in range(campaign.runs)
        }
        for run in self.needed:
            self.store.do(Create(run, b""))
        self.results: set[str] = set()
        self.found.needed = sum(self.needed.values())

    def go(self) -> Found:
        for worker in range(self.campaign.workers):
            self.start(worker, self.random.uniform(0, 60))
        while self.queue and len(self.results) < self.campaign.runs:
            self.now, _, process, life, answer = heappop(self.queue)
            if process.killed:
                continue
            if process.asleep_until > self.now:
                self.later(process.asleep_until - self.now, process, life, answer)
                continue
            self.step(process, life, answer)
        found = self.found
        found.finished, found.mixed, found.seconds = len(self.results), self.store.mixed, self.now
        return found

    def start(self, worker: int, delay: float) -> None:
        """A new process, with an id and a clock of its own."""
        random = Random(self.random.random())
        skew, rate = random.uniform(-3600, 3600), random.uniform(0.98, 1.02)
        owner = Owner(f"host {worker}", worker, id=f"{random.getrandbits(64):016x}")
        process = _Process(self, Leases(owner, lambda: self.now * rate + skew), random)
        for life in (process.work(), process.heart(), self.fate(worker, process)):
            self.later(delay, process, life, None)

    def fate(self, worker: int, process: _Process) -> Life:
        """Killed or suspended, some day."""
        campaign = self.campaign
        an_hour = campaign.killed_an_hour + campaign.suspended_an_hour
        while True:
            yield Sleep(self.random.expovariate(an_hour / 3600))
            if self.random.random() * an_hour < campaign.killed_an_hour:
                self.found.killed += 1
                process.killed = True
                self.found.worked += self.now - process.since if process.since is not None else 0.0
                self.start(worker, REPLACED_SECONDS)
                return
            self.found.suspended += 1
            process.asleep_until = self.now + self.random.uniform(1, 600)

    def step(self, process: _Process, life: Life, answer: Any) -> None:
        """The next operation of a process: done at once, answered later."""
        try:
            asked = life.throw(answer) if isinstance(answer, OSError) else life.send(answer)
        except StopIteration:
            return
        if isinstance(asked, Sleep):
            self.later(asked.seconds, process, life, None)
            return
        latency = self.campaign.store.latency * self.random.lognormvariate(0, 0.7)
        kind = type(asked).__name__
        if isinstance(asked, Open | Close) and not self.store.fenced:
            self.later(0.0, process, life, None)
            return
        pages = 1
        if isinstance(asked, Names) and not self.store.fenced:
            pages = 1 + len(self.store.files[asked.folder]) // PAGE
        self.found.operations[kind] += pages
        chance = self.random.random()
        if chance < self.campaign.lost / 2:
            self.later(ANSWER_SECONDS, process, life, TimeoutError())
            return
        done = self.store.write(asked.lease, asked.seconds) if isinstance(asked, Write) else self.store.do(asked)
        lost = chance < self.campaign.lost
        self.later(ANSWER_SECONDS if lost else pages * latency, process, life, TimeoutError() if lost else done)

    def later(self, seconds: float, process: _Process, life: Life, answer: Any) -> None:
        heappush(self.queue, (self.now + seconds, next(self.order), process, life, answer))


class _Process:
    """A worker: its work and its heart."""

    def __init__(self, world: _World, leases: Leases, random: Random) -> None:
        self.world, self.leases, self.random = world, leases, random
        self.killed, self.asleep_until, self.pause = False, 0.0, LOOK_SECONDS
        self.since: float | None = None
        """When the steps began that are not kept yet."""
        self.over: set[str] = set()
        self.runs: set[str] = set()
        self.kept: set[str] = set()

    def heart(self) -> Life:
        while True:
            try:
                yield from self.leases.beat(self.runs, self.kept)
            except TimeoutError:
                continue
            yield Sleep(SECONDS / BEATS)

    def work(self) -> Life:
        while True:
            try:
                left = yield from self.left()
            except TimeoutError:
                continue
            others = 0
            while left and others < OTHERS:
                run = self.drawn(left)
                try:
                    others += yield from self.attempt(run)
                except TimeoutError:
                    others += 1
            yield Sleep(self.pause)
            self.pause = min(2 * self.pause, SECONDS * IDLE)

    def left(self) -> Generator[Any, Any, list[str]]:
        listed = yield from names_in("")
        over = self.over.union((yield from names_in(FINISHED)))
        return [name for name in listed if name not in over]

    def drawn(self, left: list[str]) -> str:
        """One of them, which is gone from there: all of them drawn are a shuffle, and few are often enough."""
        place = self.random.randrange(len(left))
        left[place], left[-1] = left[-1], left[place]
        return left.pop()

    def attempt(self, run: str) -> Generator[Any, Any, int]:
        """1 if another has it."""
        if (yield Read(f"{run}/result")) is not None:
            self.over.add(run)
            return 0
        past = yield from self.leases.past(run)
        if past.parked or self.leases.me.host in past.hosts:
            self.over.add(run)
            self.world.found.parked += past.parked
            return 0
        free = yield from self.leases.clear(run, past)
        if free is None:
            return 1
        lease = yield from self.leases.claim(run, free)
        if lease is None:
            return 1
        self.pause = LOOK_SECONDS
        self.world.found.taken_over += past.holder is not None
        self.runs.add(run)
        try:
            yield from self.train(lease)
        except TimeoutError:
            yield from self.leases.end(lease, "released")
        self.runs.discard(run)
        self.kept.discard(run)
        return 0

    def train(self, lease: Lease) -> Generator[Any, Any, None]:
        if (yield Read(f"{lease.run}/result")) is not None:
            yield from self.leases.end(lease, "finished")
            return
        found, needed = self.world.found, self.world.needed[lease.run]
        behind, pause = self.world.store.newest(lease.run) or 0.0, FIRST_CHECKPOINT_SECONDS
        while behind < needed:
            piece = min(pause, needed - behind)
            self.since = self.world.now
            yield Sleep(piece)
            self.since = None
            found.worked += piece
            behind, pause = behind + piece, min(CHECKPOINT_SECONDS, 2 * pause)
            if not (yield from self.insist(lease, behind)):
                found.refused += 1
                yield from self.leases.end(lease, "released")
                return
            self.kept.add(lease.run)
        yield from self.conclude(lease)

    def insist(self, lease: Lease, behind: float) -> Generator[Any, Any, bool]:
        """A checkpoint; whether it was ours to write. No answer: again."""
        while True:
            try:
                if not (yield from self.leases.holds(lease)):
                    return False
                return bool((yield Write(lease, behind)))
            except TimeoutError:
                continue

    def conclude(self, lease: Lease) -> Generator[Any, Any, None]:
        while True:
            try:
                yield Create(f"{lease.run}/result", b"")
                break
            except TimeoutError:
                continue
        self.world.results.add(lease.run)
        yield from self.leases.end(lease, "finished")


COLUMNS = ("store", "workers", "runs", "hours", "killed", "suspended", "taken over", "late writes refused")
COLUMNS += ("lost", "mixed", "parked", "done twice", "operations a second")


def main(*cases: str) -> None:
    """The table; a case is `workers:runs`."""
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for kind in (FOLDER, OBJECTS):
        for case in cases or ("10:1000", "30:3000", "100:10000", "300:30000", "1000:100000"):
            workers, runs = map(int, case.split(":"))
            began, found = monotonic(), Campaign(workers, runs, kind).simulate()
            ends = (
                found.killed,
                found.suspended,
                found.taken_over,
                found.refused,
                runs - found.finished,
                found.mixed,
                found.parked,
            )
            cells = (
                kind.name,
                workers,
                runs,
                f"{found.seconds / 3600:.1f}",
                *ends,
                f"{found.twice:.3%}",
                f"{found.a_second:.1f}",
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            print(f"  {monotonic() - began:.0f} s; {dict(found.operations)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
