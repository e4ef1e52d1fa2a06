"""How long training will take, told before it begins where that is long, with what would be shorter.

Nothing is timed of runs that are small by any reckoning.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from lengthlab.evaluation.samples import USUAL
from lengthlab.inspection.draws import tokens_of
from lengthlab.inspection.subject import count_parameters
from lengthlab.models.model import Network
from lengthlab.spec.run import Run
from lengthlab.store.phases import phases_in
from lengthlab.store.status import duration
from lengthlab.training.forecast import forecast, steps_done

LONG_SECONDS = 600.0
"""Ten minutes: below that nobody is told anything, and what is reckoned to take less is not even timed."""
STEP_SECONDS = {"cpu": 0.02, "cuda": 0.002}
FLOPS = {"cpu": 5e9, "cuda": 1e13}
"""A step takes this long even if it computes nothing; what it computes, at this many operations a second. On two slow cores
that is 1.2 to 3 times what steps of ours take.
"""
OWN = 5.0
"""So many times as long may steps of a user's own model take: a loop over tokens in Python, say."""


def outlook(runs: Sequence[Run], store: str | os.PathLike[str], device: str, precision: str | None = None) -> str:
    """A sentence where the runs will take more than ten minutes, else nothing.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=8), ll.models.lstm(width=8), ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> outlook([run], "runs", "cpu")
    ''
    """
    done = steps_done(runs, store)
    if sum(reckoned_seconds(run, device, done[run.id]) for run in runs) / _at_once(runs, device) < LONG_SECONDS:
        return ""
    ahead = forecast(runs, device, done, precision)
    measured = sum(_measuring(run, ahead.steps[run.id]) for run in runs if run.id in ahead.steps) if device == "cpu" else 0.0
    seconds = ahead.seconds + measured / (os.cpu_count() or 1)
    if seconds < LONG_SECONDS:
        return ""
    at_most = " at most" if any(phases_in(run.to_json()).open_ended(done[run.id]) for run in runs) else ""
    what = "This run takes" if len(runs) == 1 else f"These {len(runs)} runs take"
    shorter = "; ".join(_shorter(runs, seconds, measured, device))
    return f"{what} about {duration(seconds)}{at_most} on {device}, going by a few steps of each kind. Shorter: {shorter}"


def reckoned_seconds(run: Run, device: str, done: int = 0) -> float:
    """A rough guess of a run's training time from its sizes: three times two operations for each weight and token."""
    kind = "cuda" if device.startswith("cuda") else "cpu"
    computed = 6 * count_parameters(run.blueprint) * _step_tokens(run) / FLOPS[kind]
    own = 1.0 if isinstance(run.blueprint, Network) else OWN
    return max(0, run.steps - done) * own * (STEP_SECONDS[kind] + computed)


def _step_tokens(run: Run) -> float:
    shortest, longest = (tokens_of(run.task, length) for length in run.drawn)
    return run.batch * (shortest + longest) / 2


def _at_once(runs: Sequence[Run], device: str) -> int:
    return min(len(runs), os.cpu_count() or 1) if device == "cpu" else 1


def _measuring(run: Run, step: float) -> float:
    """Seconds of one core for the forwards at all lengths: a third of what a step takes for as many tokens."""
    tokens = sum(USUAL.at(run.task, length) * tokens_of(run.task, length) for length in run.measured_at)
    return step / 3 * tokens / _step_tokens(run)


def _shorter(runs: Sequence[Run], seconds: float, measured: float, device: str) -> list[str]:
    """What would take less, as far as these runs have it."""
    seeds, settings = len({run.seed for run in runs}), len({run.settings for run in runs})
    widths = sorted({width for run in runs if isinstance(width := getattr(run.model, "width", None), int)})
    said = [f"half the steps ({duration(seconds / 2)})"]
    if seeds > 1:
        said.append(f"one seed of {seeds} ({duration(seconds / seeds)})")
    if settings > 1:
        said.append(f"fewer than {settings} settings")
    if widths and widths[-1] > 64:
        said.append(f"a width below {widths[-1]}")
    if measured > seconds / 5:
        said.append("fewer or shorter lengths to measure (evaluate)")
    if not device.startswith("cuda"):
        said.append("a GPU (device cuda)")
    return said
