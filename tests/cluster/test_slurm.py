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


def test_a_job_whose_time_is_over_is_queued_again_and_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    wanted, store = plan(tmp_path, 400, [100]), tmp_path / "store"

    def tell_that_time_is_over() -> None:
        in_training(store, *wanted.runs)
        (heart,) = heartbeats(store)
        os.kill(int(str(heart["process"])), signal.SIGUSR2)

    slurm = threading.Thread(target=tell_that_time_is_over)
    slurm.start()
    (outcome,) = try_all_on(SlurmCluster(executor="local"), wanted.runs, store, progress=False)
    slurm.join()
    assert outcome.error is None
    assert ends(store, wanted.runs[0]) == ["released", "finished"]  # given back at once, not found out by its silence
    logs = "".join(path.read_text() for path in (store / JOBS).rglob("*.out"))
    assert "Requeued job" in logs
    wanted.as_alone(store)


def test_why_runs_of_a_job_fail_and_that_a_job_was_killed_is_told(tmp_path: Path) -> None:
    wanted, store = plan(tmp_path, 400, [100]), tmp_path / "store"

    def kill() -> None:
        in_training(store, *wanted.runs)
        (heart,) = heartbeats(store)
        os.kill(int(str(heart["process"])), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    (outcome,) = try_all_on(SlurmCluster(executor="local", lease=2), wanted.runs, store, progress=False)
    killer.join()
    assert outcome.error is not None
    assert "ended (FINISHED) before the run did; what it said: " in outcome.error
    (outcome,) = try_all_on(SlurmCluster(executor="local", lease=2), wanted.runs, store, progress=False)
    assert ends(store, wanted.runs[0]) == ["lost", "finished"]
    wanted.as_alone(store)
