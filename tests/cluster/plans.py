"""Plans on a disk, the same trained on this machine alone, and drivers: `lengthlab launch …` in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from command import Done
from lengthlab.launch import try_all
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.store import Store
from small_runs import counts, identical, learned, wait_for, weights

SLOW = "LENGTHLAB_TEST_SLOW"
OWN = f"""
import os
import time
from dataclasses import dataclass
from lengthlab.tasks import ModuloRecall
from lengthlab.training import recorder

if slow := os.environ.get("{SLOW}"):
    recorder.FIRST_CHECKPOINT_SECONDS = recorder.CHECKPOINT_SECONDS = 0.2

@dataclass(frozen=True)
class Own(ModuloRecall):
    '''A user's own task, whose code has to reach the nodes; there it takes its time, so that there is time to kill them.'''

    def draw(self, n_B, generator):
        time.sleep(float(slow or 0))
        return super().draw(n_B, generator)
"""
PLAN = """
[defaults]
task = {{ name = "own.py:Own", modulus = 2, values = 4, keys = 12 }}
model = {{ name = "hybrid-block", width = 8, blocks = 1, heads = 2, mlp = 1, positions = "none", scores = "log-n" }}
schedule = {{ name = "end-to-end", joint = {steps}, lr = 1e-2 }}
lengths = [1, 3]
batch = 4
evaluate = [3]
seeds = {seeds}
[[run]]
"""


@dataclass(frozen=True)
class Plan:
    """Runs in a file, and a store where they went through without a cluster."""

    path: Path
    runs: list[Run]
    alone: Path

    def as_alone(self, store: Path) -> None:
        """Weights, counts and log are the same, bit for bit, and nothing is left over."""
        for run in self.runs:
            assert identical(weights(store, run), weights(self.alone, run))
            assert counts(store, run) == counts(self.alone, run)
            assert learned(store, run) == learned(self.alone, run)
            assert not list((store / run.id).glob("*checkpoint*"))
            assert not list((store / run.id / ".lease").glob("*.writes"))


def plan(folder: Path, steps: int, seeds: list[int]) -> Plan:
    (folder / "own.py").write_text(OWN)
    path = folder / "plan.toml"
    path.write_text(PLAN.format(steps=steps, seeds=seeds))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(SLOW, raising=False)
        runs = read_plan(path)
    assert not any(each.error for each in try_all(runs, folder / "alone", "cpu", progress=False))
    return Plan(path, runs, folder / "alone")


class Driver:
    """`lengthlab launch WORDS`"""

    def __init__(self, *words: object, cwd: Path | None = None) -> None:
        env = {name: value for name, value in os.environ.items() if name != SLOW}
        command = [sys.executable, "-m", "lengthlab", "launch", *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env)

    def wait(self, seconds: float = 200.0) -> Done:
        try:
            out, err = self.process.communicate(timeout=seconds)
        finally:
            self.process.kill()
        return Done(self.process.returncode, out, err)


def in_training(store: Path, *runs: Run) -> None:
    """Waits until each has a checkpoint that was heard of, and goes on."""
    wait_for(lambda: {run.id for run in runs} <= {run for each in heartbeats(store) for run in each["kept"]})


def heartbeats(store: Path) -> list[dict[str, object]]:
    """What living processes said last; all of them are of this machine."""
    found = []
    for path in (store / ".workers").glob("[!.]*"):
        try:
            found.append(json.loads(path.read_bytes()))
        except OSError:  # gone since
            continue
    return [each for each in found if Path(f"/proc/{each['process']}").exists()]


def ends(store: Path, run: Run) -> list[str]:
    """How the claims of a run ended, the first one first."""
    paths = sorted((Store(store).folder(run.id).path / ".lease").glob("*.end"), key=lambda path: int(path.stem))
    return [json.loads(path.read_bytes())["how"] for path in paths]
