"""Settings that can be compared, with all that a page tells of them: ranked, with their scores by question, and how they were
trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lengthlab.report.best import Best, best_of
from lengthlab.report.curves import Curve
from lengthlab.report.scores import Series
from lengthlab.report.setting import Setting, alike, settings_of


@dataclass(frozen=True)
class Compared:
    """One task, one training range, the best setting first."""

    best: Best

    @property
    def settings(self) -> tuple[Setting, ...]:
        return self.best.ranked

    @property
    def first(self) -> Curve:
        return self.settings[0].first

    @property
    def title(self) -> str:
        return f"{self.first.first.task}, trained on n = {self.trained[0]}…{self.trained[1]}"

    @property
    def trained(self) -> tuple[int, int]:
        return self.first.trained

    @property
    def lengths(self) -> list[int]:
        return sorted({length for setting in self.settings for length in setting.lengths})

    @property
    def questions(self) -> list[str]:
        return self.first.questions

    @property
    def columns(self) -> list[str]:
        """What differs between these settings."""
        told = [dict(setting.values) for setting in self.settings]
        return [name for name in told[0] if len({repr(each.get(name)) for each in told}) > 1]

    def chance(self, question: str) -> list[float | None]:
        return [self.first.chance_at(length, question) for length in self.lengths]

    def series(self, setting: Setting, question: str) -> Series:
        return next((each for each in setting.series if each.question == question), Series(question, ()))


def compared(curves: Sequence[Curve]) -> list[Compared]:
    """In the order in which their first runs come."""
    return [Compared(best_of(group)) for group in alike(settings_of(curves))]
