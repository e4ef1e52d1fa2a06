"""A claim on a run: one process has it, whoever else wants it, is killed, is suspended, or hears no answer."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from lease_simulation import FOLDER, OBJECTS, Campaign
from lengthlab.errors import LabError
from lengthlab.store import Busy, Store
from lengthlab.store.fenced import LeasedStore, Lost
from lengthlab.store.folder import CHECKPOINT
from lengthlab.store.lease import DRIFT, HOSTS, Lease, Leases, Owner
from lengthlab.store.place import Create, FolderPlace, Place, Steps, carry_out
from simulated_store import SimulatedStore

RUN = "0123456789ab"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Host:
    """A host with a clock of its own, which is wrong by `skew`."""

    place: Place
    name: str
    skew: float = 0.0
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.leases = Leases(Owner(self.name, seconds=60), lambda: self.clock.now + self.skew)

    def do(self, steps: Steps[Any]) -> Any:
        return carry_out(steps, self.place)

    def beat(self) -> None:
        self.do(self.leases.beat())

    def claim(self) -> Lease | None:
        lease = self.do(self.leases.claim(RUN))
        assert lease is None or isinstance(lease, Lease)
        return lease


@pytest.fixture(params=["folder", "folder without links", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "folder without links":

        def no_links(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
    return SimulatedStore() if request.param == "simulated" else FolderPlace(tmp_path)


@pytest.fixture
def hosts(place: Place) -> tuple[Host, Host]:
    """Two, one of whose clocks is a day ahead."""
    clock = Clock()
    two = Host(place, "one", clock=clock), Host(place, "two", 86_400.0, clock=clock)
    for host in two:
        host.beat()
    return two


def test_one_of_two_gets_a_run_and_the_other_when_it_is_given_back(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    lease = one.claim()
    assert lease
    assert lease.number == 1
    assert two.claim() is None
    assert one.claim() is None
    one.do(one.leases.end(lease, "released"))
    again = two.claim()
    assert again
    assert again.number == 2


@pytest.mark.parametrize("lost", [None, "request", "answer"])
def test_of_two_that_want_a_run_at_once_one_gets_it_in_every_order_of_their_operations(lost: str | None) -> None:
    """Where an answer is lost, it is that to the first one's claim."""
    for first in combinations(range(8), 4):
        order = [0 if place in first else 1 for place in range(8)]
        store = SimulatedStore()
        claims = [Leases(Owner(name, seconds=60), Clock()).claim(RUN) for name in ("one", "two")]
        answers, got = [None, None], [None, None]
        for who in [*order, *[0, 1] * 5]:
            if got[who] is None:
                answers[who], got[who] = _operation(claims[who], answers[who], store, lost if who == 0 else None)
        assert sorted(isinstance(each, Lease) for each in got) == [False, True], order


def _operation(steps: Steps[Any], answer: Any, store: SimulatedStore, lost: str | None) -> tuple[Any, Any]:
    """The answer to the next operation, and what the steps came to if that was the last."""
    try:
        operation = steps.throw(answer) if isinstance(answer, OSError) else steps.send(answer)
    except StopIteration as end:
        return None, end.value or "nothing"
    if lost and isinstance(operation, Create):
        return (store.do(operation) if lost == "answer" else None, TimeoutError())[1], None
    return store.do(operation), None


