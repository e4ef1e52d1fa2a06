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
LETTER = 0.0078
"""Inches that a letter takes, in the mean, for each point of its size."""
SMALL = 8.5


def renderer_of(drawing: Figure) -> RendererBase:
    """What measures texts before anything is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer: RendererBase = FigureCanvasAgg(drawing).get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def write_title(drawing: Figure, title: str) -> None:
    """Bold, on the left, in as many lines as it takes."""
    letters = max(10, int(drawing.get_figwidth() / (12.5 * LETTER)))
    drawing.suptitle(wrapped(title, letters), x=0.012, ha="left", fontsize=12, fontweight="bold", color=INK)


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
    letters = int(wide / (9 * LETTER))
    columns = min(4, len(labels))
    while True:
        look: dict[str, Any] = {"fontsize": 9, "frameon": False, "title_fontsize": SMALL, "alignment": "center"}
        names = [wrapped(label, max(4, letters - 8)) for label in labels]
        title = wrapped(caption, letters)
        legend = drawing.legend(handles, names, loc="outside lower center", ncols=columns, title=title, **look)
        legend.get_title().set_color(FAINT)
        legend.get_title().set_multialignment("center")
        extent = legend.get_window_extent(renderer)
        if extent.width <= 0.98 * wide * inch or letters < 8:
            break
        legend.remove()
        columns, letters = (columns - 1, letters) if columns > 1 else (1, int(0.9 * letters))
    drawing.set_figheight(drawing.get_figheight() + extent.height / inch)
