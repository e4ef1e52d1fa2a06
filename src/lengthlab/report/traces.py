"""How the training of a run went: how long it took, when everything was on, when everything asked was learned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError
from lengthlab.store.ids import known_as
from lengthlab.text_file import Missing, read_text

FILE = "traces.jsonl"
OLD_FILE = "courses.jsonl"
"""Of version 0.1, which calls `learned_at` `woke`."""
LEARNED = 0.1
"""A run has learned what it is asked when its loss, in the mean over WINDOW lines of its log, has come below this."""
WINDOW = 5


@dataclass(frozen=True)
class TrainingTrace:
    """`opened`: the step from which everything was on, 0 where nothing was off. `learned_at`: the step by which the loss of
    all questions had fallen below LEARNED with everything on; None if it never did. `step_seconds`: of a step with everything
    on, timed alone on the machine that trained it; None where nobody timed it. `parameters`: how many numbers the model learns;
    None in files of versions that did not write it.
    """

    run: str
    steps: int
    opened: int
    learned_at: int | None
    step_seconds: float | None = None
    parameters: int | None = None

    @property
    def plateau_steps(self) -> int | None:
        """Joint steps until it had learned."""
        return None if self.learned_at is None else self.learned_at - self.opened


def trace_of(run: str, log: Sequence[Mapping[str, Any]], ends: Sequence[int], last_off: int) -> TrainingTrace:
    """From the lines of a log and the steps at which phases ended; after the phase `last_off`, counted from 1, all was on.

    >>> lines = [{"step": 50 * i, "loss": 2.0 if i < 9 else 0.0} for i in range(1, 16)]
    >>> trace_of("0123456789ab", lines, ends=(200, 750), last_off=1).learned_at
    650
    """
    opened = ends[last_off - 1] if last_off else 0
    joint = [line for line in log if line["step"] > opened and "loss" in line]
    losses = [float(line["loss"]) for line in joint]
    means = [sum(losses[end - WINDOW : end]) / WINDOW for end in range(WINDOW, len(losses) + 1)]
    learned = next((joint[number + WINDOW - 1]["step"] for number, mean in enumerate(means) if mean < LEARNED), None)
    return TrainingTrace(run, ends[-1], opened, learned)


def timed(traces: Iterable[TrainingTrace], seconds: Mapping[str, float]) -> tuple[TrainingTrace, ...]:
    """With the seconds of a step, by run, as far as they are known.

    >>> timed([TrainingTrace("0123456789ab", 750, 200, 650)], {"0123456789ab": 0.002})[0].step_seconds
    0.002
    """
    return tuple(replace(trace, step_seconds=seconds.get(trace.run, trace.step_seconds)) for trace in traces)


def traces_of(runs: Iterable[str], traces: Iterable[TrainingTrace]) -> tuple[TrainingTrace, ...]:
    """Of these runs, in their order, as far as they are known."""
    by_run = {trace.run: trace for trace in traces}
    names = [run if run in by_run else known_as(run, by_run) for run in runs]
    return tuple(by_run[name] for name in names if name)


def as_jsonl(traces: Iterable[TrainingTrace]) -> str:
    """The content of `traces.jsonl`."""
    return "".join(json.dumps(asdict(trace)) + "\n" for trace in traces)


def read_traces(folder: Path) -> list[TrainingTrace]:
    """The traces kept in a folder; none where there is no such file."""
    for path in (folder / FILE, folder / OLD_FILE):
        try:
            return [_trace(json.loads(line)) for line in read_text(path).splitlines()]
        except Missing:
            continue
        except (ValueError, TypeError, AttributeError, RecursionError):
            names = "run, steps, opened, learned_at"
            raise LabError(f"{path} is not a file of traces: a JSON object a line with {names}") from None
    return []


def _trace(data: dict[str, Any]) -> TrainingTrace:
    return TrainingTrace(**{("learned_at" if name == "woke" else name): value for name, value in data.items()})
