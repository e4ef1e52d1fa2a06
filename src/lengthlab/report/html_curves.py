"""The figures of a page where no script runs: accuracy over length, and how training went."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.report.course import Course
from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.page import Curves, title_of
from lengthlab.report.scores import Series
from lengthlab.report.svg import Chart, Line, drawn, look, x_axis, y_axis

WIDE_SPAN = 20
"""Lengths that span more than this are drawn on a logarithmic axis."""


def accuracy_chart(block: Curves, question: str) -> Markup:
    """Seeds thin, their mean thick, with the interval over samples around it; chance dotted, the training range shaded."""
    lengths = sorted(block.lengths)
    lines: list[Line] = []
    chance = block.chance.get(question, {})
    if chance:
        lines.append(Line(tuple((n, chance[n]) for n in lengths if n in chance), "level"))
    for number, entry in enumerate(block.entries):
        for series in entry.series:
            if series.question == question:
                lines += _accuracies(series, number)
    axis = x_axis(lengths[0], lengths[-1], log=lengths[-1] > WIDE_SPAN * lengths[0])
    title = f"Accuracy over length, {title_of(question)}: {', '.join(entry.title for entry in block.entries)}"
    chart = Chart(title, axis, y_axis(0, 1), "length n", "accuracy", tuple(lines), block.trained, tuple(map(float, lengths)))
    return joined([drawn(chart), legend([entry.title for entry in block.entries])])


def _accuracies(series: Series, number: int) -> list[Line]:
    known = [score for score in series.scores if score.mean is not None]
    seeds = [tuple((row.length, row.accuracy) for row in series.of_seed(seed)) for seed in series.seeds]
    means = tuple((score.length, score.mean or 0.0) for score in known)
    thin = [Line(points, "seed", number) for points in seeds] if len(seeds) > 1 else []
    return [*thin, Line(means, "mean", number, tuple(score.interval for score in known))]


def loss_chart(courses: Sequence[tuple[str, Sequence[Course]]]) -> Markup:
    """Of settings by name: the loss of every seed over steps, on a logarithmic axis."""
    lines = [
        Line(tuple((step, max(loss, 1e-6)) for step, loss in course.loss), "seed", number)
        for number, (_, runs) in enumerate(courses)
        for course in runs
        if course.loss
    ]
    if not lines:
        return Markup("")
    losses = [loss for line in lines for _, loss in line.points]
    last = max(step for line in lines for step, _ in line.points)
    names = [name for name, _ in courses]
    chart = Chart(
        f"Training loss over steps: {', '.join(names)}",
        x_axis(0, last),
        y_axis(min(losses), max(*losses, 1.001 * min(losses)), log=True),
        "step",
        "loss",
        tuple(lines),
    )
    return joined([drawn(chart), legend(names)])


def legend(names: Sequence[str]) -> Markup:
    """Which line is which."""
    entries = [tag("li", sample(number), tag("span", name)) for number, name in enumerate(names)]
    return tag("ul", *entries, class_="legend")


def sample(number: int) -> Markup:
    """A piece of a line."""
    line = tag("path", class_=look(Line((), "mean", number)), d="M1 6L27 6")
    return tag("svg", line, viewBox="0 0 28 12", class_="sample", aria_hidden="true")
