"""A run: everything that determines a result, as data. Same content, same id, same result."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import accumulate
from typing import Any, cast

import torch
from torch import nn

from lengthlab import content
from lengthlab.adam import Adam
from lengthlab.errors import LabError, explain, nearest, require
from lengthlab.models import AnyModel
from lengthlab.models.sharpening import check_sharpening
from lengthlab.models.temperature import Temperature
from lengthlab.schedule import Mastered, Phase, Schedule
from lengthlab.seeds import seed_for
from lengthlab.switch import find
from lengthlab.tasks import Task

RESULTS = 2
"""Goes up with every change of the package that changes the result of a run, and so changes the id of every run."""


@dataclass(frozen=True)
class Run:
    """Train `model` on `task` with sequences of `lengths`, as `schedule` says.

    `evaluate` names the lengths to measure at afterwards. It is not part of the id: measuring more never trains again.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=32), ll.models.lstm(width=16), ll.end_to_end(100), lengths=(1, 10), batch=8)
    >>> Run.from_json(run.to_json()) == run
    True
    """

    task: Task
    model: AnyModel
    schedule: Schedule
    lengths: tuple[int, int] = (1, 25)
    batch: int = 256
    seed: int = 0
    evaluate: tuple[int, ...] = ()
    optimizer: Adam = Adam()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))
        object.__setattr__(self, "evaluate", tuple(self.evaluate))
        require(self.batch >= 1, f"batch must be at least 1, not {self.batch}")
        require(self.seed >= 0, f"seed must be at least 0, not {self.seed}")
        require(
            len(self.lengths) == 2 and 1 <= self.lengths[0] <= self.lengths[1],
            f"lengths must be [shortest, longest] with 1 <= shortest <= longest, not {list(self.lengths)}",
        )
        for length in (*self.lengths, *self.evaluate):
            self.task.check_length(length)
        blueprint = _blueprint_of(self.model, self.task.vocabulary)
        for phase in self.schedule.phases:
            self._check_phase(phase, blueprint)
        self._check_temperatures(blueprint)

    def _check_phase(self, phase: Phase, blueprint: nn.Module) -> None:
        for question in phase.asks:
            known = ", ".join(self.task.questions)
            require(
                question in self.task.questions,
                f"the schedule asks '{question}', but task '{self.task.name}' asks only: {known}",
            )
        if isinstance(phase.length, Mastered):
            self._check_mastered(phase.length, phase.asks or self.task.questions)
        for part in (*phase.off, *(name for name in phase.rates if name != "rest")):
            try:
                find(blueprint, part)
            except LabError as error:
                raise LabError(f"the schedule does not fit model '{self.model.name}': {error}") from None

    def _check_mastered(self, goal: Mastered, asked: tuple[str, ...]) -> None:
        known = ", ".join(asked)
        require(
            goal.question in asked,
            f"the schedule waits until '{goal.question}' is mastered, but task '{self.task.name}' is asked only: {known}",
        )
        try:
            self.task.check_length(goal.times * self.lengths[1])
        except LabError as error:
            raise LabError(f"the schedule looks at {goal.times} times the longest length: {error}") from None

    def _check_temperatures(self, blueprint: nn.Module) -> None:
        """What is fitted after training has to be right before it."""
        waiting = {part.made_of for part in blueprint.modules() if isinstance(part, Temperature) and part.waits}
        require(len(waiting) <= 1, "adaptive temperatures that are fitted after training are to be the same in all attention")
        for temperature in waiting:
            question, asked = temperature.question, self.task.questions
            known = question in asked
            require(known, f"scores.question: task '{self.task.name}' has no question '{question}'; {nearest(question, asked)}")
            check_sharpening(blueprint)

    @cached_property
    def id(self) -> str:
        """Hash of the content, `evaluate` left out."""
        return self._hash_without("evaluate")

    @cached_property
    def settings(self) -> str:
        """The same for all runs that differ in their seed alone."""
        return self._hash_without("evaluate", "seed")

    def _hash_without(self, *keys: str) -> str:
        data = {key: value for key, value in self.to_json().items() if key not in keys}
        return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        return f"{self.model.name} {self.schedule.name} seed {self.seed}"

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """After how many steps each phase is over; at most, where training itself decides."""
        return tuple(accumulate(phase.steps_at(self.batch) for phase in self.schedule.phases))

    @property
    def steps(self) -> int:
        """All of them; at most, where training itself decides."""
        return self.ends[-1]

    def phase_at(self, clock: int) -> int:
        """Which phase a step of the schedule (counted from 0) belongs to; the number of phases once all are over."""
        return bisect_right(self.ends, clock)

    @property
    def measured_at(self) -> tuple[int, ...]:
        """`evaluate`, or 1, 2, 3 and 4 times the longest training length as far as the task reaches."""
        longest = self.lengths[1]
        limit = self.task.longest or 4 * longest
        usual = [times * longest for times in (1, 2, 3, 4) if times * longest <= limit]
        return tuple(dict.fromkeys(self.evaluate or usual))

    def network(self) -> nn.Module:
        """A fresh network, with weights that the seed determines; the global random state is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("weights", self.seed))
            return self.model.build(self.task.vocabulary)

    def to_json(self) -> content.Json:
        """The content as plain data; a user's own files go along as text."""
        files: content.Files = {}
        parts = {name: content.to_json(getattr(self, name), files) for name in ("task", "model", "schedule")}
        numbers = {"lengths": list(self.lengths), "batch": self.batch, "seed": self.seed}
        # Left out where it is the usual one: runs keep the id that they had before there was a choice.
        chosen = {} if self.optimizer == Adam() else {"optimizer": content.to_json(self.optimizer, files)}
        return {"results": RESULTS, **parts, **numbers, **chosen, "files": files, "evaluate": list(self.evaluate)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """The run of that content."""
        try:
            require(data["results"] == RESULTS, f"made by a version of the package with other results ({data['results']})")
            parts = {name: content.from_json(data[name], data["files"]) for name in ("task", "model", "schedule")}
            optimizer = content.from_json(data["optimizer"], data["files"]) if "optimizer" in data else Adam()
            _check_kinds(**parts, optimizer=optimizer)
            numbers = {name: data[name] for name in ("lengths", "batch", "seed", "evaluate")}
            return cls(**parts, **numbers, optimizer=optimizer)
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(f"not the content of a run: {type(error).__name__} {error}") from None


def _check_kinds(task: object, model: object, schedule: object, optimizer: object) -> None:
    require(isinstance(task, Task), f"not the content of a run: a task cannot be {task!r}")
    require(hasattr(model, "build") and hasattr(model, "name"), f"not the content of a run: a model cannot be {model!r}")
    require(isinstance(schedule, Schedule), f"not the content of a run: a schedule cannot be {schedule!r}")
    require(isinstance(optimizer, Adam), f"not the content of a run: an optimizer cannot be {optimizer!r}")


def _blueprint_of(model: Any, vocabulary: int) -> nn.Module:
    """A network to check names and sizes by, before anything is written."""
    try:
        hash(model)
    except TypeError:  # a model with a dict among its fields cannot be looked up
        return _blueprint.__wrapped__(model, vocabulary)
    return _blueprint(cast(Hashable, model), vocabulary)


@lru_cache(maxsize=128)
def _blueprint(model: Any, vocabulary: int) -> nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            network: nn.Module = model.build(vocabulary).to("meta")  # its names are kept, its numbers take no memory
    except Exception as error:
        raise LabError(f"model '{model.name}' cannot be built: {explain(error)}") from error
    return network
