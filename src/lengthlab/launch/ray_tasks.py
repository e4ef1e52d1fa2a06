"""Packs of runs as tasks of Ray: a core for each, and a GPU where they are trained on one.

Nothing large goes through Ray's object store: a task gets ids and gives ids back. A task whose node or process has died is
started again by Ray, as often as it takes: leases count what ends before it has kept anything, and a run that does so on three
nodes, or twice on one, is reported as failed (store/lease.py).
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from types import ModuleType
from typing import Any

from lengthlab.errors import KEPT, LabError, cut, require
from lengthlab.launch.in_process import Tell
from lengthlab.launch.pack import Pack, train_pack
from lengthlab.store import Store
from lengthlab.store.lease import HOST, SECONDS

WAIT_SECONDS = 0.5
REACH_SECONDS = 5.0
"""Until an address that does not answer is given up; Ray itself would try for ever."""
ENDING_SECONDS = 2.0
STOP_SECONDS = 20.0
"""So long tasks that were asked to stop have for the step under way, and for giving their runs back."""


@dataclass(frozen=True)
class RayCluster:
    """`RayCluster("10.0.0.1:6379")`. Without an address: that of RAY_ADDRESS, or of this machine, which becomes a cluster by
    itself if it is in none. `pack`: so many runs share a GPU; if not given, all are divided among the GPUs that are there now.
    """

    address: str | None = None
    pack: int | None = None
    lease: float = SECONDS

    def connect(self) -> str:
        ray = _ray()
        address = self.address or os.environ.get("RAY_ADDRESS")
        if not ray.is_initialized():
            _require_reachable(address)
            try:
                ray.init(address=address, log_to_driver=False, logging_level="error")
            except Exception as error:
                raise LabError(f"no Ray at {address or 'this machine'}: {cut(str(error), 300)}") from None
        return f"Ray at {ray.get_runtime_context().gcs_address}"

    def device(self, named: str) -> str:
        require(named in ("auto", "cpu", "cuda"), f"Ray chooses the GPU: --device is auto, cpu or cuda, not '{cut(named)}'")
        return named if named != "auto" else "cuda" if self._gpus() else "cpu"

    def number_of_packs(self, runs: int, device: str) -> int:
        if device == "cpu":
            return runs
        return ceil(runs / self.pack) if self.pack else max(1, self._gpus())

    def _gpus(self) -> int:
        return int(_ray().cluster_resources().get("GPU", 0))

    def train(self, packs: Sequence[Pack], tell: Tell) -> dict[str, str]:
        ray, errors = _ray(), dict[str, str]()
        task = ray.remote(max_retries=-1, num_cpus=1)(_train)
        waiting: dict[Any, Pack] = {}

        def start(pack: Pack) -> None:
            waiting[task.options(num_gpus=int(pack.device != "cpu"), name=f"lengthlab {pack.id}").remote(pack)] = pack

        try:
            with _interrupts() as interrupted:
                for pack in packs:
                    start(pack)
                while waiting:
                    for done in ray.wait(list(waiting), num_returns=len(waiting), timeout=WAIT_SECONDS)[0]:
                        pack = waiting.pop(done)
                        errors |= _answer(ray, done)
                        if any(run not in errors and not Store(pack.store).folder(run).finished for run in pack.runs):
                            start(pack)  # its node was asked to stop
                    tell(errors)
                    if interrupted():
                        raise KeyboardInterrupt
        finally:
            if waiting:
                _stop(ray, list(waiting))
        return errors


def _train(pack: Pack) -> dict[str, str] | str:
    """On a node: why runs failed, by id; or why this node cannot train any."""
    import ray

    try:
        return train_pack(pack, f"{HOST}-{ray.get_runtime_context().get_node_id()[:6]}")
    except LabError as error:
        return str(error)


def _answer(ray: ModuleType, done: Any) -> dict[str, str]:
    """What a task gave back. A node that cannot train ends everything: it would draw one task after the other."""
    try:
        answer = ray.get(done)
    except ray.exceptions.TaskCancelledError:  # by somebody else, before it had begun
        return {}
    except ray.exceptions.RayError as error:
        raise LabError(f"Ray gave a task up: {cut(str(error).strip().splitlines()[-1], 300)} {KEPT}") from None
    require(not isinstance(answer, str), str(answer))
    return dict(answer)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Whether there was a Ctrl-C while inside. Raised in the midst of Ray's own code, as it is otherwise, it may get lost."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = threading.Event()
    before = signal.signal(signal.SIGINT, lambda number, frame: came.set())
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(ray: ModuleType, tasks: list[Any]) -> None:
    """Politely: they keep what was learned and give their runs back. What does not, is known by its silence later. Those about
    to end by themselves are let: Ray's driver may crash where a task is cancelled in the moment in which it ends.
    """
    with suppress(Exception):
        _, left = ray.wait(tasks, num_returns=len(tasks), timeout=ENDING_SECONDS)
        for task in left:
            ray.cancel(task)
        if left:
            ray.wait(left, num_returns=len(left), timeout=STOP_SECONDS)


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError:
        raise LabError("launching on Ray needs Ray: pip install 'lengthlab[ray]'") from None
    return ray  # type: ignore[no-any-return]


def _require_reachable(address: str | None) -> None:
    """An address with a port is tried first."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        known = address in (None, "", "auto", "local")
        require(known, f"an address of Ray is host:port, as in 10.0.0.1:6379, not '{cut(str(address))}'")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise LabError(f"no Ray at {cut(str(address))}: {error}; is its head running, and is this its port?") from None
