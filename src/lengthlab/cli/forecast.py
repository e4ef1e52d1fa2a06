"""How long runs will take on this machine, measured from a few steps of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.cli.progress import clock
from lengthlab.errors import LabError
from lengthlab.store import Store

if TYPE_CHECKING:
    from lengthlab.run import Run
    from lengthlab.training.pace import Pace


@dataclass(frozen=True)
class Forecast:
    """`seconds` until all runs are trained. `steps`: by run, the seconds of one of its last steps if it were alone."""

    seconds: float
    steps: Mapping[str, float]


def forecast(runs: Sequence[Run], device: str, done: Mapping[str, int] | None = None, precision: str | None = None) -> Forecast:
    """How long these runs will take; `done` tells, by id, how many steps of a run's schedule are behind it. Where training
    itself decides how long a phase lasts, it is taken to last as long as it may.

    Steps of the same model and batch with the same parts off take as long as each other: one of them is timed for all. Data
    of another task, another seed or another learning rate makes no difference to speak of.
    """
    from lengthlab.training.pace import paces

    left = [_left(run, (done or {}).get(run.id, 0)) for run in runs]
    ahead = [(run, number) for run, steps in zip(runs, left, strict=True) for number, some in enumerate(steps) if some]
    examples = {_kind(run, number): (run, number) for run, number in ahead}
    pace = dict(zip(examples, paces(list(examples.values()), device, precision), strict=True))
    stages = [
        [(some, pace[_kind(run, number)]) for number, some in enumerate(steps) if some]
        for run, steps in zip(runs, left, strict=True)
    ]
    unfinished = [run for run, steps in zip(runs, left, strict=True) if any(steps)]
    last = {run.id: pace[_kind(run, len(run.schedule.phases) - 1)].alone for run in unfinished}
    return Forecast(side_by_side(stages), last)


def side_by_side(stages: Sequence[Sequence[tuple[float, Pace]]]) -> float:
    """Seconds until runs are through that go on side by side, each by its stages of so many steps at a pace.

    A step of each takes what the machine needs for one of all, but no less than it would alone; the fewer there are left, the
    faster they go.
    """
    seconds, queues = 0.0, [list(each) for each in stages if each]
    while queues:
        share = sum(queue[0][1].among for queue in queues)
        times = [max(share, queue[0][1].alone) for queue in queues]
        until = min(queue[0][0] * time for queue, time in zip(queues, times, strict=True))
        seconds += until
        for queue, time in zip(queues, times, strict=True):
            steps, pace = queue[0]
            queue[0] = (steps - until / time, pace)
        queues = [rest for queue in queues if (rest := queue[queue[0][0] < 1e-6 :])]
    return seconds


def _kind(run: Run, phase: int) -> tuple[object, ...]:
    return (run.model, run.batch, run.lengths, run.schedule.phases[phase].off)


def _left(run: Run, done: int) -> list[int]:
    """Steps that each phase of a run still has before it."""
    return [max(0, end - max(start, done)) for start, end in zip([0, *run.ends], run.ends, strict=False)]


def steps_done(runs: Sequence[Run], store: str) -> dict[str, int]:
    """How many steps of their schedules the runs of a store have behind them, by id: made, or not needed."""
    done = {}
    for run in runs:
        try:
            log = Store(store).folder(run.id).read_log()
        except LabError:  # a foreign log is its own run's trouble, and the run will say so
            log = []
        done[run.id] = clock(log[-1]) if log else 0
    return done
