"""Jobs of Slurm, started by submitit as processes of this machine: there is no Slurm here. What a job does, and what it does
when its time is over, is the same.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from plans import ends, heartbeats, in_training, plan

from lengthlab.launch.cluster import try_all_on
from lengthlab.launch.slurm_jobs import JOBS, SlurmCluster
from lengthlab.spec.run import Run


def signalled(number: int, store: Path, *runs: Run) -> threading.Thread:
    """As soon as these runs are in training, their process gets this signal."""

    def send() -> None:
        in_training(store, *runs)
        (heart,) = heartbeats(store)
        os.kill(int(str(heart["process"])), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_a_job_that_is_killed_and_one_whose_time_is_over_end_as_if_nothing_had_been(tmp_path: Path) -> None:
    wanted, store = plan(tmp_path, 300, [100]), tmp_path / "store"
    (run,) = wanted.runs
    killed = signalled(signal.SIGKILL, store, run)
    (outcome,) = try_all_on(SlurmCluster(executor="local", lease=2), [run], store, progress=False)
    killed.join()
    assert "ended (FINISHED) before the run did; what it said: " in str(outcome.error)
    told = signalled(signal.SIGUSR2, store, run)  # as Slurm does before the time of a job is over
    (outcome,) = try_all_on(SlurmCluster(executor="local", lease=2), [run], store, progress=False)
    told.join()
    assert outcome.error is None
    assert ends(store, run) == ["lost", "released", "finished"]  # given back at once, not found out by its silence
    assert "Requeued job" in "".join(path.read_text() for path in (store / JOBS).rglob("*.out"))
    wanted.as_alone(store)
