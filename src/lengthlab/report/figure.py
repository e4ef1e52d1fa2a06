"""Figures, drawn of the blocks of a page. The same block is the same file, bit for bit."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lengthlab.errors import LabError
from lengthlab.report.grids import draw_grids
from lengthlab.report.heatmap import draw_heatmap
from lengthlab.report.lines import draw_lines
from lengthlab.report.page import Curves, Grids, Heatmap, Page, Strips
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.plane import draw_planes
from lengthlab.report.strips import draw_strips
from lengthlab.rules.plane import Plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pictures(page: Page, forms: Sequence[str] = ("svg", "png")) -> dict[str, bytes]:
    """`NAME.svg` and `NAME.png` of every figure of a page."""
    drawn = {figure.name: draw(figure) for figure in page.figures}
    return {f"{name}.{form}": rendered(drawing, form) for name, drawing in drawn.items() for form in forms}


def plane_pictures(planes: Sequence[Plane], title: str) -> dict[str, bytes]:
    """`square.svg` and `square.png` of Leave-Square-Out."""
    with _settings():
        drawing = draw_planes(planes, title)
    return {f"square.{form}": rendered(drawing, form) for form in ("svg", "png")}


def draw(block: FigureBlock) -> Figure:
    """A figure of a page, as matplotlib has it."""
    with _settings():
        match block:
            case Heatmap():
                return draw_heatmap(block)
            case Curves():
                return draw_lines(block)
            case Grids():
                return draw_grids(block)
            case Strips():
                return draw_strips(block)
    raise TypeError(f"nobody draws {type(block).__name__}")


@contextmanager
def _settings() -> Iterator[None]:
    try:
        from matplotlib import rc_context, rcParamsDefault
    except ImportError:
        raise LabError("figures need matplotlib: pip install 'lengthlab[report]'") from None
    # As matplotlib comes, not as somebody has set it up, and whatever stands in a name is text: a dollar begins no formula.
    usual = {name: value for name, value in rcParamsDefault.items() if not name.startswith("backend")}
    with rc_context({**usual, "svg.fonttype": "none", "svg.hashsalt": "lengthlab", "text.parse_math": False}):
        yield


def rendered(drawing: Figure, form: str) -> bytes:
    """The content of a file of this form."""
    data = io.BytesIO()
    with _settings():
        # A date inside would make every picture a new file.
        drawing.savefig(data, format=form, dpi=160, metadata={"Date": None} if form == "svg" else None)
    return data.getvalue()
