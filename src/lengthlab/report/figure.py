"""Figures, drawn of the blocks of a page. The same block is the same file, bit for bit."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lengthlab.errors import LabError
from lengthlab.report.carried import Carried, draw_carried
from lengthlab.report.costs import Cost, draw_costs
from lengthlab.report.grids import draw_grids
from lengthlab.report.heatmap import draw_heatmap
from lengthlab.report.lines import draw_lines
from lengthlab.report.page import Curves, Grids, Heatmap, Page, Strips
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.plane import draw_planes
from lengthlab.report.reach import Reach, draw_reach
from lengthlab.report.strips import draw_strips
from lengthlab.report.training_figure import Training, draw_training
from lengthlab.rules.plane import Plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PAPER = 0.8
"""How large letters are in a figure of a paper: between 7 and 9 points."""


def pictures(page: Page, forms: Sequence[str] = ("svg", "png")) -> dict[str, bytes]:
    """`NAME.svg` and `NAME.png` of every figure of a page."""
    drawn = {figure.name: draw(figure) for figure in page.figures}
    return {f"{name}.{form}": rendered(drawing, form) for name, drawing in drawn.items() for form in forms}


def plane_pictures(planes: Sequence[Plane], title: str) -> dict[str, bytes]:
    """`square.svg` and `square.png` of Leave-Square-Out."""
    with _settings():
        drawing = draw_planes(planes, title)
    return {f"square.{form}": rendered(drawing, form) for form in ("svg", "png")}


def cost_pictures(costs: Sequence[Cost], title: str, caption: str) -> dict[str, bytes]:
    """`reading.svg` and `reading.png` of what long sequences take."""
    with _settings():
        drawing = draw_costs(costs, title, caption)
    return {f"reading.{form}": rendered(drawing, form) for form in ("svg", "png")}


def draw(block: FigureBlock) -> Figure:
    """A figure of a page, as matplotlib has it."""
    with _settings(PAPER if block.width else 1.0):
        match block:
            case Reach():
                return draw_reach(block)
            case Carried():
                return draw_carried(block)
            case Training():
                return draw_training(block)
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
def _settings(share: float = 1.0) -> Iterator[None]:
    """`share`: how large letters are, of what they usually are."""
    try:
        from matplotlib import rc_context, rcParamsDefault
    except ImportError:
        raise LabError("figures need matplotlib: pip install 'lengthlab[report]'") from None
    # As matplotlib comes, not as somebody has set it up, and whatever stands in a name is text: a dollar begins no formula.
    usual = {name: value for name, value in rcParamsDefault.items() if not name.startswith("backend")}
    ours = {"svg.fonttype": "none", "svg.hashsalt": "lengthlab", "text.parse_math": False, "pdf.fonttype": 42}
    settings: Any = usual | ours | {"font.size": share * 10}
    with rc_context(settings):
        yield


def rendered(drawing: Figure, form: str, dpi: int = 160) -> bytes:
    """The content of a file of this form: svg, png, or pdf, which has its letters as fonts inside."""
    data = io.BytesIO()
    with _settings():
        # A date inside would make every picture a new file.
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        drawing.savefig(data, format=form, dpi=dpi, metadata=dates.get(form))
    return data.getvalue()
