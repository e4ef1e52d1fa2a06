"""How the training of a run went: how long it took, when attention was opened, when everything asked was learned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError

FILE = "courses.jsonl"
AWAKE = 0.1
"""A run is awake when its loss, in the mean over WINDOW lines of its log, has come below this."""
WINDOW = 5


@dataclass(frozen=True)
class Course:
    """`opened`: the step at which the first phase ended, 0 where nothing was off. `woke`: the step by which the loss of all
    questions had fallen below AWAKE with everything on; None if it never did. `step_seconds`: of a step with everything on,
    timed alone on the machine that trained it; None where nobody timed it.
    """

    run: str
    steps: int
    opened: int
    woke: int | None
    step_seconds: float | None = None

    @property
    def slept(self) -> int | None:
        """Joint steps until it woke."""
        return None if self.woke is None else self.woke - self.opened


def course_of(run: str, log: Sequence[Mapping[str, Any]], ends: Sequence[int], phases_off: int) -> Course:
    """From the lines of a log and the steps at which phases ended; in the first `phases_off` of them something was off.

    >>> lines = [{"step": 50 * i, "loss": 2.0 if i < 9 else 0.0} for i in range(1, 16)]
    >>> course_of("0123456789ab", lines, ends=(200, 750), phases_off=1).woke
    650
    """
    opened = ends[phases_off - 1] if phases_off else 0
    joint = [line for line in log if line["step"] > opened]
    losses = [float(line["loss"]) for line in joint]
    means = [sum(losses[end - WINDOW : end]) / WINDOW for end in range(WINDOW, len(losses) + 1)]
    woke = next((joint[place + WINDOW - 1]["step"] for place, mean in enumerate(means) if mean < AWAKE), None)
    return Course(run, ends[-1], opened, woke)


def timed(courses: Iterable[Course], seconds: Mapping[str, float]) -> tuple[Course, ...]:
    """With the seconds of a step, by run, as far as they are known.

    >>> timed([Course("0123456789ab", 750, 200, 650)], {"0123456789ab": 0.002})[0].step_seconds
    0.002
    """
    return tuple(replace(course, step_seconds=seconds.get(course.run, course.step_seconds)) for course in courses)


def courses_of(runs: Iterable[str], courses: Iterable[Course]) -> tuple[Course, ...]:
    """Of these runs, in their order, as far as they are known."""
    by_run = {course.run: course for course in courses}
    return tuple(by_run[run] for run in runs if run in by_run)


def as_jsonl(courses: Iterable[Course]) -> str:
    """The content of `courses.jsonl`."""
    return "".join(json.dumps(asdict(course)) + "\n" for course in courses)


def read_courses(path: Path) -> list[Course]:
    """The courses of such a file; none where there is none."""
    try:
        return [Course(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        raise LabError(f"{path} is not a file of courses: a JSON object a line with run, steps, opened, woke") from None
