"""Who works on a run: a claim is a lease, which is lost when its owner has not been heard of for long.

    STORE/.workers/<worker>          the heartbeat of a process: written again and again, by it alone
    STORE/.finished/<run>            that there is nothing to do, for who looks for work; a run without it may be finished, too
    STORE/<run>/.lease/<n>           claim n, created once for all by the one process that gets it
    STORE/<run>/.lease/<n>.end       how it ended, created once for all: by its owner, or by who takes over
    STORE/<run>/.lease/<n>.<worker>.writes/   what the owner's writes pass through (fenced.py); closed by who takes over

The highest n is the claim that counts, and n is its fencing token. A claim that has no end belongs to its owner as long as the
heart of that beats: a worker that sees the same beat for longer than the owner promised, by its own clock, ends the claim and
competes for n + 1. Clocks of two hosts are never compared, so they may differ by any amount, but one must not go faster than
another by more than DRIFT; numbers of processes are for people to read.

An owner that was suspended, or cut off, finds the end of its claim before it writes; and where that came about between its look
and its write, the closed fence lets nothing through.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from lengthlab.store.place import Close, Create, Names, Open, Read, Replace, Steps

SECONDS = 180.0
"""After so long without a beat a claim is lost: well above the minute for which NFS may show what was there before."""
BEATS = 6
"""In that time."""
DRIFT = 1.1
"""By this factor, at most, may one host's clock go faster than another's."""
HOST = platform.node().replace(".", "-") or "host"
"""What this machine is called."""
HOSTS = 3
"""A run that failed on so many hosts is parked."""
WORKERS, LEASE, FINISHED = ".workers", ".lease", ".finished"

How = Literal["finished", "released", "failed", "lost", "again"]
"""How a claim ended. `lost`: by who took over. `again`: nobody had it; what failed before is forgiven, as the user asked."""


@dataclass(frozen=True)
class Owner:
    """A process that works on runs. Its `id` is its own for all time, whatever its host is called.

    A `family` is processes of which there is one at a time, because something (Ray, Slurm) starts the next when the last is
    gone: it need not wait to take over what that had. Were the last alive all the same, its fence would stop it.
    """

    host: str
    process: int = field(default_factory=os.getpid)
    seconds: float = SECONDS
    family: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or self.family + uuid4().hex[:16])

    def follows(self, owner: str) -> bool:
        """Whether that process is gone, because this one was started in its place."""
        return bool(self.family) and owner.startswith(self.family)


@dataclass(frozen=True)
class Lease:
    """Claim `number` of a run, ours."""

    run: str
    number: int
    owner: str

    @property
    def fence(self) -> str:
        return f"{self.run}/{LEASE}/{self.number}.{self.owner}.writes"


@dataclass(frozen=True)
class Failure:
    """Why a claim came to nothing, and on which host."""

    host: str
    message: str


@dataclass(frozen=True)
class Past:
    """What became of a run so far: the highest claim, who has it now, and what failed since the user last asked for it."""

    number: int = 0
    holder: Mapping[str, Any] | None = None
    failures: tuple[Failure, ...] = ()

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(failure.host for failure in self.failures))

    @property
    def parked(self) -> bool:
        return len(self.hosts) >= HOSTS


class Leases:
    """What a process does with claims. `clock` counts seconds, from any moment on."""

    def __init__(self, me: Owner, clock: Callable[[], float]) -> None:
        self.me, self.clock = me, clock
        self._beat = 0
        self._mine: set[tuple[str, int]] = set()
        self._heard: dict[str, tuple[bytes | None, float]] = {}
        self._ends: dict[str, Mapping[str, Any]] = {}
        self._holders: dict[str, tuple[int, Mapping[str, Any]]] = {}

    # A heart

    def beat(self, runs: Collection[str] = (), kept: Collection[str] = (), **words: str) -> Steps[None]:
        """Say that this process is alive, which runs it has, and which of them it has written a checkpoint of."""
        self._beat += 1
        said: dict[str, Any] = {"host": self.me.host, "process": self.me.process, "seconds": self.me.seconds}
        said |= {"beat": self._beat}
        yield Replace(f"{WORKERS}/{self.me.id}", _written(said | {"runs": sorted(runs), "kept": sorted(kept)} | words))

    def _silent(self, owner: str) -> Steps[bool]:
        """Whether nothing has been heard of a process for longer than it promised. The first look can never tell."""
        said = yield Read(f"{WORKERS}/{owner}")
        before, since = self._heard.get(owner, (None, 0.0))
        if owner not in self._heard or said != before:
            self._heard[owner] = said, self.clock()
            return False
        promised = _number(heard(said).get("seconds")) or SECONDS
        return self.clock() - since > promised * DRIFT

    # A claim

    def past(self, run: str) -> Steps[Past]:
        """What the claims of a run say; ends that are known are not read again."""
        names = set((yield Names(f"{run}/{LEASE}")))
        numbers = sorted(int(name) for name in names if name.isdigit())
        failures: list[Failure] = []
        for number in numbers:
            name = f"{run}/{LEASE}/{number}.end"
            if name not in self._ends and f"{number}.end" in names:
                self._ends[name] = heard((yield Read(name)))
            end = self._ends.get(name, {})
            if end.get("how") == "again":
                failures = []
            if end.get("why"):
                failures.append(Failure(str(end.get("host")), str(end["why"])))
        last = numbers[-1] if numbers else 0
        ended = not last or f"{run}/{LEASE}/{last}.end" in self._ends
        return Past(last, None if ended else (yield from self._holder(run, last)), tuple(failures))

    def _holder(self, run: str, number: int) -> Steps[Mapping[str, Any]]:
        """What a claim says; one that is whole never changes, and is not read again."""
        known = self._holders.get(run, (0, {}))
        if known[0] != number or "owner" not in known[1]:
            self._holders[run] = number, heard((yield Read(f"{run}/{LEASE}/{number}")))
        return self._holders[run][1]

    def clear(self, run: str, past: Past | None = None) -> Steps[Past | None]:
        """What became of a run that nobody has now; None if somebody has it. A claim of somebody who is silent is ended. `past`
        is what was read of it just now.
        """
        past = past or (yield from self.past(run))
        if past.holder is None:
            return past
        owner = str(past.holder.get("owner"))
        end: dict[str, Any] = {"how": "lost", "host": str(past.holder.get("host", "?")), "by": self.me.host}
        if owner == self.me.id:
            if (run, past.number) in self._mine:
                return None
            end = {"how": "released", "host": self.me.host}  # we asked for it, or gave it back, and heard no answer
        else:
            heard_as = owner if owner.isalnum() else f"{run}-{past.number}"  # a foreign text leads nowhere
            silent = yield from self._silent(heard_as)
            if not (silent or self.me.follows(owner)):
                return None
            kept = heard(self._heard[heard_as][0]).get("kept")
            if not (isinstance(kept, list) and run in kept):
                end["why"] = "its process ended without a word, before it had kept anything"
        yield from self._end(run, past.number, end)
        past = yield from self.past(run)
        return past if past.holder is None else None

    def claim(self, run: str, past: Past | None = None) -> Steps[Lease | None]:
        """Take a run that nobody has, or that its owner has lost; None if somebody has it, or is quicker."""
        past = yield from self.clear(run, past)
        if past is None:
            return None
        lease = Lease(run, past.number + 1, self.me.id)
        yield Open(lease.fence)  # before the claim: whoever takes over from us must find it, in order to close it
        data = _written({"owner": self.me.id, "host": self.me.host, "process": self.me.process, "token": uuid4().hex})
        if not (yield from _created(f"{run}/{LEASE}/{lease.number}", data)):
            yield Close(lease.fence)
            return None
        if lease.number > 1:
            yield from self.close_fences(run, lease.number, lease.fence)
        self._mine.add((run, lease.number))  # not before: a claim whose caller never heard of it is given back at the next look
        return lease

    def close_fences(self, run: str, number: int, but: str = "") -> Steps[None]:
        """After this, nobody who had a claim up to this number writes any more."""
        for name in (yield Names(f"{run}/{LEASE}")):
            fence = f"{run}/{LEASE}/{name}"
            if name.endswith(".writes") and _number(name.split(".")[0]) <= number and fence != but:
                yield Close(fence)

    @staticmethod
    def holds(lease: Lease) -> Steps[bool]:
        """Whether nobody has ended it."""
        return (yield Read(f"{lease.run}/{LEASE}/{lease.number}.end")) is None

    def end(self, lease: Lease, how: How, why: str = "") -> Steps[bool]:
        """Give a run back; whether it was still ours. `why` counts as a failure on this host."""
        self._mine.discard((lease.run, lease.number))
        ours = yield from self._end(lease.run, lease.number, {"how": how, "host": self.me.host, "why": why})
        yield Close(lease.fence)
        if how == "finished":
            yield Create(f"{FINISHED}/{lease.run}", b"")
        return ours

    def ask_again(self, run: str) -> Steps[None]:
        """What failed before is forgiven: the user wants the run tried again."""
        past = yield from self.past(run)
        if past.failures and past.holder is None:
            lease = yield from self.claim(run)
            if lease:
                yield from self.end(lease, "again")

    def _end(self, run: str, number: int, said: Mapping[str, Any]) -> Steps[bool]:
        name = f"{run}/{LEASE}/{number}.end"
        return (yield from _created(name, _written({**said, "token": uuid4().hex})))


def names_in(folder: str) -> Steps[list[str]]:
    """What there is."""
    names: list[str] = yield Names(folder)
    return names


def _created(name: str, data: bytes) -> Steps[bool]:
    """Whether what is there is ours. An answer that was lost, or asked for twice on the way, is no answer: then it is read."""
    for _ in range(3):
        try:
            if (yield Create(name, data)):
                return True
        except TimeoutError:
            pass
        try:
            there = yield Read(name)
        except TimeoutError:
            continue
        if there is not None:
            return bool(there == data)
    raise TimeoutError(f"{name}: no answer")


def _written(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data) + "\n").encode()


def heard(data: bytes | None) -> Mapping[str, Any]:
    """What a file of a lease says; nothing, where it is truncated or foreign."""
    try:
        said = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
