"""Figures of settings that can be compared, as blocks: what a page shows and what `lengthlab figure` draws."""

from __future__ import annotations

from dataclasses import replace

from lengthlab.report.compared import Compared
from lengthlab.report.course import Course
from lengthlab.report.html_data import Courses
from lengthlab.report.page import Curves, Entry, Heatmap
from lengthlab.report.reach import Reach
from lengthlab.report.setting import Setting


def heatmap_of(group: Compared, most: int | None = None) -> Heatmap:
    """The best settings, all of them if no number is given."""
    return Heatmap(_entries(group, most), tuple(group.lengths), group.trained)


def reach_bars(group: Compared, most: int | None = None) -> Reach:
    """The best settings, ranked."""
    return Reach(_entries(group, most), tuple(group.lengths), group.trained)


def curves_of(group: Compared, most: int | None = None) -> Curves:
    """The best settings, with chance as far as it is known."""
    chance = {
        question: {n: share for n, share in zip(group.lengths, group.chance(question), strict=True) if share is not None}
        for question in group.questions
    }
    return Curves(_entries(group, most), tuple(group.lengths), group.trained, chance=chance)


def courses_of(group: Compared, courses: Courses, most: int | None = None) -> list[tuple[str, list[Course]]]:
    """How the best settings were trained, by name: one course for each seed that has a log."""
    return [
        (setting.name, [courses[curve.first.run] for curve in setting.curves if curve.first.run in courses])
        for setting in group.settings[:most]
    ]


def asking(block: Curves | Heatmap | Reach, questions: tuple[str, ...]) -> Curves | Heatmap | Reach:
    """With these questions alone."""
    entries = [
        replace(entry, series=tuple(series for series in entry.series if series.question in questions))
        for entry in block.entries
    ]
    return replace(block, entries=tuple(entries))


def _entries(group: Compared, most: int | None) -> tuple[Entry, ...]:
    return tuple(map(_entry, group.settings[:most]))


def _entry(setting: Setting) -> Entry:
    return Entry((("setting", setting.name),), setting.series)
