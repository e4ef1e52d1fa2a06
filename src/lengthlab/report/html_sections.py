"""The sections of a report as blocks and figures: overview, curves, training, why, rules, tasks and models, provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lengthlab.report.best import RULE, sentence
from lengthlab.report.compared import Compared
from lengthlab.report.course import Course
from lengthlab.report.curves import Curve
from lengthlab.report.group_figures import courses_of, curves_of, heatmap_of
from lengthlab.report.html import figure, html
from lengthlab.report.html_curves import loss_chart
from lengthlab.report.html_data import Courses
from lengthlab.report.html_heatmap import heat_tables
from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.origins_table import every_run, machines, without_result
from lengthlab.report.page import Details, Span, Table, Text, Words
from lengthlab.report.portraits import portraits
from lengthlab.report.rules import ABOUT, RULES, by_rule, converged_seeds, flattery, several_seeds, telling_length
from lengthlab.report.scores import GOOD, samples_told
from lengthlab.report.why_section import Diagnoses, why_section
from lengthlab.store.status import Status

DRAWN = 6
"""Settings of a figure before a reader picks others: the best ones."""


@dataclass(frozen=True)
class Section:
    """`anchor` is where links lead; `content` is read without a script."""

    anchor: str
    title: str
    content: Markup


@dataclass(frozen=True)
class Report:
    """All that a page is made of. `statuses`: of runs without a result. `problems`: folders that could not be read."""

    groups: tuple[Compared, ...]
    courses: Courses
    statuses: tuple[Status, ...] = ()
    problems: tuple[str, ...] = ()
    command: str = ""
    diagnoses: Diagnoses = field(default_factory=dict)

    @property
    def curves(self) -> list[Curve]:
        return [curve for group in self.groups for setting in group.settings for curve in setting.curves]


def sections(report: Report) -> list[Section]:
    made = [
        Section("overview", "Overview", joined([_each(report, _overview), _reading(report)])),
        Section("curves", "Accuracy over length", _each(report, _curves)),
        Section("training", "Training", _each(report, lambda group: _training(group, report.courses))),
        Section("why", "Why", why_section(report.groups, report.diagnoses)),
        Section("selection", "Selection rules", joined([html(Text(ABOUT)), _each(report, _selection)])),
        Section("tasks", "Tasks and models", joined(map(html, portraits(report.groups)))),
        Section("provenance", "Provenance", joined(_provenance(report))),
    ]
    return [section for section in made if section.content]


def without_numbers(report: Report) -> list[Section]:
    """Where no run is finished yet: what there is instead."""
    known = report.statuses or report.problems
    told = without_result(report.statuses, report.problems) if known else [Text("There is no run yet.")]
    return [Section("provenance", "Provenance", joined(map(html, told)))]


def _each(report: Report, part: Callable[[Compared], Markup]) -> Markup:
    """A part of every group, under its name where there are several."""
    shown: list[Markup] = []
    for number, group in enumerate(report.groups):
        content = part(group)
        heading = tag("h3", group.title) if len(report.groups) > 1 else ""
        shown += [tag("div", heading, content, class_="group", data_group=number)] if content else []
    return joined(shown)


def _overview(group: Compared) -> Markup:
    """How far each goes, and the heat map of the question that counts; the others folded."""
    block = heatmap_of(group)
    said = html(Text(Span(sentence(group.best), "strong")))
    rows = [row for setting in group.settings for curve in setting.curves for row in curve.rows]
    return joined([said, heat_tables(block, group.questions), tag("p", f"{samples_told(rows)}.", class_="faint")])


def _reading(report: Report) -> Markup:
    """How the tables are read, and what the best is."""
    several = any(len(group.settings) > 1 for group in report.groups)
    words = [
        f"Reach: the greatest length up to which the mean over seeds is above {GOOD:.2f}. In a cell: the mean over seeds, and "
        "Wilson's interval at 95 % over the samples of all of them.",
        *([RULE] if several else []),
    ]
    return tag("p", " ".join(words), class_="faint")


def _curves(group: Compared) -> Markup:
    block = curves_of(group, DRAWN)
    return tag("div", _left_out(group), html(block), class_="curves")


def _training(group: Compared, courses: Courses) -> Markup:
    known = courses_of(group, courses, DRAWN)
    picture = loss_chart(known)
    return (
        tag("div", _left_out(group), figure(picture, "Training loss"), _phases(known), class_="courses")
        if picture
        else Markup("")
    )


def _phases(known: Sequence[tuple[str, Sequence[Course]]]) -> Markup:
    """When what was off, in words."""
    lines = []
    for name, runs in known:
        stretches = runs[0].stretches if runs else ()
        told, start = [], 0
        for stretch in stretches:
            told.append(f"{start:,}–{stretch.end:,} {', '.join(stretch.off) + ' off' if stretch.off else 'everything on'}")
            start = stretch.end
        lines += [tag("li", f"{name}: {'; '.join(told)}")] if any(stretch.off for stretch in stretches) else []
    return tag("div", tag("p", "Phases, by step:"), tag("ul", *lines), class_="phases") if lines else Markup("")


def _left_out(group: Compared) -> Markup:
    more = len(group.settings) - DRAWN
    return (
        tag("p", f"The best {DRAWN} of {len(group.settings)} settings are drawn.", class_="faint static")
        if more > 0
        else Markup("")
    )


def _selection(group: Compared) -> Markup:
    length = telling_length(group)
    values = by_rule(group, length)
    rows = [
        (setting.name, *map(_share, line), f"{len(converged_seeds(setting, group))} of {len(setting.curves)}")
        for setting, line in zip(group.settings, values, strict=True)
    ]
    last: tuple[Words, ...] = (Span("above the mean over seeds", "strong"), *map(_gap, flattery(values)), "")
    apart = (
        ", where the best seed and the mean are furthest apart" if several_seeds(group) else "; of one seed all rules are one"
    )
    words = f"Accuracy at n = {length}{apart}."
    table = Table(("setting", *RULES, "converged"), (*rows, last))
    return tag("div", html(Text(words)), html(table), class_="rules")


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def _gap(gap: float | None) -> str:
    return "–" if gap is None else f"{gap:+.3f}".replace("-", "−")


def _provenance(report: Report) -> Iterator[Markup]:
    yield from map(html, without_result(report.statuses, report.problems))
    yield html(machines(report.curves))
    yield html(Details(f"Every run ({len(report.curves):,})", (every_run(report.groups),)))
    if report.command:
        command = tag("pre", tag("code", report.command), class_="copied")
        yield tag("div", tag("p", "This page was written by"), command, class_="command")
