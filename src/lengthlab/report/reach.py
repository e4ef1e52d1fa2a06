"""How far each goes, as bars: the greatest length to which the mean over seeds is above 0.90, and the same of each seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lengthlab.report.lines import WIDE_SPAN, legend_names
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.scores import GOOD, Series
from lengthlab.report.setting import reach_of
from lengthlab.report.style import COLOURS, FAINT, INK, LETTER, SHADE, points, tidy, with_room, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, LINE, EDGES = 6.4, 0.27, 0.75
"""Inches: of the figure where nothing else is said, of a bar, and of what is above and below all of them."""
NAMES, LEADING = 0.45, 1.25 / 72
"""The share of the width that names may take; inches from line to line, for each point of a letter."""


@dataclass(frozen=True)
class Reach(FigureBlock):
    """Entries down, the best first; a bar for the first question of each, a dot for each seed."""


def draw_reach(block: Reach) -> Figure:
    """A bar that ends at the greatest length that was measured may go on: its number says so."""
    from matplotlib.figure import Figure

    wide = block.width or WIDE
    letters = int(NAMES * wide / (points(9) * LETTER))
    names = ["\n".join(wrap(name, letters, break_on_hyphens=False)) for name in legend_names(block.entries)]
    line = max(points(LINE), (max(name.count("\n") for name in names) + 1) * points(9) * LEADING)
    drawing = Figure(figsize=(wide, points(EDGES) + line * len(names)), layout="constrained", facecolor="white")
    axes = drawing.subplots()
    logarithmic = block.lengths[-1] > WIDE_SPAN * block.lengths[0]
    start = block.lengths[0] / 1.6 if logarithmic else 0.0
    axes.axvspan(start, block.trained[1], color=SHADE, alpha=0.6, lw=0)
    for place, entry in enumerate(block.entries):
        _bar(axes, place, entry.series[0], start)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(start, block.lengths[-1] * (1.2 if logarithmic else 1.04))
    at = [log(length) if logarithmic else float(length) for length in block.lengths]
    kept = with_room(block.lengths, at, (block.lengths[-1], block.trained[1]), (1 - NAMES - 0.15) * wide)
    axes.set_xticks(kept, list(map(str, kept)), fontsize=points(9))
    axes.set_yticks(range(len(names)), names, fontsize=points(9))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"length with accuracy > {GOOD:.2f}", fontsize=points(10))
    tidy(axes, "x")
    write_title(drawing, block.title)
    return drawing


def _bar(axes: Axes, place: int, series: Series, start: float) -> None:
    reached, longest = reach_of(series), max((score.length for score in series.scores if score.rows), default=0)
    if reached:
        axes.barh(place, reached - start, left=start, height=0.62, color=COLOURS[0], alpha=0.75, lw=0)
    seeds = [reach_of(_alone(series, seed)) for seed in series.seeds]
    heights = [place + 0.3 * ((number + 0.5) / len(seeds) - 0.5) for number in range(len(seeds))]
    if len(seeds) > 1:
        dot: dict[str, Any] = {"s": points(1) * 14, "facecolors": "white", "edgecolors": INK, "linewidths": points(0.8)}
        axes.scatter([max(start, reach) for reach in seeds], heights, zorder=3, clip_on=False, **dot)
    said = "nowhere" if not reached else f"≥ {reached}" if reached == longest else str(reached)
    look: dict[str, Any] = {"va": "center", "fontsize": points(9), "color": INK if reached else FAINT}
    beside: Any = axes.get_yaxis_transform()  # at the right edge, whatever dots are on the way
    axes.annotate(said, (1, place), (points(4), 0), xycoords=beside, textcoords="offset points", **look)


def _alone(series: Series, seed: int) -> Series:
    scores = (replace(score, rows=tuple(row for row in score.rows if row.seed == seed)) for score in series.scores)
    return replace(series, scores=tuple(score for score in scores if score.rows))
