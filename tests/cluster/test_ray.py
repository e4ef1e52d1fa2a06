"""Runs on Ray: a real cluster of several nodes on this machine, one of which is killed, and then its head."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from plans import Driver, Plan, ends, heartbeats, in_training, plan
from ray.cluster_utils import Cluster

from command import Call

MEMORY = 80 * 2**20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that trains nothing, and two nodes with a core each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    for _ in range(2):
        cluster.add_node(wait=False, num_cpus=1, object_store_memory=MEMORY)
    cluster.wait_for_nodes(timeout=60)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan(tmp_path_factory.mktemp("long"), 300, [100, 101])


def test_a_store_that_nodes_do_not_see_is_named_in_one_line(cluster: Cluster, long: Plan, tmp_path: Path) -> None:
    words = ("ray", long.path, "--address", cluster.address, "--store", "/proc/self/cwd/runs", "--no-progress")
    Driver(*words, cwd=tmp_path).wait().refused("does not see the runs in '/proc/self/cwd/runs'", "--store")


def test_runs_of_a_killed_node_end_as_if_nothing_had_been(cluster: Cluster, long: Plan, tmp_path: Path, call: Call) -> None:
    driver = Driver("ray", long.path, "--address", cluster.address, "--store", tmp_path, "--json")
    in_training(tmp_path, *long.runs)
    told = json.loads(call("status", tmp_path, "--json").out)
    assert len({worker["host"] for worker in told["workers"]}) == 2
    assert sorted(run for worker in told["workers"] for run in worker["runs"]) == sorted(run.id for run in long.runs)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    done = driver.wait()
    assert done.code == 0, done.err
    assert len(json.loads(done.out)) == 6  # two seeds; two questions, and all
    assert "2 runs on cpu, in 2 packs" in done.err
    assert sorted(ends(tmp_path, run) for run in long.runs) == [["finished"], ["lost", "finished"]]
    long.as_alone(tmp_path)


def test_a_driver_that_is_stopped_gives_runs_back_and_one_whose_head_died_goes_on(
    cluster: Cluster, long: Plan, tmp_path: Path
) -> None:
    driver = Driver("ray", long.path, "--address", cluster.address, "--store", tmp_path)
    in_training(tmp_path, long.runs[0])
    driver.process.send_signal(signal.SIGINT)
    done = driver.wait()
    assert done.code == 130, done.err
    assert heartbeats(tmp_path) == []
    assert all(set(ends(tmp_path, run)) <= {"released"} for run in long.runs)
    driver = Driver("ray", long.path, "--address", cluster.address, "--store", tmp_path, "--lease", 3)
    in_training(tmp_path, long.runs[0])
    cluster.shutdown()
    assert driver.wait().code
    again = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": MEMORY})
    try:
        done = Driver("ray", long.path, "--address", again.address, "--store", tmp_path, "--lease", 3).wait()
    finally:
        again.shutdown()
    assert done.code == 0, done.err
    long.as_alone(tmp_path)
