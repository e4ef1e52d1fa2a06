"""Lines named at their ends, where there is room for all their names; else a legend names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lengthlab.report.style import points, renderer_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

FEW = 4
"""More lines are named in a legend."""
AWAY = (7, -7, 16, -16, 26, -26)
"""Points between the end of a line and its name, above or below."""


def label_ends(drawing: Figure, row: Sequence[Axes], labels: Sequence[str]) -> set[str]:
    """Name these lines at their ends in the first panel with room for all; those that were named, all or none."""
    if not 1 < len(labels) <= FEW:
        return set()
    drawing.draw_without_rendering()  # now it is known where everything is
    return next((set(labels) for axes in row if _label(drawing, axes, labels)), set())


def _label(drawing: Figure, axes: Axes, labels: Sequence[str]) -> bool:
    by_label = {str(line.get_label()): line for line in axes.get_lines()}
    if not set(labels) <= set(by_label):
        return False
    taken: list[Bbox] = []
    placed: list[Annotation] = []
    for label in labels:
        found = _place(drawing, axes, by_label[label], label, taken)
        if found is None:
            for other in placed:
                other.remove()
            return False
        placed.append(found)
        taken.append(found.get_window_extent(renderer_of(drawing)))
    return True


def _place(drawing: Figure, axes: Axes, line: Line2D, label: str, taken: Sequence[Bbox]) -> Annotation | None:
    """Above the end of a line or below it: where it lies on no line and on no other name."""
    end = (line.get_xdata()[-1], line.get_ydata()[-1])  # type: ignore[index]
    look: dict[str, Any] = {"ha": "right", "fontsize": points(9), "color": line.get_color(), "textcoords": "offset points"}
    for away in AWAY:
        text = axes.annotate(label, end, (4, away), va="bottom" if away > 0 else "top", **look)
        box = text.get_window_extent(renderer_of(drawing))
        inside = axes.bbox.contains(box.x0, box.y0) and axes.bbox.x1 + 6 >= box.x1 and box.y1 <= axes.bbox.y1
        if inside and not any(box.overlaps(other) for other in taken) and not _crossed(axes, box):
            return text
        text.remove()
    return None


def _crossed(axes: Axes, box: Bbox) -> bool:
    """Whether a line goes through a box."""
    paths = [line.get_transform().transform_path(line.get_path()) for line in axes.get_lines()]
    return any(path.intersects_bbox(box, filled=False) for path in paths)
