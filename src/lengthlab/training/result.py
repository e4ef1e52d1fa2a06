"""What a finished run gives: counts by length, and the network to measure more with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import torch
from torch import nn

from lengthlab.device import AUTO, device_named, hardware, settled
from lengthlab.errors import LabError, refuse_exit, require
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.cores import cores
from lengthlab.evaluation.own_words import outcome_counts
from lengthlab.evaluation.pace import Watch
from lengthlab.evaluation.samples import USUAL, Samples, samples_at
from lengthlab.software import versions
from lengthlab.spec.run import Run
from lengthlab.spec.source import is_named
from lengthlab.store import Folder
from lengthlab.store.ids import NOT_CONTENT, hash_of, same_run
from lengthlab.store.rows import NO_RESULT, Count
from lengthlab.tasks import ALL, Task
from lengthlab.training.checkpoint import load_weights
from lengthlab.training.footprint import require_room_to_measure, streams_at_once
from lengthlab.training.portrait import portrait
from lengthlab.training.switches import switched

Chances = dict[str, float | dict[str, float]]
"""By question; by length, too, where it is not the same at every one."""


@dataclass(frozen=True)
class Result:
    """A finished run: `result.accuracy(length=75)`. A length that was not measured yet is measured then and kept."""

    run: Run
    folder: Folder
    counts: tuple[Count, ...]
    ends: tuple[int, ...]
    """After how many steps each phase was over."""

    def count(self, length: int, question: str = ALL) -> Count:
        known = {(count.length, count.question): count for count in self.counts}
        if question not in (*self.run.task.questions, *self.run.task.outcomes, ALL):
            raise LabError(f"task '{self.run.task.name}' has no question '{question}'")
        if (length, ALL) not in known:
            return measure(self.folder, [length]).count(length, question)
        require((length, question) in known, f"no sample of length {length} asks '{question}': its task was not drawn")
        return known[length, question]

    def accuracy(self, length: int, question: str = ALL) -> float:
        return self.count(length, question).accuracy

    def interval(self, length: int, question: str = ALL) -> tuple[float, float]:
        """Wilson, 95 %."""
        return self.count(length, question).interval

    def network(self) -> nn.Module:
        """The trained network, on the CPU; parts that are off in the last step are off."""
        network = self.run.network()
        load_weights(network, self.folder)
        last = len(self.run.schedule.phases) - 1
        made = self.ends[last] - (self.ends[last - 1] if last else 0)
        switched(network, self.run, last).go_to(made - 1)
        return network


def read_result(
    folder: Folder,
    trust: bool = False,
    known: Run | None = None,
    read: Callable[[Folder, str], dict[str, Any]] = Folder.read_json,
) -> Result:
    """A finished run, from its folder; with `trust`, code that lies in it is run where it is needed. `known`: the run, where
    the caller has it; then what the folder says of it is only compared. `read`: how its files are, where that is not as usual.
    """
    run = known if known and _holds(folder, known, read) else read_run(folder, trust)
    data = read(folder, "result.json")
    try:
        counts = tuple(Count.from_json(count) for count in data["counts"])
        return Result(run, folder, counts, tuple(int(end) for end in data.get("ends", run.ends)))
    except LabError as error:
        raise LabError(f"{folder.path / 'result.json'}: {error}; it is {NO_RESULT}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise LabError(f"{folder.path / 'result.json'} is {NO_RESULT}") from None


def claim(folder: Folder, run: Run) -> None:
    """Write down what the folder is for, before anything else; refuse one that somebody else's file is in."""
    content = run.to_json()
    kept = _content(folder) if (folder.path / "run.json").exists() else {}
    if any(kept.get(key) != content.get(key) for key in ("results", *NOT_CONTENT)):
        folder.write_json("run.json", content)


def read_run(folder: Folder, trust: bool = False) -> Run:
    """The run that a folder holds, checked to be the one it is named after before anything is made of it.

    A user's own files are in it as text. They are run only if this process has loaded the same text already, because
    whoever started it named the file, or with `trust`.
    """
    content = _content(folder)
    try:
        files = content["files"] if isinstance(content.get("files"), dict) else {}
        foreign = [file for file, text in files.items() if not trust and not is_named(file, str(text))]
        require(not foreign, f"this run needs {', '.join(foreign)}, code that lies in the folder: --trust (trust=True) runs it")
        return Run.from_json(content)
    except LabError as error:
        raise LabError(f"{folder.path}: {error}") from error.__cause__


