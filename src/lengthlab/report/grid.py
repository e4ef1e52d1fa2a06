"""The figure in the paper's form: architectures by lengths, the number in each cell, green above 0.90.

Green is dark with bold white numbers and all else is light with dark ones, so that it reads without colour too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lengthlab.paper.cells import GREEN, LENGTHS, NOTATION, TITLES, TRAINED
from lengthlab.report.comparison import DIFFERS, MARGIN, Entry, Line
from lengthlab.report.figure import blank, rendered
from lengthlab.report.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Colour = tuple[float, float, float]
ABOVE: Colour = (0.106, 0.478, 0.337)
LOW: Colour = (0.976, 0.965, 0.941)
HIGH: Colour = (0.953, 0.796, 0.447)
INK, FAINT = "#222222", "#6B6B6B"
INSIDE = sum(length <= TRAINED[1] for length in LENGTHS)
GAP = 0.6
"""Space between what is trained end to end and what is delayed, in lines."""


def grids(results: Results) -> dict[str, bytes]:
    """`table1.svg`, `table1.png` and so on, for the parts that have rows."""
    drawn = {part: results.lines(part) for part in results.tables if any(line.seeds for line in results.lines(part))}
    drawings = {part: grid(lines) for part, lines in drawn.items()}
    return {f"{part}.{form}": rendered(drawing, form) for part, drawing in drawings.items() for form in ("svg", "png")}


def grid(lines: Sequence[Line]) -> Figure:
    """One part of the paper; a small number under ours is the paper's."""
    places = list(_places(lines))
    lowest = places[-1] + 1
    drawing = blank(10.4, 0.46 * lowest + 1.5)
    axes = drawing.subplots()
    for line, top in zip(lines, places, strict=True):
        for column, entry in enumerate(line.entries):
            _cell(axes, column, top, entry)
        axes.text(-0.15, top + 0.36, line.cell.model, ha="right", va="center", fontsize=10, color=INK)
        axes.text(-0.15, top + 0.72, _under(line), ha="right", va="center", fontsize=7.5, color=FAINT)
    _columns(axes, lowest)
    _groups(axes, lines, places)
    axes.text(0, lowest + 0.25, _caption(lines), va="top", fontsize=8, color=FAINT, linespacing=1.5)
    axes.set_xlim(-2.6, len(LENGTHS) + 0.45)
    axes.set_ylim(lowest + 1.1, -1.75)
    axes.axis("off")
    return drawing


def _under(line: Line) -> str:
    """The paper's notation; and how many seeds there are, where others have more."""
    seeds = f", {len(line.seeds)} of {len(line.seeds) + len(line.missing)} seeds" if line.missing else ""
    return f"{NOTATION[line.cell.model]}{seeds}"


def _places(lines: Sequence[Line]) -> Iterator[float]:
    """The top of each line, from above."""
    top, before = 0.0, lines[0].cell.training
    for line in lines:
        top += GAP * (line.cell.training != before)
        before = line.cell.training
        yield top
        top += 1


def _cell(axes: Axes, column: int, top: float, entry: Entry) -> None:
    from matplotlib.patches import Polygon, Rectangle

    ours = entry.ours
    good = ours is not None and ours > GREEN
    ink = "white" if good else INK
    missing: dict[str, Any] = {"facecolor": "white", "hatch": "////", "edgecolor": "#DDDDDD", "lw": 0}
    axes.add_patch(Rectangle((column + 0.02, top + 0.03), 0.96, 0.94, **missing if ours is None else {"fc": shade(ours)}))
    middle = top + (0.5 if entry.paper is None else 0.37)
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
    weight = "bold" if good else "normal"
    axes.text(column + 0.5, middle, "–" if ours is None else f"{ours:.2f}", fontsize=10.5, fontweight=weight, **look)
    if entry.paper is not None:
        axes.text(column + 0.5, top + 0.76, f"{entry.paper:.2f}", fontsize=7.5, alpha=0.8, **look)
    if entry.verdict == DIFFERS:
        right, upper = column + 0.98, top + 0.03
        # In the colour of the number: a red mark on green is no mark to many readers.
        axes.add_patch(Polygon([(right - 0.18, upper), (right, upper), (right, upper + 0.38)], facecolor=ink, lw=0))


def shade(accuracy: float) -> Colour:
    """The colour of an accuracy."""
    if accuracy > GREEN:
        return ABOVE
    share = accuracy / GREEN
    red, green, blue = (low + share * (high - low) for low, high in zip(LOW, HIGH, strict=True))
    return red, green, blue


def _columns(axes: Axes, lowest: float) -> None:
    for column, length in enumerate(LENGTHS):
        axes.text(column + 0.5, -0.15, str(length), ha="center", va="bottom", fontsize=10, color=INK)
    axes.plot([INSIDE, INSIDE], [-1.1, lowest], color=INK, lw=1.4)
    axes.text(INSIDE - 0.12, -0.72, f"trained on n ≤ {TRAINED[1]}", ha="right", va="bottom", fontsize=8.5, color=FAINT)
    axes.text(INSIDE + 0.12, -0.72, "beyond", ha="left", va="bottom", fontsize=8.5, color=FAINT)
    axes.text(-0.15, -0.15, "length n", ha="right", va="bottom", fontsize=8.5, color=FAINT)


def _groups(axes: Axes, lines: Sequence[Line], places: Sequence[float]) -> None:
    """How the lines beside it were trained, where they differ in that; and the title."""
    cell = lines[0].cell
    axes.text(-2.6, -1.45, f"{TITLES[cell.part]}: {cell.task}, ours", fontsize=12, fontweight="bold", color=INK, va="bottom")
    trainings = list(dict.fromkeys(line.cell.training for line in lines))
    for training in trainings:
        tops = [top for line, top in zip(lines, places, strict=True) if line.cell.training == training]
        middle = (tops[0] + tops[-1] + 1) / 2
        look: dict[str, Any] = {"rotation": 270, "ha": "left", "va": "center", "fontsize": 9.5, "color": INK}
        axes.text(len(LENGTHS) + 0.12, middle, training.replace("-", " "), **look)


def _caption(lines: Sequence[Line]) -> str:
    counts = sorted({len(line.seeds) for line in lines if line.seeds})
    seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
    said = f"Share of samples with every question right, mean over {seeds}. Green: above {GREEN:.2f}."
    if any(entry.paper is not None for line in lines for entry in line.entries):
        said += f"\nSmall number: the paper's. Marked corner: more than {MARGIN:.2f} apart."
    return f"{said} Hatched: not measured." if any(not line.seeds for line in lines) else said
