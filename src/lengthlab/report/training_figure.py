"""How training went, as lines: the loss over steps and, where it was watched, the accuracy in the training range and beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lengthlab.report.course import Course
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.page import visible
from lengthlab.report.style import COLOURS, DASHES, legend_below, points, tidy, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HIGH, NARROW, LOW = 8.6, 3.2, 2.5, 0.75
"""Inches: of the figure where nothing else is said, and of a panel at least; how high a panel is, as a share of its width."""
GREY = "#444444"
LEAST = 1e-6
"""Losses below this are drawn there: the axis is logarithmic."""


@dataclass(frozen=True)
class Training(FigureBlock):
    """`courses`: of settings by name, one for each seed."""

    courses: tuple[tuple[str, tuple[Course, ...]], ...] = ()


def draw_training(block: Training) -> Figure:
    """A colour for each setting, a line for each seed; where parts are on again, a dotted line."""
    from matplotlib.figure import Figure

    watched = any(course.inside or course.beyond for _, own in block.courses for course in own)
    wide, number = block.width or WIDE, 1 + watched
    across = max(1, min(number, int(wide / NARROW)))
    down = number // across
    drawing = Figure(figsize=(wide, down * min(HIGH, LOW * wide / across)), layout="constrained", facecolor="white")
    every = [axes for row in drawing.subplots(down, across, squeeze=False) for axes in row]
    for place, (name, courses) in enumerate(block.courses):
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]
        for seed, course in enumerate(courses):
            _losses(every[0], course, colour, dash, "" if seed else visible(name))
            if watched:
                _accuracies(every[1], course, colour)
        for axes in every:
            _switches(axes, courses[0], colour)
    _axes(every, max(step for _, courses in block.courses for course in courses for step, _ in course.loss))
    write_title(drawing, block.title)
    legend_below(drawing, *_legend(every, [visible(name) for name, _ in block.courses]), "")
    return drawing


def _legend(every: Sequence[Axes], first: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Each once: settings, then what else lines mean."""
    named: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    labels = [*(label for label in named if label in first), *(label for label in named if label not in first)]
    return [named[label] for label in labels], labels


def _losses(axes: Axes, course: Course, colour: str, dash: Any, label: str) -> None:
    steps, losses = zip(*course.loss, strict=True)
    look = {"lw": points(1.3), "alpha": 0.85, "color": colour, "ls": dash}
    axes.plot(steps, [max(LEAST, loss) for loss in losses], label=label or None, **look)


def _accuracies(axes: Axes, course: Course, colour: str) -> None:
    inside, beyond = course.watched
    told = ((course.inside, "-", f"in the training range, n = {inside}"), (course.beyond, "--", f"beyond it, n = {beyond}"))
    for shares, dash, words in told:
        if shares:
            axes.plot(*zip(*shares, strict=True), ls=dash, color=colour, lw=points(1.3), alpha=0.85, marker=".", ms=points(4))
            axes.plot([], [], ls=dash, color=GREY, lw=points(1.3), label=words)


def _switches(axes: Axes, course: Course, colour: str) -> None:
    """Where a phase with something off ends."""
    for stretch in course.stretches:
        if stretch.off:
            axes.axvline(stretch.end, color=colour, ls=":", lw=points(1.1), zorder=1)
            label = f"{', '.join(map(visible, stretch.off))} off up to here"
            axes.plot([], [], color=GREY, ls=":", lw=points(1.1), label=label)


def _axes(every: Sequence[Axes], last: int) -> None:
    loss, *accuracy = every
    loss.set_yscale("log")
    loss.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # matplotlib's own are formulas
    loss.set_ylabel("loss")
    for axes in accuracy:
        axes.set_ylabel("accuracy")
        axes.set_ylim(-0.03, 1.05)
    for axes in every:
        axes.set_xlabel("step")
        axes.set_xlim(0, 1.02 * last)
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.tick_params(labelsize=points(9))
        tidy(axes, "y")