def _holds(folder: Folder, run: Run, read: Callable[[Folder, str], dict[str, Any]]) -> bool:
    """Whether the folder is that of this run, and so is what lies in it."""
    return same_run(run.id, folder.id) and hash_of(read(folder, "run.json")) == run.id


def kept_result(folder: Folder, run: Run, read: Callable[[Folder, str], dict[str, Any]]) -> Result | None:
    """What a finished run came to, where it was measured wherever it asks; None where `measure` has something to do, or to say.
    Files are replaced whole, so that nobody has to be waited for.
    """
    try:
        result = read_result(folder, known=run, read=read) if folder.finished else None
    except (LabError, OSError):
        return None
    return result if result and not _missing(result, run.measured_at, USUAL) else None


def _missing(result: Result, lengths: Sequence[int], samples: int | Samples) -> list[int]:
    """The lengths at which it was not measured on so many samples."""
    task = result.run.task
    known = {count.length for count in result.counts if count.total >= samples_at(samples, task, count.length)}
    return [length for length in dict.fromkeys(lengths) if length not in known]


def _content(folder: Folder) -> dict[str, Any]:
    """`run.json`, checked to be that of the run which the folder is named after."""
    content = folder.read_json("run.json")
    run_id = hash_of(content)
    same = same_run(run_id, folder.id)
    require(same, f"{folder.path / 'run.json'} is the content of run {run_id}, not of this folder's: move it away")
    return content


def measure(
    folder: Folder,
    lengths: Sequence[int],
    device: str = AUTO,
    samples: int | Samples = USUAL,
    trust: bool = False,
    watch: Watch | None = None,
    run: Run | None = None,
) -> Result:
    """A finished run at these lengths too; what was measured before on as many samples is not measured again. `run`: what
    it is, where the caller has it: to make it anew takes longer than to read what it came to.
    """
    with folder.lock(), refuse_exit():
        if not folder.finished:
            raise LabError(f"run {folder.id} is not finished: train it first")
        result = read_result(folder, trust, run)
        place = device_named(device)
        for length in lengths:
            result.run.task.check_length(length)
        require_room_to_measure(result.run, lengths)
        task = result.run.task
        missing = _missing(result, lengths, samples)
        if not missing:
            return result
        for length, fresh in counted(result, task, missing, place, samples, watch):
            # Kept one by one: a kill loses one at the most.
            result = _with(result, length, fresh)
        return result


def _with(result: Result, length: int, fresh: Sequence[Count]) -> Result:
    """The result with what was measured at a length, in its file, too."""
    kept = [count for count in result.counts if count.length != length]
    counts = tuple(sorted([*kept, *fresh], key=lambda count: count.length))
    chances = chances_of(result.run.task, [count.length for count in counts])
    made = {"counts": [count.to_json() for count in counts], "chance": chances}
    result.folder.write_json("result.json", result.folder.read_json("result.json") | made)
    return replace(result, counts=counts)


def counted(
    result: Result, task: Task, lengths: Sequence[int], place: torch.device, samples: int | Samples, watch: Watch | None
) -> Iterator[tuple[int, list[Count]]]:
    """What the network of a run says to a task, length by length."""
    with settled(place):
        at_once = streams_at_once(result.run, lengths, cores(place))
        network, *copies = [result.network().to(place) for _ in range(at_once)]
        for length in lengths:
            counts = accuracy(network, task, [length], samples, copies=copies, watch=watch)
            yield length, counts + outcome_counts(network, task, [length])


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
            "lengths": list(run.trained),
            "steps": ends[-1],
            "ends": list(ends),
            "batch": run.batch,
            "chance": chances_of(run.task, [count.length for count in counts]),
            "counts": [count.to_json() for count in counts],
            "seconds": round(seconds, 1),
            "hardware": hardware(device),
            "precision": precision,
            "commit": commit,
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "portrait": portrait(run),
        },
    )


def chances_of(task: Task, lengths: Sequence[int]) -> Chances:
    """By question; by length, too, where it is not the same at every one."""
    at = {length: task.chances(length) for length in dict.fromkeys(lengths)}
    found: Chances = {}
    for question in next(iter(at.values()), {}):
        values = {str(length): chance[question] for length, chance in at.items()}
        found[question] = next(iter(values.values())) if len(set(values.values())) == 1 else values
    return found
