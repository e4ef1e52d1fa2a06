"""How long a training step takes on this machine, measured from a few."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch

from lengthlab.device import device_named, settled
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule
from lengthlab.training.precision import Precision, precision_named
from lengthlab.training.state import TrainState
from lengthlab.training.stepper import GraphStepper

ENDLESS = 10**9
"""Steps: no timing reaches the end of a phase."""
MOST_STEPS = 10
ENOUGH_SECONDS = 0.5
"""A kind of step is timed until one of the two is reached."""
LONG_SECONDS = 5.0
"""A step that takes longer than this is not made twice."""


@dataclass(frozen=True)
class Pace:
    """Seconds of a step: of a run alone, and as its share of a machine that is full of runs."""

    alone: float
    among: float


def paces(phases: Sequence[tuple[Run, int]], device: str, precision: str | None = None) -> list[Pace]:
    """Of each run in the given phase, counted from 0.

    >>> from lengthlab import Run, end_to_end, models, tasks
    >>> run = Run(tasks.ModuloRecall(keys=8), models.lstm(width=8), end_to_end(5), lengths=(1, 2), batch=4)
    >>> 0 < paces([(run, 0)], "cpu")[0].among <= 60
    True
    """
    place = device_named(device)
    endless = [forever(run, run.schedule.phases[phase]) for run, phase in phases]
    chosen = precision_named(precision, place)
    with settled(place):
        if place.type == "cuda":
            found = _gpu_paces(endless, place, chosen)
            torch.cuda.empty_cache()  # whoever trains next is another process
            return found
        alone = [_seconds_per_step(TrainState(run, place, chosen)) for run in endless]
    at_once = (os.cpu_count() or 1) if place.type == "cpu" else 1
    return [Pace(seconds, seconds / at_once) for seconds in alone]


def forever(run: Run, phase: Phase) -> Run:
    """A run that is in this phase from its first step on, and for good."""
    return replace(run, schedule=Schedule("timed", (replace(phase, length=ENDLESS),)))


def _gpu_paces(runs: Sequence[Run], device: torch.device, precision: Precision) -> list[Pace]:
    """All at once if there is room for that; else, and where they cannot be captured, one by one."""
    states = [TrainState(run, device, precision, models=len(runs)) for run in runs]
    try:
        return _captured_paces([GraphStepper(state) for state in states])
    except torch.OutOfMemoryError:
        pass
    return [Pace(seconds, seconds) for seconds in map(_seconds_per_step, states)]


def _captured_paces(captured: Sequence[GraphStepper]) -> list[Pace]:
    """A turn of each alone, then a turn of all at once, which they share in proportion."""
    for each in captured:
        _turn([each])  # the first has the capture in it
    alone = [_turn([each]) for each in captured]
    share = len(captured) * _turn(captured) / max(sum(alone), 1e-9)
    return [Pace(seconds, seconds * share) for seconds in alone]


def _turn(captured: Sequence[GraphStepper]) -> float:
    """Seconds of a step of each, as if they came one after the other."""
    start, steps = perf_counter(), -sum(each.state.step for each in captured)
    for each in captured:
        each.start()
    for each in captured:
        each.finish()
    steps += sum(each.state.step for each in captured)
    return (perf_counter() - start) / steps


def _seconds_per_step(state: TrainState) -> float:
    """The first step warms up; it counts only where it alone takes long."""
    start = perf_counter()
    state.advance()
    first = perf_counter() - start
    if first > LONG_SECONDS:
        return first
    start, steps = perf_counter(), 0
    while steps < MOST_STEPS and perf_counter() - start < ENOUGH_SECONDS:
        state.advance()
        steps += 1
    return (perf_counter() - start) / steps
