"""What the script of a page works with: the numbers, computed here, so that it only shows them. Shares are whole numbers of
ten-thousandths, losses have four digits: half the size, and nothing that a reader could see is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lengthlab.report.compared import Compared
from lengthlab.report.course import Course
from lengthlab.report.page import title_of
from lengthlab.report.rules import RULES, by_rule, flattery, several_seeds, telling_length
from lengthlab.report.scores import GOOD, Series
from lengthlab.report.setting import Setting, reach_of
from lengthlab.store.settings import shown
from lengthlab.store.status import visible

Courses = Mapping[str, Course]
"""By run."""


def page_data(groups: Sequence[Compared], courses: Courses) -> dict[str, Any]:
    """Plain data."""
    return {"good": GOOD, "rules": list(RULES), "groups": [_group(group, courses) for group in groups]}


def _group(group: Compared, courses: Courses) -> dict[str, Any]:
    lengths = group.lengths
    ruled = [by_rule(group, length) for length in lengths]
    return {
        "title": visible(group.title),
        "trained": list(group.trained),
        "lengths": lengths,
        "questions": [_question(group, question) for question in group.questions],
        "columns": [visible(column) for column in group.columns],
        "best": len(group.best.settings),
        "telling": lengths.index(telling_length(group)),
        "several": several_seeds(group),
        "settings": [_setting(group, setting, courses) for setting in group.settings],
        "rules": [[_shares(values) for values in at] for at in ruled],
        "flattery": [_shares(flattery(at)) for at in ruled],
    }


def _question(group: Compared, question: str) -> dict[str, Any]:
    return {"name": visible(question), "title": title_of(question), "chance": _shares(group.chance(question))}


def _setting(group: Compared, setting: Setting, courses: Courses) -> dict[str, Any]:
    values = dict(setting.values)
    return {
        "name": visible(setting.name),
        "values": [visible(shown(values.get(column))) for column in group.columns],
        "series": [_series(group.series(setting, question), group.lengths) for question in group.questions],
        "courses": [course_data(courses[curve.first.run]) for curve in setting.curves if curve.first.run in courses],
    }


def _series(series: Series, lengths: Sequence[int]) -> dict[str, Any]:
    scores = [series.at(length) for length in lengths]
    seeds = series.seeds
    told = {
        "reach": reach_of(series),
        "seeds": list(map(str, seeds)),
        "mean": _shares(score.mean for score in scores),
        "low": _shares(score.interval[0] if score.rows else None for score in scores),
        "high": _shares(score.interval[1] if score.rows else None for score in scores),
        "each": [_shares(score.by_seed.get(seed) for score in scores) for seed in seeds],
        "samples": [score.samples for score in scores],
    }
    tokens = [score.tokens for score in scores]
    return told | ({"tokens": _shares(tokens)} if any(share is not None for share in tokens) else {})


def course_data(course: Course) -> dict[str, Any]:
    """One run's, as its figure needs it."""
    return course_facts(course) | {name: [*map(write, getattr(course, name))] for name, write in POINTS.items()}


def course_facts(course: Course) -> dict[str, Any]:
    """What is no line of points."""
    phases = [[stretch.end, visible(", ".join(stretch.off))] for stretch in course.stretches]
    return {"seed": str(course.seed), "watched": list(course.watched), "phases": phases}


def _four_digits(point: tuple[int, float]) -> list[float]:
    return [point[0], float(f"{point[1]:.4g}")]


def _ten_thousandths(point: tuple[int, float]) -> list[int]:
    return [point[0], round(1e4 * point[1])]


POINTS: Mapping[str, Callable[[tuple[int, float]], list[Any]]] = {
    "loss": _four_digits,
    "rates": _four_digits,
    "inside": _ten_thousandths,
    "beyond": _ten_thousandths,
}
"""The lines of a course, and how a point of each is written."""


def _shares(shares: Iterable[float | None]) -> list[int | None]:
    return [None if share is None else round(1e4 * share) for share in shares]
