"""Ten thousand runs in a store, and how long commands take with them: `python tests/load.py FOLDER [RUNS]`, by hand.

The store is written once, by what writes results otherwise (`claim`, `write_result`), with the weights and counts of one run that
was trained. Then every command is called three times, each time in a process of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from lengthlab.software import commit_of_package
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.store import Folder, Store
from lengthlab.store.folder import WEIGHTS
from lengthlab.training import train
from lengthlab.training.result import claim, write_result
from small_runs import CPU

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
TIMES = 3


def write(folder: Path, number: int) -> None:
    """The plan, and its runs, finished."""
    folder.mkdir(parents=True)
    rates = [round(1e-4 * (1 + each), 6) for each in range(max(1, number // SEEDS))]
    (folder / "plan.toml").write_text(PLAN.format(seeds=list(range(100, 100 + min(SEEDS, number))), rates=rates))
    runs = read_plan(folder / "plan.toml", ())
    first = train(runs[0], folder / "runs")
    weights = (first.folder.path / WEIGHTS).read_bytes()
    log = (first.folder.path / "log.jsonl").read_bytes()
    for run in runs[1:]:
        _finish(run, Store(folder / "runs").folder(run.id), first.counts, first.ends, weights, log)


def _finish(run: Run, folder: Folder, counts: Sequence[object], ends: Sequence[int], weights: bytes, log: bytes) -> None:
    claim(folder, run)
    folder.write("log.jsonl", log)
    folder.write(WEIGHTS, weights)
    write_result(run, folder, counts, ends, 1.0, CPU, "fp32", commit_of_package())  # type: ignore[arg-type]


def timed(folder: Path, *words: str) -> list[float]:
    """Seconds of each call, in order: the first finds nothing in the caches of ours."""
    seconds = []
    for _ in range(TIMES):
        begun = perf_counter()
        command = [sys.executable, "-m", "lengthlab", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        seconds.append(perf_counter() - begun)
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
    ):
        shutil.rmtree(folder / "runs" / "report", ignore_errors=True)
        print(" ".join(words), *(f"{seconds:.1f} s" for seconds in timed(folder, *words)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
