"""The parts of the bench: which cases are timed, and in which ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import torch

from lengthlab.bench.case import Case, first, joint
from lengthlab.bench.floor import flops_of
from lengthlab.bench.guard import guard_costs
from lengthlab.bench.measurement import PARTS, Measurement
from lengthlab.bench.reading import reading_costs
from lengthlab.bench.stopwatch import Patience, Trainer, paces
from lengthlab.errors import require
from lengthlab.spec.run import Run
from lengthlab.tasks import ModuloRecall

MODEL = "attention-on-lstm"
"""The one that stands for all where number, length or precision of runs is varied."""
NUMBERS = (1, 2, 4, 8, 16, 26)
LENGTHS = (25, 50, 100, 200)


class Machine(Protocol):
    """Where models are trained, and in which ways."""

    @property
    def textbooks(self) -> tuple[str, ...]: ...

    @property
    def engine(self) -> str: ...

    @property
    def exact(self) -> tuple[str, ...]:
        """Other settings of the engine, timed with `MODEL` alone."""

    @property
    def device(self) -> torch.device: ...

    def train(self, way: str, cases: Sequence[Case]) -> AbstractContextManager[Trainer]:
        """These cases side by side."""

    def memory(self) -> int:
        """The peak of what is trained now, in bytes."""

    def close(self) -> None: ...


class Bench:
    """Times the cases of a suite of runs. `say` hears what is timed next."""

    def __init__(self, machine: Machine, runs: Sequence[Run], patience: Patience, say: Callable[[str], None]) -> None:
        self.machine, self.runs, self.patience, self.say = machine, list(runs), patience, say
        self._alone: dict[object, tuple[tuple[float, ...], int]] = {}

    def measure(self, part: str) -> list[Measurement]:
        """All measurements of a part. The floor has none of its own."""
        parts = {"one": self._one, "suite": self._suite, "runs": self._runs, "lengths": self._lengths, "guard": self._guard}
        parts["reading"] = self._reading
        return list(parts[part]()) if part in parts else []

    def _one(self) -> Iterator[Measurement]:
        for name in dict.fromkeys(run.model.name for run in self.runs):
            case = joint(self._run_of(name))
            yield from self._both("one", name, [case])
            if name == MODEL:
                yield from (self._together("one", name, way, [case]) for way in self.machine.exact)

    def _suite(self) -> Iterator[Measurement]:
        yield from self._both("suite", f"{len(self.runs)} cells, all parts on", [joint(run) for run in self.runs])
        delayed = [first(run) for run in self.runs if first(run).off]
        if delayed:
            yield from self._both("suite", f"{len(delayed)} delayed hybrids, attention off", delayed)

    def _runs(self) -> Iterator[Measurement]:
        run = self._run_of(MODEL)
        for number in NUMBERS:
            cases = [joint(replace(run, seed=seed)) for seed in range(number)]
            yield from self._both("runs", f"{number} run{'s' if number > 1 else ''}", cases)

    def _lengths(self) -> Iterator[Measurement]:
        run = self._run_of(MODEL)
        assert isinstance(run.task, ModuloRecall)
        # As many keys for all, so that the vocabulary is the same.
        task = replace(run.task, keys=max(run.task.keys, *LENGTHS))
        for longest in LENGTHS:
            case = joint(replace(run, task=task, lengths=(1, longest), evaluate=()))
            yield from self._both("lengths", f"n = 1…{longest}", [case])

    def _guard(self) -> Iterator[Measurement]:
        self.say("the guard on what is off")
        yield from guard_costs(self.patience)

    def _reading(self) -> Iterator[Measurement]:
        yield from reading_costs(self.machine.device, self.say)

    def _run_of(self, name: str) -> Run:
        """The run of that architecture that is asked most, and has no phase with a part off if there is such a run."""
        found = [run for run in self.runs if run.model.name == name]
        require(len(found) > 0, f"no run of '{name}' to time")
        return max(found, key=lambda run: (len(run.task.questions), not run.schedule.phases[0].off))

    def _both(self, part: str, label: str, cases: Sequence[Case]) -> Iterator[Measurement]:
        """The textbook's ways, then the engine's."""
        yield from (self._in_turn(part, label, way, cases) for way in self.machine.textbooks)
        yield self._together(part, label, self.machine.engine, cases)

    def _in_turn(self, part: str, label: str, way: str, cases: Sequence[Case]) -> Measurement:
        """One model after the other; cases of one kind are timed once."""
        alone = [self._timed_alone(way, case) for case in cases]
        seconds = tuple(map(sum, zip(*(each for each, _ in alone), strict=True)))
        return _measurement(part, label, way, cases, seconds, max(memory for _, memory in alone))

    def _timed_alone(self, way: str, case: Case) -> tuple[tuple[float, ...], int]:
        key = (way, case.kind)
        if key not in self._alone:
            off = ", attention off" if case.off else ""
            self.say(f"{way}: {case.shape.kind}, {case.task.name}, n = 1…{case.run.lengths[1]}{off}")
            self._alone[key] = self._timed(way, [case])
        return self._alone[key]

    def _together(self, part: str, label: str, way: str, cases: Sequence[Case]) -> Measurement:
        self.say(f"{way}: {PARTS[part].lower()}, {label}")
        return _measurement(part, label, way, cases, *self._timed(way, cases))

    def _timed(self, way: str, cases: Sequence[Case]) -> tuple[tuple[float, ...], int]:
        with self.machine.train(way, cases) as trainer:
            return paces(trainer, self.patience), self.machine.memory()


def _measurement(
    part: str, label: str, way: str, cases: Sequence[Case], seconds: tuple[float, ...], memory: int
) -> Measurement:
    samples, needed = sum(case.run.batch for case in cases), sum(map(flops_of, cases))
    return Measurement(part, label, way, len(cases), samples, needed, seconds, memory)
