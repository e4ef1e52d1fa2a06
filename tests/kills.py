"""SIGKILL at random moments, as often as wanted: `python tests/kills.py 1000 [SECONDS]`, by hand.

A command that works with a store (train in its own process, train by workers, `lengthlab worker`, evaluate, report, serve) is
started, and killed after a while: the process alone, one of its children alone, or all of them. After every kill what can be
read is compared with what an undisturbed run gives; when the run is finished it is compared bit for bit, and the next round
starts on a new store. Nodes of a cluster: cluster/node_kills.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from lengthlab.cli import main as lengthlab
from lengthlab.launch import in_process
from lengthlab.report.curves import read_curves
from lengthlab.store import Folder
from lengthlab.store.watch import status_of
from lengthlab.training import recorder, train
from small_runs import counts, identical, learned, weights

PLAN = """
[[run]]
task = { name = "modulo-recall", modulus = 2, values = 4, keys = 12 }
model = { name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1, positions = "none", scores = "log-n" }
schedule = { name = "delayed", first = 120, joint = 120, last = 60, lr = 1e-2 }
lengths = [1, 3]
batch = 4
evaluate = [3]
seed = 100
"""
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": ("train", "plan.toml", "--store", "store", "--no-progress"),
    "train by workers": ("train", "plan.toml", "--store", "store", "--workers", "1"),
    "worker": ("worker", "store", "--lease", "1", "--device", "cpu"),
    "evaluate": ("evaluate", "store/RUN", "--lengths", "5,7,9"),
    "report": ("report", "store", "--out", "page"),
    "serve": ("serve", "store", "--port", "0"),
}
UNFINISHED, FINISHED = ("train", "train by workers", "worker", "serve"), ("evaluate", "report", "serve", "train")
WHOM = ("the process", "a child", "all")


def _be(folder: str, words: tuple[str, ...]) -> None:
    """`lengthlab WORDS` in a group of its own; it keeps a checkpoint every 50 ms."""
    os.setsid()
    os.chdir(folder)
    number = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(number, 1), os.dup2(number, 2)
    recorder.FIRST_CHECKPOINT_SECONDS = recorder.CHECKPOINT_SECONDS = 0.05
    in_process.START_SECONDS = 1e9
    sys.argv[:] = ["lengthlab", *words]
    lengthlab()


def children(process: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


@dataclass
class Campaign:
    folder: Path
    right: Path
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    kills: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """Commands that were through before they were killed."""
    finished: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        from lengthlab.spec.plan import read_plan

        (self.folder / "plan.toml").write_text(PLAN)
        (self.run,) = read_plan(self.folder / "plan.toml", ())
        train(self.run, self.right)
        self.counts = counts(self.right, self.run)
        self.store = self.folder / "store"

    def go_on(self, most: int, seconds: float) -> None:
        end = monotonic() + seconds
        while self.kills.total() < most and monotonic() < end:
            shutil.rmtree(self.store, ignore_errors=True)
            Folder(self.store / self.run.id).write_json("run.json", self.run.to_json())
            for _ in self._until_finished(UNFINISHED):
                self._look()
                if self.kills.total() >= most or monotonic() > end:
                    break
            for _ in range(4 if (self.store / self.run.id / "result.json").exists() else 0):
                self._kill_one(self.chance.choice(FINISHED))
                self._look()
            self._settle()

    def _until_finished(self, names: tuple[str, ...]) -> Iterator[None]:
        while not (self.store / self.run.id / "result.json").exists():
            self._kill_one(self.chance.choice(names))
            yield

    def _kill_one(self, name: str) -> None:
        words = tuple(word.replace("RUN", self.run.id) for word in COMMANDS[name])
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(["lengthlab.training.engine", "torch._dynamo"])
        process = forks.Process(target=_be, args=(str(self.folder), words))
        process.start()
        assert process.pid is not None
        whom = self.chance.choice(WHOM)
        process.join(self.chance.choice((0.2, 2.0, 8.0)) * self.chance.random())
        if process.exitcode is not None:
            self.ended[name] += 1
            if process.exitcode not in (0, 1):
                self.wrong.append(f"{name} ended with {process.exitcode}: {(self.folder / 'said.txt').read_text()[-500:]}")
            return
        self._kill(process.pid, whom)
        self.kills[name] += 1
        process.join(0.5)
        if process.exitcode is None:
            self._kill(process.pid, "all")
            process.kill()  # it may not have had the time to found a group
            process.join(60)

    def _kill(self, process: int, whom: str) -> None:
        group = [process] if whom == "the process" else children(process) if whom == "a child" else []
        try:
            for each in group[:1]:
                os.kill(each, signal.SIGKILL)
            if not group:
                os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _look(self) -> None:
        """What is read now is what was measured, or that nothing was."""
        folder = Folder(self.store / self.run.id)
        try:
            status = status_of(folder)
            if status.trouble or status.state == "failed":
                self.wrong.append(f"{status.trouble or status.failure}")
            if folder.finished:
                curves, problems = read_curves([folder])
                self.wrong += problems
                kept = [each for each in counts(self.store, self.run) if each["length"] == 3]
                if kept != self.counts or not curves:
                    self.wrong.append(f"{self.run.id}: another result")
        except Exception as error:
            self.wrong.append(repr(error))

    def _settle(self) -> None:
        """Undisturbed, it comes to what it would have come to."""
        sleep(0.2)
        train(self.run, self.store)
        self.finished += 1
        self._look()
        if not identical(weights(self.store, self.run), weights(self.right, self.run)):
            self.wrong.append("other weights")
        if learned(self.store, self.run) != learned(self.right, self.run):
            self.wrong.append("another log")
        left = {path.name for path in (self.store / self.run.id).iterdir()}
        odd = left - {".lock", ".lease", "run.json", "result.json", "weights.safetensors", "log.jsonl"}
        self.wrong += [f"left over: {name}" for name in odd]

    def told(self) -> dict[str, Any]:
        return {
            "kills": dict(self.kills),
            "in all": self.kills.total(),
            "through before": dict(self.ended),
            "runs finished": self.finished,
            "wrong": self.wrong,
        }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        (Path(place) / "desk").mkdir()
        campaign = Campaign(Path(place) / "desk", Path(place) / "right")
        try:
            campaign.go_on(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e9)
        finally:
            print(json.dumps(campaign.told(), indent=1))
