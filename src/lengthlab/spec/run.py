"""A run: everything that determines a result, as data. Same content, same id, same result."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import torch
from torch import nn

from lengthlab.errors import LabError, nearest, require, require_whole
from lengthlab.models import AnyModel
from lengthlab.models.attention.chunk_memory import has_chunk_memory
from lengthlab.models.attention.sharpening import check_sharpening
from lengthlab.models.attention.temperature import Temperature
from lengthlab.models.module import Module
from lengthlab.spec import content
from lengthlab.spec.blueprint import blueprint_of
from lengthlab.spec.hints import argument_hints, as_hinted, check_fields
from lengthlab.spec.optimizer import Adam, Optimizer
from lengthlab.spec.schedule import Mastered, Phase, Schedule
from lengthlab.spec.seeds import seed_for
from lengthlab.spec.slips import Slips
from lengthlab.spec.source import Sources
from lengthlab.store.ids import NOT_CONTENT, SHORT, around_seed, hash_around, hash_of
from lengthlab.switch import find, switch_for
from lengthlab.tasks import Mixture, Task

RESULTS = 2
"""Goes up with every change of the package that changes the result of a run, and so changes the id of every run."""


@dataclass(frozen=True)
class Run:
    """Train `model` on `task` with sequences of `lengths`, as `schedule` says.

    `evaluate` names the lengths to measure at afterwards, `label` what tables call the run instead of what differs between it
    and others. Neither is part of the id: measuring more, or calling it otherwise, never trains again.

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
    optimizer: Optimizer = field(default=Adam(), metadata={"added": "0.1"})
    label: str = field(default="", metadata={"added": "0.2"})

    def __post_init__(self) -> None:
        for name in ("lengths", "evaluate"):
            value: object = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) else value)
        paired = isinstance(self.lengths, tuple) and len(self.lengths) == 2
        require(paired, f"lengths must be [shortest, longest], not {self.lengths!r}")
        self._check_model()
        check_fields(self, "")
        if isinstance(self.model, Module):  # its arguments are of the types that its maker says
            hints = argument_hints(self.model.maker)
            exact = {name: as_hinted(value, hints.get(name, Any)) for name, value in self.model.arguments.items()}
            object.__setattr__(self, "model", replace(self.model, arguments=exact))
        object.__setattr__(self, "schedule", self.schedule.resolved(self.task.state))
        require_whole(self.batch, "batch", 1)
        require_whole(self.seed, "seed", 0)
        require(
            1 <= self.lengths[0] <= self.lengths[1],
            f"lengths must be [shortest, longest] with 1 <= shortest <= longest, not {list(self.lengths)}",
        )
        for length in (*self.lengths, *self.evaluate):
            self.task.check_length(length)
        for phase in self.schedule.phases:
            self._check_phase(phase, self.blueprint)
        self._check_temperatures(self.blueprint)

    def with_seed(self, seed: int) -> Run:
        """The same with another seed. What was checked is not checked again: a plan may have thousands of seeds.

        >>> import lengthlab as ll
        >>> run = ll.Run(ll.tasks.ModuloRecall(), ll.models.lstm(8), ll.end_to_end(5))
        >>> run.with_seed(3) == replace(run, seed=3), run.with_seed(3).id == replace(run, seed=3).id
        (True, True)
        """
        require_whole(seed, "seed", 0)
        shared = {"text_around_seed": self.text_around_seed, "measured_at": self.measured_at}
        other = object.__new__(Run)
        vars(other).update(vars(self) | shared | {"seed": seed, "as_data": self.as_data | {"seed": seed}})
        vars(other).pop("id", None)
        return other

    def _check_model(self) -> None:
        """A module is no data, and the commonest mistake."""
        if isinstance(self.model, nn.Module) or (isinstance(self.model, type) and issubclass(self.model, nn.Module)):
            name = getattr(self.model, "__name__", type(self.model).__name__)
            raise LabError(f"model is an nn.Module, and a run is data: write ll.models.module({name}, ...) with its arguments")

    def _check_phase(self, phase: Phase, blueprint: nn.Module) -> None:
        for question in phase.asks:
            known = ", ".join(self.task.questions)
            require(
                question in self.task.questions,
                f"the schedule asks '{question}', but task '{self.task.name}' asks only: {known}",
            )
        shortest, longest = phase.lengths or self.lengths
        fits = 1 <= shortest <= longest
        require(fits, f"a phase has lengths [shortest, longest] with 1 <= shortest <= longest, not {[shortest, longest]}")
        self.task.check_length(shortest)
        self.task.check_length(longest)
        asked = phase.asks or self.task.questions
        if phase.mixture or phase.mixture_lengths:
            require(isinstance(self.task, Mixture), f"a phase has a mixture, and task '{self.task.name}' is none")
        mixed = self.task_in(phase)
        if isinstance(mixed, Mixture):
            asked = tuple(question for question in asked if question in mixed.drawn)
            require(len(asked) > 0, f"a phase asks {', '.join(phase.asks)} alone, and no sample of it does: mind its mixture")
            self._check_parts_reach(mixed, (shortest, longest))
        enough = phase.distractors < self.batch
        require(enough, f"a batch of {self.batch} has not {phase.distractors} distractors for each sample: raise batch")
        if isinstance(phase.length, Mastered):
            self._check_mastered(phase.length, asked, longest)
        if phase.slips:
            self._check_mastered(phase.slips, asked, longest)
        self._check_parts(phase, blueprint)

    def _check_parts_reach(self, mixed: Mixture, usual: tuple[int, int]) -> None:
        """Every task of a mixture that is drawn has the lengths that it is trained on."""
        tasks = {task.name: task for task in mixed.tasks}
        for name, lengths in mixed.ranges(usual).items():
            for length in lengths:
                try:
                    tasks[name].check_length(length)
                except LabError as error:
                    raise LabError(
                        f"{error}; lengths of its own are given by task.lengths or a phase's mixture_lengths"
                    ) from None

    def _check_parts(self, phase: Phase, blueprint: nn.Module) -> None:
        """What is off is there, and so is what has a rate, one rate each, and what distractors are for."""
        rated: dict[str, str] = {}
        try:
            for part in phase.off:
                _found(blueprint, part)
            if phase.opens is not None:
                switch_for(phase.opens, blueprint)
            for part in phase.rated:
                for name in _found(blueprint, part):
                    require(name not in rated, f"'{rated.get(name)}' and '{part}' both give {name} a learning rate")
                    rated[name] = part
            remembers = not phase.distractors or has_chunk_memory(blueprint)
            require(remembers, "distractors stand in a memory of chunks, and it has none")
        except LabError as error:
            raise LabError(f"the schedule does not fit model '{self.model.name}': {error}") from None

    def _check_mastered(self, goal: Mastered | Slips, asked: tuple[str, ...], longest: int) -> None:
        known = ", ".join(asked)
        what = f"waits until '{goal.question}' is mastered" if isinstance(goal, Mastered) else f"watches '{goal.question}'"
        require(
            goal.question in asked,
            f"the schedule {what}, but task '{self.task.name}' is asked only: {known}",
        )
        try:
            self.task.check_length(goal.times * longest)
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
        """Hash of the content, `evaluate` and `label` left out."""
        before, after = self.text_around_seed
        return hash_around(before, self.seed, after)

    @cached_property
    def text_around_seed(self) -> tuple[str, str]:
        """What of the text that `id` is a hash of does not change with the seed."""
        return around_seed(self.as_data)

    @cached_property
    def settings(self) -> str:
        """The same for all runs that differ in their seed alone."""
        return hash_of(self.to_json(), without=(*NOT_CONTENT, "seed"), digits=SHORT)

    @property
    def title(self) -> str:
        """What it is, in a line of its own."""
        return f"{self.label or f'{self.model.name} {self.schedule.name}'} seed {self.seed}"

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

    def task_in(self, phase: Phase) -> Task:
        """The task with the shares and lengths that a phase gives its parts, where it is a mixture."""
        if not isinstance(self.task, Mixture):
            return self.task
        return self.task.weighted(phase.mixture, phase.mixture_lengths)

    @property
    def trained(self) -> tuple[int, int]:
        """The shortest and the longest length that some phase trains on; of a mixture, those of tasks that are measured."""
        asked = {task.name for task in self.task.asked_tasks} if isinstance(self.task, Mixture) else {""}
        return _around([lengths for name, lengths in self._ranges if name in asked] or [self.lengths])

    @property
    def drawn(self) -> tuple[int, int]:
        """The same of all that is drawn in training."""
        return _around([lengths for _, lengths in self._ranges])

    @property
    def _ranges(self) -> list[tuple[str, tuple[int, int]]]:
        """The lengths of each phase, by task in a mixture."""
        found: list[tuple[str, tuple[int, int]]] = []
        for phase in self.schedule.phases:
            task, usual = self.task_in(phase), phase.lengths or self.lengths
            found += task.ranges(usual).items() if isinstance(task, Mixture) else [("", usual)]
        return found

    @cached_property
    def measured_at(self) -> tuple[int, ...]:
        """`evaluate`, or 1, 2, 3 and 4 times the longest training length as far as the task reaches."""
        longest = self.trained[1]
        limit = self.task.longest or 4 * longest
        usual = [times * longest for times in (1, 2, 3, 4) if times * longest <= limit]
        return tuple(dict.fromkeys(self.evaluate or usual))

    @property
    def blueprint(self) -> nn.Module:
        """The network as shapes alone, to look at; its numbers take no memory."""
        return blueprint_of(self.model, self.task.vocabulary)

    def network(self) -> nn.Module:
        """A fresh network, with weights that the seed determines; the global random state is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("weights", self.seed))
            return self.model.build(self.task.vocabulary)

    def to_json(self) -> content.Json:
        """The content as plain data; a user's own files go along as text."""
        return dict(self.as_data)

    @cached_property
    def as_data(self) -> content.Json:
        """The same, made once for runs that differ in their seed: not to be changed."""
        sources = Sources()
        data = content.fields_to_json(self, sources)
        evaluate = data.pop("evaluate")
        return {"results": RESULTS, **data, "files": sources.texts(), "evaluate": evaluate}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """The run of that content."""
        try:
            made = f"made by another version of lengthlab (results {data['results']}, not {RESULTS})"
            require(data["results"] == RESULTS, f"{made}: use that one, or train it again")
            names = [each.name for each in fields(cls) if each.name in data or "added" not in each.metadata]
            return cls(**{name: content.from_json(data[name], data["files"]) for name in names})
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(f"not the content of a run: {type(error).__name__} {error}") from None


@lru_cache(maxsize=128)
def _found(blueprint: nn.Module, part: str) -> tuple[str, ...]:
    """The names of the modules that a part means."""
    return tuple(site.name for site in find(blueprint, part))


def _around(ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The least and the greatest of several ranges."""
    return min(shortest for shortest, _ in ranges), max(longest for _, longest in ranges)
