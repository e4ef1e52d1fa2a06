"""How long runs will take on this machine, measured from a few steps of each kind."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lengthlab.spec.run import Run
from lengthlab.store import Store
from lengthlab.store.ids import NOT_CONTENT, hash_of
from lengthlab.store.log import FILE, Tail
from lengthlab.store.phases import phases_in
from lengthlab.training.pace import Pace, paces


@dataclass(frozen=True)
class Forecast:
    """`seconds` until all runs are trained. `steps`: by run, the seconds of one of its last steps if it were alone."""

    seconds: float
    steps: Mapping[str, float]


def forecast(runs: Sequence[Run], device: str, done: Mapping[str, int] | None = None, precision: str | None = None) -> Forecast:
    """How long these runs will take; `done` tells, by id, how many steps of a run's schedule are behind it. Where training
    itself decides how long a phase lasts, it is taken to last as long as it may.

    Steps of the same model on the same task, lengths and batch, with the same parts off and the same questions asked, take as
    long as each other: one of them is timed for all. Another seed or another learning rate makes no difference to speak of.
    """
    left = [phases_in(run.to_json()).left((done or {}).get(run.id, 0)) for run in runs]
    kinds = [kinds_of(run) for run in runs]
    examples = {
        kind: (run, number)
        for run, steps, own in zip(runs, left, kinds, strict=True)
        for number, (some, kind) in enumerate(zip(steps, own, strict=True))
        if some
    }
    pace = dict(zip(examples, paces(list(examples.values()), device, precision), strict=True))
    stages = [
        [(some, pace[kind]) for some, kind in zip(steps, own, strict=True) if some]
        for steps, own in zip(left, kinds, strict=True)
    ]
    last = {run.id: stage[-1][1].alone for run, stage in zip(runs, stages, strict=True) if stage}
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


def kinds_of(run: Run) -> list[str]:
    """By phase; the same where steps take as long: all of the content but the seed, the rates and how many there are."""
    content = run.to_json()
    rest = hash_of(content, without=(*NOT_CONTENT, "seed", "schedule"))
    return [rest + phase.kind for phase in phases_in(content).every]


def steps_done(runs: Sequence[Run], store: str | os.PathLike[str]) -> dict[str, int]:
    """How many steps of their schedules the runs of a store have behind them, by id: made, or not needed."""
    done = {}
    for run in runs:
        tail = Tail(Store(store).folder(run.id).path / FILE)
        tail.read()
        done[run.id] = tail.summary.last.clock if tail.summary.last else 0
    return done
