"""What it takes to read a sequence, by its length: seconds and memory, a line for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.report.page import visible
from lengthlab.report.style import COLOURS, DASHES, MARKERS, legend_below, points, tidy, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, HIGH = 8.6, 3.2
"""Inches."""
LEAST = 1.0
"""Mebibytes: less than this is drawn there, because the axis is logarithmic."""


@dataclass(frozen=True)
class Cost:
    """Of one sequence of so many tokens."""

    model: str
    tokens: int
    seconds: float
    memory: int
    """Bytes at the peak, beyond the weights."""


def draw_costs(costs: Sequence[Cost], title: str, caption: str) -> Figure:
    """Both axes are logarithmic: what grows with the length is a line that rises, what does not is a level one."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(WIDE, HIGH), layout="constrained", facecolor="white")
    seconds, memory = drawing.subplots(1, 2)
    for place, model in enumerate(dict.fromkeys(cost.model for cost in costs)):
        own = [cost for cost in costs if cost.model == model]
        tokens = [cost.tokens for cost in own]
        look = {
            "color": COLOURS[place % len(COLOURS)],
            "ls": DASHES[place % len(DASHES)],
            "marker": MARKERS[place % len(MARKERS)],
        }
        lines = {"lw": points(1.6), "ms": points(5), "label": visible(model), **look}
        seconds.plot(tokens, [cost.seconds for cost in own], **lines)
        memory.plot(tokens, [max(LEAST, cost.memory / 2**20) for cost in own], **lines)
    lengths = sorted({cost.tokens for cost in costs})
    for axes, name in ((seconds, "seconds"), (memory, "memory, MiB")):
        _axis(axes, lengths, name)
    write_title(drawing, title)
    handles, labels = seconds.get_legend_handles_labels()
    legend_below(drawing, handles, labels, caption)
    return drawing


def _axis(axes: Axes, lengths: Sequence[int], name: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(lengths, [_short(length) for length in lengths])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")  # matplotlib's own are formulas
    axes.set_xlabel("tokens")
    axes.set_ylabel(name)
    axes.tick_params(labelsize=points(9))
    tidy(axes, "y")


def _short(tokens: int) -> str:
    """
    >>> _short(65_536), _short(4_194_304), _short(1_000)
    ('64 K', '4 M', '1,000')
    """
    for unit, name in ((2**20, "M"), (2**10, "K")):
        if tokens >= unit and tokens % unit == 0:
            return f"{tokens // unit} {name}"
    return f"{tokens:,}"
