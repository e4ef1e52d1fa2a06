"""Where a run is, as data and in words, and how long it will take. `watch.py` reads it from run folders. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from lengthlab.store.phases import Phases

State = Literal["waiting", "training", "measuring", "finished", "failed", "stopped"]
"""`stopped`: begun, not ended, and no process has it. `measuring`: every step is made, and a process still has the run."""


class Accuracy(NamedTuple):
    """The share of samples of a length with every question right."""

    length: int
    share: float


@dataclass(frozen=True)
class Status:
    """Where a run is. What is not known is None, or empty.

    `phase` of `phases` counts from 1, and `off` is what is off in it. `step` of `steps`: `at_most`, where training itself may
    end a phase sooner. `seconds_left` of training: `at_least`, where a phase to come has parts on that were off when the last
    steps were timed, and no run of these settings has been there. `failure` is why the run failed; `trouble` is what in its
    folder could not be read; `notes` say what is slower than it could be, and which part makes it so.
    """

    run: str
    state: State
    task: str = ""
    model: str = ""
    training: str = ""
    seed: int | None = None
    phase: int | None = None
    phases: int = 0
    off: tuple[str, ...] = ()
    step: int = 0
    steps: int | None = None
    at_most: bool = False
    loss: float | None = None
    in_range: Accuracy | None = None
    beyond: Accuracy | None = None
    seconds_left: float | None = None
    at_least: bool = False
    failure: str | None = None
    trouble: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What tells runs apart, for `labels`."""
        return self.task, self.model, self.training, "" if self.seed is None else f"seed {self.seed}"

    @property
    def time_left(self) -> str:
        """In words; empty where nothing is known.

        >>> Status("0123456789ab", "training", seconds_left=75, at_most=True).time_left
        '1 min 15 s at most'
        """
        if self.seconds_left is None:
            return ""
        if self.at_most and self.at_least:
            return f"about {duration(self.seconds_left)}"
        return duration(self.seconds_left) + (" at most" if self.at_most else " or more" if self.at_least else "")

    def to_json(self) -> dict[str, Any]:
        """Plain data; a loss that is not finite is None."""
        return asdict(self) | {"loss": self.loss if self.loss is not None and math.isfinite(self.loss) else None}


def seconds_left(
    phases: Phases, clock: int, timed: int, own: Mapping[int, float], others: Mapping[int, float]
) -> tuple[float | None, bool]:
    """Until all phases are over, and whether it will rather be more. Phases count from 0.

    `own` are the seconds of a step in the phases that the run itself has been in, the last of them `timed`; `others` those of a
    run of the same settings, which tell by how much a phase to come is slower or faster. Where nobody has been in a phase
    like it, its steps are taken to last as long as the last ones.

    >>> from lengthlab.store.phases import phases_in
    >>> schedule = {"phases": [{"length": 100, "off": ["attention"]}, {"length": 50}]}
    >>> two = phases_in({"schedule": schedule, "batch": 4, "lengths": [1, 10]})
    >>> seconds_left(two, 90, 0, {0: 1.0}, {}), seconds_left(two, 90, 0, {0: 1.0}, {0: 2.0, 1: 6.0})
    ((60.0, True), (160.0, False))
    """
    if timed not in own or timed >= len(phases.every):
        return None, False
    seconds, at_least = 0.0, False
    off = set(phases.every[timed].off) if timed >= 0 else set()
    for number, steps in enumerate(phases.left(clock)):
        if steps:
            step = _step_seconds(phases, number, timed, own, others)
            seconds += steps * (own[timed] if step is None else step)
            at_least |= step is None and not off <= set(phases.every[number].off)
    return (seconds, at_least) if 0 < seconds < math.inf else (None, False)


def _step_seconds(
    phases: Phases, number: int, timed: int, own: Mapping[int, float], others: Mapping[int, float]
) -> float | None:
    """None where nobody has been in a phase like it."""
    here, there = _alike(phases, number, own), _alike(phases, number, others)
    if here is None and there is not None and others.get(timed, 0) > 0:
        return own[timed] * there / others[timed]
    return here


def _alike(phases: Phases, number: int, times: Mapping[int, float]) -> float | None:
    """Of this phase, or of the last one of its kind."""
    kind = phases.every[number].kind
    alike = [each for each in times if 0 <= each < len(phases.every) and phases.every[each].kind == kind]
    return times.get(number, times[alike[-1]] if alike else None)


def seconds_left_in_all(statuses: Sequence[Status]) -> float | None:
    """Until every run is trained, as many at a time as are at work now; None where nobody can say.

    A run that waits is taken to go as fast as those at work, those of its task, model and training first.

    >>> here = Status("ab12", "training", model="lstm", step=50, steps=100, seconds_left=10)
    >>> seconds_left_in_all([here, Status("cd34", "waiting", model="lstm", steps=200)])
    50.0
    """
    paces = [(each, each.seconds_left / left) for each in statuses if each.seconds_left and (left := _steps_left(each))]
    seconds = []
    for status in statuses:
        if status.state in ("training", "waiting", "stopped"):
            alike = [pace for other, pace in paces if other.names[:3] == status.names[:3]] or [pace for _, pace in paces]
            if not alike:
                return None
            seconds.append(status.seconds_left or _steps_left(status) * sum(alike) / len(alike))
    at_work = sum(status.state == "training" for status in statuses)
    return max(*seconds, sum(seconds) / max(1, at_work)) if len(seconds) > 1 else sum(seconds)


def _steps_left(status: Status) -> int:
    return (status.steps or 0) - status.step


def duration(seconds: float) -> str:
    """
    >>> duration(75), duration(4000)
    ('1 min 15 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def visible(text: str) -> str:
    r"""A text of anybody's as one line in which nothing acts on its reader: control characters, marks that turn the direction
    of writing, breaks of lines and the like are shown as escapes.

    >>> visible("left\u202eright\n\x1b[31m")
    'left\\u202eright\\n\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
