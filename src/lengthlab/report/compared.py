"""Settings that can be compared, with all that a page tells of them: ranked, with their scores by question, and how they were
trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lengthlab.report.best import Best, best_of
from lengthlab.report.curves import Curve
from lengthlab.report.scores import Series
from lengthlab.report.setting import Setting, alike, settings_of
from lengthlab.store.settings import name_runs, shown


@dataclass(frozen=True)
class Compared:
    """One task, one training range, the best setting first."""

    best: Best
    parameters: str = ""
    """What tells its task from others of the same name."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        return self.best.ranked

    @property
    def first(self) -> Curve:
        return self.settings[0].first

    @property
    def title(self) -> str:
        told = ", ".join(filter(None, (self.first.first.task, self.parameters)))
        return f"{told}, trained on n = {self.trained[0]}…{self.trained[1]}"

    @property
    def trained(self) -> tuple[int, int]:
        return self.first.trained

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({length for setting in self.settings for length in setting.lengths})

    @cached_property
    def questions(self) -> list[str]:
        return self.first.questions

    @cached_property
    def columns(self) -> list[str]:
        """What differs between these settings."""
        told = [dict(setting.values) for setting in self.settings]
        return [name for name in told[0] if len({repr(each.get(name)) for each in told}) > 1]

    def chance(self, question: str) -> list[float | None]:
        """How often a guess is right, by length; None where that is not known, or no share."""
        shares = [self.first.chance_at(length, question) for length in self.lengths]
        return [share if share is not None and 0 <= share <= 1 else None for share in shares]

    def series(self, setting: Setting, question: str) -> Series:
        return next((each for each in setting.series if each.question == question), Series(question, ()))


def compared(curves: Sequence[Curve]) -> list[Compared]:
    """In the order in which their first runs come; settings are named by what differs within their group."""
    groups = [[curve for setting in group for curve in setting.curves] for group in alike(settings_of(curves))]
    tasks = name_runs({str(number): {"task": group[0].content["task"]} for number, group in enumerate(groups)})
    named = [group[0].first.task for group in groups]
    found = []
    for number, group in enumerate(groups):
        alone = named.count(named[number]) == 1
        values = zip(tasks.columns, tasks.values[str(number)], strict=True)
        told = [f"{name} {shown(value)}" for name, value in values if name != "task" and value is not None]
        found.append(Compared(best_of(settings_of(group)), "" if alone else ", ".join(told)))
    return found
