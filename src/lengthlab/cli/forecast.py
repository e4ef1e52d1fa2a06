"""How long runs will take on this machine, measured from a few steps of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING

from lengthlab.errors import LabError
from lengthlab.store import Store

if TYPE_CHECKING:
    import torch

    from lengthlab.run import Run

MOST_STEPS = 10
ENOUGH_SECONDS = 0.5
"""A kind of step is timed until one of the two is reached."""

Kind = tuple[object, ...]


def seconds_for(runs: Sequence[Run], device: str, done: Mapping[str, int] | None = None) -> float:
    """Seconds until all of these runs are trained; `done` tells, by id, how many steps of a run are behind it.

    Steps of the same model and batch with the same parts off take as long as each other: one of them is timed for all. Data
    of another task, another seed or another learning rate makes no difference.
    """
    from lengthlab.compute import device_named, settled
    from lengthlab.training.crew import default_workers

    place = device_named(device)
    pace: dict[Kind, float] = {}
    needed = []
    for run in runs:
        left = _left(run, (done or {}).get(run.id, 0))
        for number, steps in enumerate(left):
            kind = (run.model, run.batch, run.lengths, run.schedule.phases[number].off)
            if steps and kind not in pace:
                with settled(place):
                    pace[kind] = _seconds_per_step(run, number, place)
        paces = [pace.get((run.model, run.batch, run.lengths, phase.off), 0.0) for phase in run.schedule.phases]
        needed.append(sum(steps * seconds for steps, seconds in zip(left, paces, strict=True)))
    # So many at a time, but none is done before its own time is over.
    return max([sum(needed) / default_workers(device), *needed], default=0.0)


def _left(run: Run, done: int) -> list[int]:
    """Steps that each phase of a run still has before it."""
    ends = list(accumulate(phase.steps_at(run.batch) for phase in run.schedule.phases))
    return [max(0, end - max(start, done)) for start, end in zip([0, *ends], ends, strict=False)]


def _seconds_per_step(run: Run, phase: int, device: torch.device) -> float:
    """The first step warms up; it counts only where it alone takes long."""
    from lengthlab.training.trainee import Trainee

    trainee = Trainee(run, device)
    trainee.step = sum(earlier.steps_at(run.batch) for earlier in run.schedule.phases[:phase])
    start = perf_counter()
    trainee.advance()
    first = perf_counter() - start
    if first > ENOUGH_SECONDS:
        return first
    start, steps = perf_counter(), 0
    while steps < MOST_STEPS and perf_counter() - start < ENOUGH_SECONDS:
        trainee.advance()
        steps += 1
    return (perf_counter() - start) / steps


def steps_done(runs: Sequence[Run], store: str) -> dict[str, int]:
    """How many steps the runs of a store have behind them, by id."""
    done = {}
    for run in runs:
        try:
            log = Store(store).folder(run.id).read_log()
        except LabError:  # a foreign log is its own run's trouble, and the run will say so
            log = []
        done[run.id] = int(log[-1]["step"]) if log else 0
    return done
