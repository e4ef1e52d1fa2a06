"""Memory over many runs in one process: `python tests/memory.py [RUNS]`, by hand.

Runs that are all different (tasks, models, schedules with and without delay, widths, seeds) are trained and measured one after
another. After every one, the memory of the process; in the end, which networks and tensors are still there. The slope is that
of a straight line through what comes after the first tenth.
"""

from __future__ import annotations

import gc
import sys
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

import lengthlab as ll
from lengthlab.spec.run import Run

TASKS = (ll.tasks.ModuloRecall(modulus=2, values=4, keys=12), ll.tasks.Parity(), ll.tasks.Mqar(keys=16), ll.tasks.Addition())
MODELS = (
    ll.models.transformer,
    ll.models.lstm,
    ll.models.attention_on_lstm,
    ll.models.hybrid_block,
    ll.models.parallel_branches,
)
DELAYING = MODELS[2:]
"""Those that have attention, and something beside it."""
SCHEDULES = (ll.end_to_end(12), ll.delayed(6, 6, asks=()), ll.delayed(4, 4, 4, asks=()))


def different_runs(number: int) -> list[Run]:
    """No two are the same; in an order that has small and large ones everywhere."""
    kinds = [each for each in product(TASKS, MODELS, SCHEDULES) if each[2] is SCHEDULES[0] or each[1] in DELAYING]
    widths = [16 * (1 + place % 5) for place in range(len(kinds))]
    runs = [
        Run(task, model(widths[(place + turn) % len(widths)]), schedule, (1, 4), 4, 100 + turn, evaluate=(4, 8))
        for turn in range(1 + number // len(kinds))
        for place, (task, model, schedule) in enumerate(kinds)
    ]
    return Random(0).sample(runs[:number], number)


def resident() -> int:
    """Bytes of this process that lie in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def alive() -> dict[str, int]:
    """What nobody has any more is not counted: it would have gone by itself."""
    gc.collect()
    every = gc.get_objects()
    tensors = [each for each in every if issubclass(type(each), torch.Tensor) and not each.is_meta]
    networks = [
        each for each in every if issubclass(type(each), nn.Module) and any(not own.is_meta for own in each.parameters())
    ]
    return {"modules with numbers": len(networks), "bytes of tensors": sum(each.nbytes for each in tensors)}


def main(number: int) -> None:
    seen = []
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as store:
        for run in different_runs(number):
            ll.train(run, store, "cpu", progress=False)
            seen.append(resident() / 2**20)
            print(f"{len(seen):4} {seen[-1]:7.1f} MiB  {run.task.name} {run.title}", flush=True)
    first = number // 10
    slope = np.polyfit(np.arange(first, number), seen[first:], 1)[0]
    print(f"from run {first} on: {1024 * slope:+.1f} KiB a run, {seen[first]:.1f} to {seen[-1]:.1f} MiB; left: {alive()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