def test_a_silent_owner_loses_its_claim_after_its_time_and_not_before(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    lease = one.claim()
    assert lease
    assert two.claim() is None
    one.clock.now = 60 * DRIFT
    assert two.claim() is None
    one.clock.now += 0.1
    taken = two.claim()
    assert taken
    assert taken.number == 2
    assert not one.do(one.leases.holds(lease))
    assert not one.do(one.leases.end(lease, "finished"))
    assert two.do(two.leases.holds(taken))


def test_an_owner_that_beats_keeps_its_claim_for_ever(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    assert one.claim()
    for _ in range(100):
        one.clock.now += 10
        one.beat()
        assert two.claim() is None


def test_a_run_is_parked_after_failures_on_three_hosts_until_it_is_asked_for_again(place: Place) -> None:
    for number in range(HOSTS):
        host = Host(place, f"host {number}")
        assert not host.do(host.leases.past(RUN)).parked
        lease = host.claim()
        assert lease
        host.do(host.leases.end(lease, "failed", f"reason {number}"))
    past = host.do(host.leases.past(RUN))
    assert past.parked
    assert [failure.message for failure in past.failures] == ["reason 0", "reason 1", "reason 2"]
    host.do(host.leases.ask_again(RUN))
    assert host.do(host.leases.past(RUN)).failures == ()


@pytest.mark.parametrize("kept", [True, False])
def test_a_death_counts_as_a_failure_only_where_nothing_was_kept(hosts: tuple[Host, Host], kept: bool) -> None:
    one, two = hosts
    one.claim()
    one.do(one.leases.beat([RUN], [RUN] if kept else []))
    two.claim()
    one.clock.now = 1000
    assert two.claim()
    assert two.do(two.leases.past(RUN)).hosts == ([] if kept else ["one"])


@pytest.mark.parametrize("foreign", [b"", b"{", b"[]", b'{"owner": "../../etc"}', b'{"owner": 7}', b"\xff"])
def test_a_foreign_claim_is_one_of_an_owner_that_was_never_heard_of(tmp_path: Path, foreign: bytes) -> None:
    (tmp_path / RUN / ".lease").mkdir(parents=True)
    (tmp_path / RUN / ".lease" / "1").write_bytes(foreign)
    host = Host(FolderPlace(tmp_path), "one")
    assert host.claim() is None
    host.clock.now = 1000
    lease = host.claim()
    assert lease
    assert lease.number == 2


# Folders


@dataclass
class Suspended:
    """A folder whose owner was suspended, and the lease of who took over."""

    store: LeasedStore
    other: LeasedStore


@pytest.fixture
def suspended(tmp_path: Path) -> Suspended:
    place, clock = FolderPlace(tmp_path), Clock()
    one, two = Host(place, "one", clock=clock), Host(place, "two", clock=clock)
    mine, other = LeasedStore(tmp_path), LeasedStore(tmp_path)
    lease = one.claim()
    assert lease
    mine.leases[RUN] = lease
    folder = mine.folder(RUN)
    folder.write_json("run.json", {})
    folder.trim_log(0)
    folder.append_log({"step": 50})
    folder.write(CHECKPOINT, b"one")
    two.claim()
    clock.now = 1000
    taken = two.claim()
    assert taken
    other.leases[RUN] = taken
    return Suspended(mine, other)


def test_an_owner_that_comes_back_too_late_writes_nothing(suspended: Suspended, tmp_path: Path) -> None:
    owner, late = suspended.other.folder(RUN), suspended.store.folder(RUN)
    owner.trim_log(0)
    owner.append_log({"step": 51})
    owner.write(CHECKPOINT, b"two")
    for act in (
        lambda: late.write(CHECKPOINT, b"one again"),
        lambda: late.write_json("result.json", {}),
        lambda: late.remove(CHECKPOINT),
        lambda: late.append_log({"step": 100}),
        lambda: late.trim_log(0),
        lambda: late.lock(wait=False).__enter__(),
    ):
        with pytest.raises(Lost, match="taken over"):
            act()
    late.record_failure(LabError("mine"))
    assert (owner.path / CHECKPOINT).read_bytes() == b"two"
    assert not owner.finished
    assert not (owner.path / "failure.json").exists()
    owner.append_log({"step": 52})
    assert [line["step"] for line in owner.read_log()] == [51, 52]


def test_the_disk_refuses_a_late_write_even_if_its_owner_was_suspended_in_the_middle_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, clock = FolderPlace(tmp_path), Clock()
    one, two = Host(place, "one", clock=clock), Host(place, "two", clock=clock)
    mine, other = LeasedStore(tmp_path), LeasedStore(tmp_path)
    lease = one.claim()
    assert lease
    mine.leases[RUN] = lease
    two.claim()
    replace = os.replace

    def suspended_before(old: Any, new: Any) -> None:
        if str(new).endswith(CHECKPOINT) and b"one" in Path(old).read_bytes():
            clock.now += 1000
            taken = two.claim()
            assert taken
            other.leases[RUN] = taken
            other.folder(RUN).write(CHECKPOINT, b"two")
        replace(old, new)

    monkeypatch.setattr(os, "replace", suspended_before)
    with pytest.raises(Lost):
        mine.folder(RUN).write(CHECKPOINT, b"one")
    assert (tmp_path / RUN / CHECKPOINT).read_bytes() == b"two"


def test_commands_without_leases_and_workers_respect_each_other(tmp_path: Path) -> None:
    host, mine = Host(FolderPlace(tmp_path), "one"), LeasedStore(tmp_path)
    plain = Store(tmp_path).folder(RUN)
    with plain.lock():
        lease = host.claim()
        assert lease
        mine.leases[RUN] = lease
        with pytest.raises(Busy), mine.folder(RUN).lock(wait=False):
            pass
    assert plain.held
    with pytest.raises(Busy, match="worker"), plain.lock(wait=False):
        pass
    with mine.folder(RUN).lock(wait=False):
        pass
    host.do(host.leases.end(lease, "released"))
    assert not plain.held
    with plain.lock(wait=False):
        pass


# Any order of anything: operations of several workers one by one, answers lost, workers suspended


SECONDS = 60.0
LOSSES = st.sampled_from([None, None, None, None, "request", "answer"])


@dataclass(eq=False)
class Process:
    """A worker in the middle of something: `steps` is what it is at, `answer` what it has heard last."""

    leases: Leases
    steps: Steps[Any] | None = None
    answer: Any = None
    lease: Lease | None = None
    suspended: bool = False
    last_beat: float = 0.0
    silence: float = 0.0
    """The longest so far."""


class Workers(RuleBasedStateMachine):
    """Against a model that knows all: whose claim counts, and who has been silent for long enough to lose it."""

    processes = Bundle("processes")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.store = SimulatedStore()
        self.every: list[Process] = []
        self.owners: dict[int, Process] = {}
        self.newest = 0

    @initialize(target=processes)
    def first(self) -> Process:
        return self._start(0.0, 1.0)

    @precondition(lambda self: len(self.every) < 3)
    @rule(target=processes, skew=st.floats(-1e6, 1e6), rate=st.floats(1.0, 1.05))
    def another(self, skew: float, rate: float) -> Process:
        return self._start(skew, rate)

    def _start(self, skew: float, rate: float) -> Process:
        leases = Leases(Owner(f"host {len(self.every)}", seconds=SECONDS), lambda: self.now * rate + skew)
        process = Process(leases, last_beat=self.now)
        self.every.append(process)
        self._beat(process)
        return process

    def _beat(self, process: Process) -> None:
        carry_out(process.leases.beat(), self.store)
        process.silence = max(process.silence, self.now - process.last_beat)
        process.last_beat = self.now

    @rule(seconds=st.floats(0.1, 10))
    def time_passes(self, seconds: float) -> None:
        """Hearts beat, but those of the suspended."""
        self.now += seconds
        for process in self.every:
            if not process.suspended:
                self._beat(process)

    @rule()
    def much_time_passes(self) -> None:
        for _ in range(9):
            self.time_passes(10.0)

    @rule(process=processes)
    def want(self, process: Process) -> None:
        """To claim the run, at one go."""
        if process.lease is None:
            self.begin(process, "released")
            self.go_on(process, 30, None)

    @rule(process=processes, other=processes)
    def sleep_long(self, process: Process, other: Process) -> None:
        """While another, which has heard of it, wants its run."""
        self.want(other)
        self.suspend(process)
        self.much_time_passes()
        self.want(other)
        self.come_back(process)

    @rule(process=processes)
    def suspend(self, process: Process) -> None:
        process.suspended = True

    @rule(process=processes)
    def come_back(self, process: Process) -> None:
        process.suspended = False

    @rule(process=processes, how=st.sampled_from(["released", "finished", "failed"]))
    def begin(self, process: Process, how: Any) -> None:
        """To claim the run, or to give it back."""
        if process.steps is None and not process.suspended:
            process.steps = process.leases.end(process.lease, how) if process.lease else process.leases.claim(RUN)
            process.lease, process.answer = None, None

    @rule(process=processes, operations=st.integers(1, 12), lost=LOSSES)
    def go_on(self, process: Process, operations: int, lost: str | None) -> None:
        """By so many operations; the answer to the first of them may be lost."""
        for number in range(operations):
            if process.steps is not None and not process.suspended:
                self._operate(process, lost if number == 0 else None)

    def _operate(self, process: Process, lost: str | None) -> None:
        assert process.steps is not None
        before = {name for name in self.store.files[f"{RUN}/.lease"] if name.endswith(".end")}
        try:
            threw = isinstance(process.answer, OSError)
            operation = process.steps.throw(process.answer) if threw else process.steps.send(process.answer)
        except StopIteration as end:
            process.steps = None
            if isinstance(end.value, Lease):
                self._claimed(process, end.value)
            return
        except TimeoutError:
            process.steps = None
            return
        process.answer = self.store.do(operation) if lost != "request" else None
        process.answer = TimeoutError() if lost else process.answer
        for name in {name for name in self.store.files[f"{RUN}/.lease"] if name.endswith(".end")} - before:
            owner = self.owners.get(int(name.removesuffix(".end")))
            if owner and owner.lease and owner is not process:
                assert max(owner.silence, self.now - owner.last_beat) > SECONDS, "an owner that is alive loses its claim"

    def _claimed(self, process: Process, lease: Lease) -> None:
        assert lease.number not in self.owners, "two have one claim"
        assert lease.number > self.newest
        self.newest, self.owners[lease.number], process.lease = lease.number, process, lease

    @rule(process=processes)
    def write(self, process: Process) -> None:
        """An owner that has not looked, because it was suspended after its look."""
        if process.lease and self.store.write(process.lease, process.lease.number):
            assert process.lease.number == self.newest, "a late write got through"

    @invariant()
    def nothing_is_mixed(self) -> None:
        assert self.store.mixed == 0


Workers.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestWorkers = Workers.TestCase


# Many


@pytest.mark.parametrize("store", [FOLDER, OBJECTS], ids=["folder", "objects"])
def test_twenty_workers_lose_nothing_though_they_are_killed_suspended_and_misinformed(store: Any) -> None:
    found = Campaign(workers=20, runs=100, store=store, killed_an_hour=1.0, suspended_an_hour=1.0, lost=0.01, seed=1).simulate()
    assert found.finished == 100
    assert found.killed > 5
    assert found.mixed == 0
    assert found.parked == 0
    assert found.twice < 0.1
