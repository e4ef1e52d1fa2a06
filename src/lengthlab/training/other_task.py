"""A finished run, measured on another task than the one that it was trained on: one task of its mixture alone, or its own task
made with other values. Nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lengthlab.device import AUTO, device_named
from lengthlab.errors import LabError, nearest, refuse_exit, require
from lengthlab.evaluation.pace import Watch
from lengthlab.evaluation.samples import USUAL, Samples
from lengthlab.spec.toml import made_otherwise
from lengthlab.store import Folder
from lengthlab.store.rows import Count
from lengthlab.tasks import Mixture, Task
from lengthlab.training.footprint import require_room_to_measure
from lengthlab.training.result import Chances, chances_of, counted, read_result


@dataclass(frozen=True)
class OtherResult:
    """Counts of that task, and how often a guess is right, by question."""

    counts: tuple[Count, ...]
    chance: Chances


def measure_on(
    folder: Folder,
    other: Callable[[Task], Task],
    lengths: Sequence[int],
    device: str = AUTO,
    samples: int | Samples = USUAL,
    trust: bool = False,
    watch: Watch | None = None,
) -> OtherResult:
    """A finished run at these lengths, on samples of another task, which is made of its own."""
    with folder.lock(), refuse_exit():
        require(folder.finished, f"run {folder.id} is not finished: train it first")
        result = read_result(folder, trust)
        task = other(result.run.task)
        result = replace(result, run=replace(result.run, task=task))  # so that its own samples have room
        place = device_named(device)
        for length in lengths:
            task.check_length(length)
        require_room_to_measure(result.run, lengths)
        measured = counted(result, task, list(dict.fromkeys(lengths)), place, samples, watch)
        counts = tuple(count for _, found in measured for count in found)
        chances = chances_of(task, [count.length for count in counts])
        asked = {count.question for count in counts}
        return OtherResult(counts, {question: chance for question, chance in chances.items() if question in asked})


def part_of(task: Task, name: str, whose: str) -> Mixture:
    """One task of a mixture in its words; refused where there is none.

    >>> from lengthlab.tasks import modulo, recall
    >>> part_of(Mixture((modulo(), recall())), "recal", "run 1")
    Traceback (most recent call last):
    lengthlab.errors.LabError: the mixture of run 1 has no task 'recal'; did you mean 'recall'?
    """
    if not isinstance(task, Mixture):
        raise LabError(f"{whose} is of task '{task.name}', which is no mixture and has no parts")
    names = [each.name for each in task.tasks]
    require(name in names, f"the mixture of {whose} has no task '{name}'; {nearest(name, names)}")
    return task.alone(name)


def made_with(task: Task, choices: Sequence[str], whose: str) -> Task:
    """The same task with other values of its fields, which leave its words as they are: a model knows no others.

    >>> from lengthlab.tasks import Passkey
    >>> made_with(Passkey(), ["place=0.5"], "run 1").place
    0.5
    >>> made_with(Passkey(), ["values=12"], "run 1")
    Traceback (most recent call last):
    lengthlab.errors.LabError: with values=12 the task would have other words than run 1 was trained on
    """
    other: Task = made_otherwise(task, choices)
    told = ", ".join(choices)
    require(other.words == task.words, f"with {told} the task would have other words than {whose} was trained on")
    return other
