"""Ten thousand runs in a store, and how long commands take with them: `python tests/load.py FOLDER [RUNS]`, by hand.

The store is written once, by what writes runs otherwise, with weights, log and counts of the one run that is trained. Then
every command is called three times, each time in a process of its own: seconds by the clock, and of a core.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from time import perf_counter

from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.store import Folder, Store
from lengthlab.store.folder import WEIGHTS
from lengthlab.training import train
from lengthlab.training.result import claim

SEEDS = 100
PLAN = """
[defaults]
task = {{ name = "modulo-recall", modulus = 2, keys = 16 }}
model = {{ name = "hybrid-block", width = 16, blocks = 1, heads = 2, mlp = 1 }}
schedule = {{ name = "delayed", first = 5, joint = 5 }}
lengths = [1, 4]
batch = 4
evaluate = [4, 8, 12, 16]
seeds = {seeds}
[grid]
schedule.lr = {rates}
"""
RESULTS = "import lengthlab; print(lengthlab.results('runs'))"
TIMES = 3


def write(folder: Path, number: int) -> None:
    """The plan, and its runs, finished."""
    folder.mkdir(parents=True)
    rates = [round(1e-4 * (1 + each), 6) for each in range(max(1, number // SEEDS))]
    (folder / "plan.toml").write_text(PLAN.format(seeds=list(range(100, 100 + min(SEEDS, number))), rates=rates))
    runs = read_plan(folder / "plan.toml", ())
    first = train(runs[0], folder / "runs").folder
    for run in runs[1:]:
        _finish(run, Store(folder / "runs").folder(run.id), first)


def _finish(run: Run, folder: Folder, first: Folder) -> None:
    """As the first one is, which differs in its rate and seed; with counts of its own, as they would be."""
    claim(folder, run)
    for name in ("log.jsonl", WEIGHTS):
        folder.write(name, (first.path / name).read_bytes())
    result, chance = first.read_json("result.json"), Random(run.id)
    counts = [count | {"correct": chance.randrange(count["total"] + 1)} for count in result["counts"]]
    own = {"run": run.id, "seed": run.seed, "settings": run.settings, "counts": counts}
    folder.write_json("result.json", result | own)


def timed(folder: Path, *words: str) -> list[tuple[float, float]]:
    """Of each call, in order: seconds by the clock and of a core."""
    seconds = []
    for _ in range(TIMES):
        begun, before = perf_counter(), os.times()
        command = [sys.executable, *(["-c", RESULTS] if words == ("results",) else ["-m", "lengthlab", *words])]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        seconds.append((perf_counter() - begun, used))
        assert done.returncode == 0, done.stderr[-2000:]
    return seconds


def main(folder: Path, number: int) -> None:
    if not folder.exists():
        begun = perf_counter()
        write(folder, number)
        print(f"{number} runs written in {perf_counter() - begun:.0f} s")
    for words in (
        ["status", "runs"],
        ["train", "plan.toml", "--no-progress"],
        ["report", "runs", "--json"],
        ["report", "runs"],
        ["results"],
    ):
        shutil.rmtree(folder / "runs" / "report", ignore_errors=True)
        print(" ".join(words), *(f"{clock:.1f} s ({core:.1f})" for clock, core in timed(folder, *words)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
