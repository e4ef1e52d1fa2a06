"""What all figures have in common: colours that colour-blind readers tell apart, dashes, markers, ink, and legends that fit."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lengthlab.report.page import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 2.2)), (0, (7, 1.8, 1.2, 1.8)), (0, (1.2, 1.4)))
"""Later ones are drawn over earlier ones, which show through their gaps."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, FAINT, RULE, SHADE = "#222222", "#6B6B6B", "#EEEEEE", "#DDDDDD"
LETTER, DIGIT = 0.0078, 0.0089
"""Inches that a letter takes, in the mean, and any digit, for each point of its size."""
SMALL = 8.5


def points(size: float) -> float:
    """Of a letter or a line that has this size where a figure is not made smaller, as it is for a paper."""
    from matplotlib import rcParams

    return float(size * rcParams["font.size"] / 10)


def renderer_of(drawing: Figure) -> RendererBase:
    """What measures texts before anything is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer: RendererBase = FigureCanvasAgg(drawing).get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def write_title(drawing: Figure, title: str) -> None:
    """Bold, on the left, in as many lines as it takes; none where there is none."""
    if not title:
        return
    letters = max(10, int(drawing.get_figwidth() / (12.5 * LETTER)))
    drawing.suptitle(wrapped(title, letters), x=0.012, ha="left", fontsize=points(12), fontweight="bold", color=INK)


def with_room(lengths: Sequence[int], at: Sequence[float], first: Sequence[int], inches: float) -> list[int]:
    """Of the lengths at these places, so many inches from the first to the last, those whose numbers do not touch; the `first`
    ones first.

    >>> with_room([50, 1000, 2000], [0, 10, 10.5], [2000], 2)
    [2000, 50]
    """
    span, kept = max(at) - min(at) or 1.0, list[int]()
    place = dict(zip(lengths, at, strict=True))
    for length in sorted(lengths, key=lambda n: (first.index(n) if n in first else len(first), n)):
        wide = [points(9) * DIGIT * ((len(str(length)) + len(str(other))) / 2 + 1) for other in kept]
        gaps = [abs(place[length] - place[other]) / span * inches for other in kept]
        kept += [length] if all(gap >= need for gap, need in zip(gaps, wide, strict=True)) else []
    return kept


def wrapped(text: str, letters: int) -> str:
    """In lines of so many letters; a word that is longer is broken.

    >>> wrapped("mean over seeds", 9)
    'mean over\\nseeds'
    """
    return "\n".join(wrap(visible(text), letters)) or visible(text)


def tidy(axes: Axes, grid: str) -> None:
    """Rules along one axis, and no frame."""
    axes.grid(axis=grid, color=RULE)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.minorticks_off()


def legend_below(drawing: Figure, handles: Sequence[Any], labels: Sequence[str], caption: str) -> None:
    """Below the panels, as wide as the figure at most; the figure grows by its height, so that panels keep theirs."""
    renderer, inch = renderer_of(drawing), drawing.dpi
    wide = drawing.get_figwidth()
    letters = int(wide / (points(9) * LETTER))
    columns = min(4, len(labels))
    while True:
        look: dict[str, Any] = {"fontsize": points(9), "frameon": False, "title_fontsize": points(SMALL), "alignment": "center"}
        names = [wrapped(label, max(4, letters - 8)) for label in labels]
        title = wrapped(caption, letters) if caption else None
        legend = drawing.legend(handles, names, loc="outside lower center", ncols=columns, title=title, **look)
        legend.get_title().set_color(FAINT)
        legend.get_title().set_multialignment("center")
        extent = legend.get_window_extent(renderer)
        if extent.width <= 0.98 * wide * inch or letters < 8:
            break
        legend.remove()
        columns, letters = (columns - 1, letters) if columns > 1 else (1, int(0.9 * letters))
    drawing.set_figheight(drawing.get_figheight() + extent.height / inch)
