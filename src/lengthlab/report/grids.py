"""Entries by two of what they are made of, as grids of numbers: a grid for each question, group and length. What was not
learned even at the longest training length is hatched, so that nobody takes it for a lack of reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lengthlab.report.heatmap import shade
from lengthlab.report.page import Entry, Grids, title_of, visible
from lengthlab.report.scores import GOOD, Score, Series
from lengthlab.report.style import FAINT, INK, LETTER, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = (0.58, 0.37)
"""Inches, as everything here; letters are in points."""
NUMBER, RANGE, LABEL, HEADING = 9.0, 5.6, 9.5, 11.0
NARROW, WIDE, BETWEEN = 0.18, 0.34, 0.5
"""Gaps between lengths, groups and questions."""
HEAD, FOOT, EDGE = 0.85, 0.55, 0.15
NOT_LEARNED: dict[str, Any] = {"fc": "#F6F6F6", "ec": "#E3E3E3", "hatch": "///"}
SLANT = 0.62
"""How high a slanted name stands, for each inch of its length."""
CORNER = 0.22
"""How high besides: above its cell, and by the height of its letters."""


@dataclass(frozen=True)
class Panel:
    """One grid and where it stands, from the left and from above."""

    question: str
    group: str
    length: int
    left: float
    top: float


@dataclass(frozen=True)
class Plan:
    """What a block has down and across, and how much room names and grids take."""

    block: Grids

    @property
    def down(self) -> list[str]:
        return list(dict.fromkeys(dict(entry.names)[self.block.down] for entry in self.block.entries))

    @property
    def across(self) -> list[str]:
        return list(dict.fromkeys(dict(entry.names)[self.block.across] for entry in self.block.entries))

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(entry.group for entry in self.block.entries))

    @property
    def questions(self) -> list[str]:
        return [series.question for series in self.block.entries[0].series]

    @property
    def grid(self) -> tuple[float, float]:
        return len(self.across) * CELL[0], len(self.down) * CELL[1]

    @property
    def left(self) -> float:
        titles = [1.2 * len(title_of(question)) for question in self.questions]  # bold, and a little larger
        return EDGE + 0.12 + LETTER * LABEL * max(*(len(visible(name)) for name in self.down), *titles)

    @property
    def top(self) -> float:
        return HEAD + self.slant

    @property
    def slant(self) -> float:
        return CORNER + SLANT * LETTER * (LABEL - 1) * max(len(visible(name)) for name in self.across)

    @property
    def width(self) -> float:
        return max(panel.left for panel in self.panels()) + self.grid[0] + self.slant

    @property
    def height(self) -> float:
        return max(panel.top for panel in self.panels()) + self.grid[1] + FOOT

    def panels(self) -> Iterator[Panel]:
        top = self.top
        for question in self.questions:
            left = self.left
            for group in self.groups:
                for length in self.block.at:
                    yield Panel(question, group, length, left, top)
                    left += self.grid[0] + NARROW
                left += WIDE - NARROW
            top += self.grid[1] + BETWEEN


def draw_grids(block: Grids) -> Figure:
    """A row of grids for each question; in it, by group, one for each length."""
    from matplotlib.figure import Figure

    plan = Plan(block)
    width, height = plan.width, plan.height
    drawing = Figure(figsize=(width, height), facecolor="white")
    axes = drawing.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    axes.text(EDGE, 0.24, visible(block.title), fontsize=12, fontweight="bold", color=INK, va="center")
    by_place = {(dict(e.names)[block.down], dict(e.names)[block.across], e.group): e for e in block.entries}
    for panel in plan.panels():
        _names(axes, plan, panel)
        for row, down in enumerate(plan.down):
            for column, across in enumerate(plan.across):
                corner = (panel.left + column * CELL[0], panel.top + row * CELL[1])
                _cell(axes, corner, by_place.get((down, across, panel.group)), panel, block)
    letters = int((width - plan.left) / (LETTER * 8))
    axes.text(plan.left, height - FOOT + 0.12, wrapped(_caption(block), letters), va="top", fontsize=8, color=FAINT)
    return drawing


def _names(axes: Axes, plan: Plan, panel: Panel) -> None:
    """What stands around a grid: its question and the names of its rows on the left, those of columns above the first."""
    first = panel.group == plan.groups[0] and panel.length == plan.block.at[0]
    if first:
        title = title_of(panel.question)
        axes.text(plan.left - 0.1, panel.top - 0.14, title, ha="right", fontsize=LABEL + 0.5, fontweight="bold", color=INK)
        for row, name in enumerate(plan.down):
            middle = panel.top + (row + 0.5) * CELL[1]
            axes.text(panel.left - 0.1, middle, visible(name), ha="right", va="center", fontsize=LABEL, color=INK)
    if panel.question != plan.questions[0]:
        return
    for column, name in enumerate(plan.across):
        at = (panel.left + (column + 0.42) * CELL[0], panel.top - 0.06)
        look: dict[str, Any] = {"rotation": 40, "rotation_mode": "anchor", "va": "bottom", "ha": "left"}
        axes.text(*at, visible(name), fontsize=LABEL - 1, color=INK, **look)
    longest = plan.block.trained[1]
    length = f"{panel.length // longest}×, n = {panel.length}"
    axes.text(panel.left, panel.top - plan.slant, length, va="bottom", fontsize=LABEL, color=FAINT)
    if panel.length == plan.block.at[0]:
        group = visible(panel.group.replace("-", " "))
        axes.text(panel.left, panel.top - plan.slant - 0.22, group, va="bottom", fontsize=HEADING, color=INK)


def _cell(axes: Axes, corner: tuple[float, float], entry: Entry | None, panel: Panel, block: Grids) -> None:
    from matplotlib.patches import Rectangle

    series = next((series for series in entry.series if series.question == panel.question), None) if entry else None
    score = series.at(panel.length) if series else Score(panel.length)
    known = series is not None and score.mean is not None
    learned = series is not None and _learned(series, block)
    good = learned and (score.mean or 0) > GOOD
    fill: dict[str, Any] = {"fc": shade(score.mean or 0)} if learned else NOT_LEARNED
    (left, top), (wide, high) = corner, CELL
    axes.add_patch(Rectangle((left + 0.012, top + 0.012), wide - 0.024, high - 0.024, lw=0, **fill))
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": "white" if good else INK if learned else "#555555"}
    look |= {"fontweight": "bold" if good else "normal", "fontstyle": "normal" if learned else "italic"}
    middle = top + high * (0.36 if score.spread else 0.5)
    axes.text(left + wide / 2, middle, f"{score.mean:.2f}" if known else "–", fontsize=NUMBER, **look)
    if score.spread:
        low, high_end = score.spread
        look["fontweight"] = "normal"
        axes.text(left + wide / 2, top + 0.76 * high, f"{low:.2f}–{high_end:.2f}", fontsize=RANGE, **look)


def _learned(series: Series, block: Grids) -> bool:
    return (series.at(block.trained[1]).mean or 0) >= block.learned


def _caption(block: Grids) -> str:
    counts = sorted({len(entry.series[0].seeds) for entry in block.entries if entry.series[0].seeds})
    seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
    spread = "" if counts == [1] else " Small: the lowest and the highest seed."
    return (
        f"Share of samples with all questions, or one, right; mean over {seeds}.{spread} Green: above {GOOD:.2f}. "
        f"Hatched, in italics: not learned (below {block.learned:.2f} at n = {block.trained[1]}, the longest training length), "
        "so that its reach is not known. –: not measured."
    )
