"""What a finished run gives: counts by length, and the network to measure more with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import torch
from torch import nn

from lengthlab.compute import device_named, hardware, settled
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import SAMPLES, Count, accuracy
from lengthlab.run import Run
from lengthlab.software import versions
from lengthlab.store import Folder
from lengthlab.switch import Delay, find
from lengthlab.training.checkpoint import load_weights


@dataclass(frozen=True)
class Result:
    """A finished run: `result.accuracy(length=75)`. A length that was not measured yet is measured then and kept."""

    run: Run
    folder: Folder
    counts: tuple[Count, ...]
    ends: tuple[int, ...]
    """After how many steps each phase was over."""

    def count(self, length: int, question: str = "both") -> Count:
        known = {(count.length, count.question): count for count in self.counts}
        if question not in (*self.run.task.questions, "both"):
            raise LabError(f"task '{self.run.task.name}' has no question '{question}'")
        if (length, question) not in known:
            return measure(self.folder, [length]).count(length, question)
        return known[length, question]

    def accuracy(self, length: int, question: str = "both") -> float:
        return self.count(length, question).accuracy

    def interval(self, length: int, question: str = "both") -> tuple[float, float]:
        """Wilson, 95 %."""
        return self.count(length, question).interval

    def network(self) -> nn.Module:
        """The trained network, on the CPU; parts that are off in the last phase are off."""
        network = self.run.network()
        load_weights(network, self.folder)
        Delay(find(network, *self.run.schedule.phases[-1].off)).close()
        return network


def read_result(folder: Folder) -> Result:
    """A finished run, from its folder."""
    run = read_run(folder)
    data = folder.read_json("result.json")
    try:
        counts = tuple(Count(**count) for count in data["counts"])
        return Result(run, folder, counts, tuple(int(end) for end in data.get("ends", run.ends)))
    except (KeyError, TypeError, ValueError):
        raise LabError(f"{folder.path / 'result.json'} is not the result of a run: move it away") from None


def claim(folder: Folder, run: Run) -> None:
    """Write down what the folder is for, before anything else; refuse one that somebody else's file is in."""
    if not (folder.path / "run.json").exists() or read_run(folder).evaluate != run.evaluate:
        folder.write_json("run.json", run.to_json())


def read_run(folder: Folder) -> Run:
    """The run that a folder holds, checked to be the one it is named after."""
    try:
        run = Run.from_json(folder.read_json("run.json"))
    except LabError as error:
        raise LabError(f"{folder.path}: {error}") from None
    if run.id != folder.id:
        raise LabError(f"{folder.path / 'run.json'} is the content of run {run.id}, not of this folder's: move it away")
    return run


def measure(folder: Folder, lengths: Sequence[int], device: str = "cpu", samples: int = SAMPLES) -> Result:
    """A finished run at these lengths too; what was measured before on as many samples is not measured again."""
    with folder.lock():
        if not folder.finished:
            raise LabError(f"run {folder.id} is not finished: train it first")
        result = read_result(folder)
        for length in lengths:
            result.run.task.check_length(length)
        known = {count.length for count in result.counts if count.total >= samples}
        missing = [length for length in dict.fromkeys(lengths) if length not in known]
        if not missing:
            return result
        place = device_named(device)
        with settled(place, threads=os.cpu_count() or 1):
            fresh = accuracy(result.network().to(place), result.run.task, missing, samples)
        kept = [count for count in result.counts if count.length not in missing]
        counts = sorted([*kept, *fresh], key=lambda count: count.length)
        data = folder.read_json("result.json") | {"counts": [count.to_json() for count in counts]}
        folder.write_json("result.json", data)
        return replace(result, counts=tuple(counts))


def write_result(
    run: Run,
    folder: Folder,
    counts: Sequence[Count],
    ends: Sequence[int],
    seconds: float,
    device: torch.device,
    precision: str,
    commit: str,
) -> None:
    """The last file of a run. It repeats the names that tables need, so that a report reads this file alone."""
    folder.write_json(
        "result.json",
        {
            "run": run.id,
            "model": run.model.name,
            "task": run.task.name,
            "training": run.schedule.name,
            "seed": run.seed,
            "settings": run.settings,
            "lengths": list(run.lengths),
            "steps": ends[-1],
            "ends": list(ends),
            "batch": run.batch,
            "chance": dict(run.task.chance),
            "counts": [count.to_json() for count in counts],
            "seconds": round(seconds, 1),
            "hardware": hardware(device),
            "precision": precision,
            "commit": commit,
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
