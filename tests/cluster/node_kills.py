"""Nodes of Ray, SIGKILLed at random moments; by hand, after `make test-cluster`. What kills.py is for one machine.

    PYTHONPATH=.cluster/site-packages:tests python tests/cluster/node_kills.py 20

A cluster of three nodes on this machine has runs by `lengthlab launch ray`. After a while one of the two nodes that train is
killed, with all that it has begun, and another one joins. When the runs are through they are compared with undisturbed ones,
bit for bit, and the next round starts on a new store.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from ray.cluster_utils import Cluster

import cluster.conftest  # noqa: F401  # what nodes have in their environment
from cluster.plans import Driver, Plan, heartbeats, plan

MEMORY = 80 * 2**20
WAITS = (0.5, 3.0, 8.0)
"""Seconds at most, of which one is chosen by chance each time."""
LEASE = 3
"""Seconds: those who take over a run of a killed node wait for as long."""
AT_WORK = 0.8
"""How often a node is killed that trains: a start takes longer than a run, so that chance alone would seldom hit one."""


class NodeKills:
    """A cluster, and what was done to it."""

    def __init__(self, wanted: Plan, folder: Path) -> None:
        self.plan, self.folder = wanted, folder
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
        self.chance, self.counts, self.wrong = random.Random(0), Counter[str](), list[str]()
        for _ in range(2):
            self._add_node()

    def go_on(self, most: int, seconds: float) -> None:
        end = monotonic() + seconds
        while self.counts["kills"] < most and monotonic() < end:
            store = self.folder / f"store{self.counts['rounds']}"
            while not self._through(store, most, end):
                self.counts["launched again, because a run was parked"] += 1
            self.counts["rounds"] += 1
            try:
                self.plan.as_alone(store)
            except (AssertionError, OSError) as error:
                self.wrong.append(f"{store.name}: {error!r}")

    def _through(self, store: Path, most: int, end: float) -> bool:
        """Launch, and kill until all runs are there; False where one was killed before its first checkpoint too often."""
        words = ("ray", self.plan.path, "--address", self.cluster.address, "--store", store, "--lease", LEASE, "--no-progress")
        with ThreadPoolExecutor(1) as reader:  # Ray says much of dead nodes: a pipe that nobody reads is full in the end
            ended = reader.submit(Driver(*words).wait, 1e6)
            while not ended.done():
                at_work = self.chance.random() < AT_WORK
                while at_work and not ended.done() and not heartbeats(store):
                    sleep(0.1)
                sleep(self.chance.choice(WAITS) * self.chance.random())
                if not ended.done() and self.counts["kills"] < most and monotonic() < end:
                    self._kill_one(heartbeats(store))
        done = ended.result()
        if done.code and "failed" not in done.err:
            self.wrong.append(done.err[-500:])
        return done.code == 0 or bool(self.wrong)

    def _kill_one(self, hearts: list[dict[str, Any]]) -> None:
        """One that trains, if there is one."""
        busy = {str(heart["host"])[-6:]: heart["kept"] for heart in hearts}
        nodes = sorted(self.cluster.worker_nodes, key=lambda node: str(node.node_id))
        node = self.chance.choice([node for node in nodes if node.node_id[:6] in busy] or nodes)
        kept = busy.get(node.node_id[:6])
        self.counts["after a checkpoint" if kept else "before a checkpoint" if kept == [] else "of a node without a run"] += 1
        self.cluster.remove_node(node, allow_graceful=False)
        self.counts["kills"] += 1
        print(json.dumps(self.told()), flush=True)
        self._add_node()

    def _add_node(self) -> None:
        self.cluster.add_node(wait=False, num_cpus=1, object_store_memory=MEMORY)

    def told(self) -> dict[str, Any]:
        return {**self.counts, "runs a round": len(self.plan.runs), "wrong": self.wrong}


def main(most: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        kills = NodeKills(plan(Path(folder), 300, [100, 101]), Path(folder))
        try:
            kills.go_on(most, seconds)
        finally:
            kills.cluster.shutdown()
            print(json.dumps(kills.told(), indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e9)
