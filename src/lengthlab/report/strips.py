"""Every seed as a dot: a line for each entry, a panel for each question, a mark and a colour for each length. Where seeds fall
into two camps, a mean shows neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthlab.report.lines import legend_names
from lengthlab.report.page import Strips, title_of
from lengthlab.report.scores import Score
from lengthlab.report.style import COLOURS, INK, MARKERS, legend_below, tidy, wrapped, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.3
"""Inches of a line; a panel is PANEL wide, and names take NAMES at most."""
PANEL, NAMES = 3.0, 44
CAPTION = "A dot is a seed, a bar the mean over seeds. Intervals over the samples are in the tables."
BAND = 0.4
"""The share of a line that the dots of one length are spread over, a place for each seed."""


def draw_strips(block: Strips) -> Figure:
    """Entries down, a panel for each question."""
    from matplotlib.figure import Figure

    questions = [series.question for series in block.entries[0].series]
    high = 1.1 + LINE * len(block.entries)
    drawing = Figure(figsize=(2.9 + PANEL * len(questions), high), layout="constrained", facecolor="white")
    row = drawing.subplots(1, len(questions), sharey=True, squeeze=False)[0]
    for axes, question in zip(row, questions, strict=True):
        _panel(axes, block, question)
    names = [wrapped(name, NAMES) for name in legend_names(block.entries)]
    row[0].set_yticks(range(len(names)), names, fontsize=9)
    row[0].set_ylim(len(names) - 0.5, -0.5)
    write_title(drawing, block.title)
    handles, labels = row[0].get_legend_handles_labels()
    legend_below(drawing, handles, labels, CAPTION)
    return drawing


def _panel(axes: Axes, block: Strips, question: str) -> None:
    for number, length in enumerate(block.at):
        times = f"n = {length}, {length // block.trained[1]}× the longest training length"
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        look |= {"facecolor": look["color"] if number == 0 else "white"}
        shown = [(place, entry.series) for place, entry in enumerate(block.entries)]
        for place, every in shown:
            scores = [series.at(length) for series in every if series.question == question]
            middle = place + (number + 0.5) / len(block.at) * 0.86 - 0.43
            for score in scores:
                _dots(axes, score, middle, BAND / len(block.at), look, times if place == 0 else None)
    chance = set(block.chance.get(question, {}).values())
    if len(chance) == 1:
        axes.axvline(chance.pop(), color="#777777", ls=":", lw=1.2, zorder=1, label="chance")
    for place in range(1, len(block.entries)):
        axes.axhline(place - 0.5, color="#DDDDDD", lw=0.6, zorder=0)
    axes.set_title(title_of(question), fontsize=11, color=INK)
    axes.set_xlabel("accuracy")
    axes.set_xlim(-0.03, 1.03)
    axes.tick_params(axis="y", length=0)
    tidy(axes, "x")


def _dots(axes: Axes, score: Score, middle: float, band: float, look: dict[str, Any], label: str | None) -> None:
    """Seeds one below the other, so that equal ones are seen; a bar at their mean."""
    if score.mean is None:
        return
    accuracies = list(score.by_seed.values())
    step = band / max(1, len(accuracies) - 1)
    heights = [middle - band / 2 + seed * step if len(accuracies) > 1 else middle for seed in range(len(accuracies))]
    style = {"s": 13, "marker": look["marker"], "facecolors": look["facecolor"], "edgecolors": look["color"]}
    axes.scatter(accuracies, heights, linewidths=0.9, zorder=3, clip_on=False, label=label, **style)
    reach = band / 2 + 0.06
    axes.plot([score.mean] * 2, [middle - reach, middle + reach], color=look["color"], lw=1.8, zorder=2)
