"""The plane of Leave-Square-Out as a figure: where a model that adds goes wrong, beside a random split of the same size.

What a model was trained on and has right is nearly white, what was held out and it has right is light blue, and whatever it
has wrong is dark orange: lighter and darker, so that it reads without colour too. Of several seeds, the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lengthlab.report.page import visible
from lengthlab.report.style import FAINT, INK, LETTER, wrapped
from lengthlab.rules.plane import SIDE, Held, Plane, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEEN, KNOWN, WRONG = (0.957, 0.949, 0.929), (0.557, 0.765, 0.902), (0.725, 0.275, 0.0)
"""Right and trained on, right and held out, wrong."""
TITLES: dict[Held, str] = {"square": "A square is held out", "random": "As many pairs are held out at random"}
PANEL, GAP, LEFT, HEAD, UNDER, FOOT = 2.7, 0.55, 0.85, 0.92, 1.0, 0.0
"""Inches."""


def draw_planes(planes: Sequence[Plane], title: str) -> Figure:
    """A row of panels for each model, a column for each split."""
    from matplotlib.figure import Figure

    groups = in_order(planes)
    models = list(dict.fromkeys(model for model, _ in groups))
    splits: list[Held] = [held for held in TITLES if any(held == other for _, other in groups)]
    columns = max(2, len(splits))  # the title and the legend take as much
    width = LEFT + columns * PANEL + (columns - 1) * GAP + 0.25
    height = HEAD + len(models) * (PANEL + UNDER) + FOOT
    drawing = Figure(figsize=(width, height), facecolor="white")
    drawing.text(
        0.12 / width, 1 - 0.24 / height, wrapped(title, int(width / (11.5 * LETTER))), fontsize=11.5, fontweight="bold",
        color=INK, va="center",
    )  # fmt: skip
    for (model, held), seeds in groups.items():
        row, column = models.index(model), splits.index(held)
        left, top = LEFT + column * (PANEL + GAP), HEAD + row * (PANEL + UNDER)
        box = (left / width, 1 - (top + PANEL) / height, PANEL / width, PANEL / height)
        _panel(drawing.add_axes(box), seeds, TITLES[held] if row == 0 else "", model if column == 0 else "")
    _legend(drawing, width, height)
    return drawing


def colours(seeds: Sequence[Plane]) -> NDArray[np.float64]:
    """colour_AB3 of the mean over seeds."""
    wrong_AB1 = 1 - np.mean([plane.correct for plane in seeds], axis=0)[:, :, None]
    held_AB1 = np.mean([plane.split.held_out for plane in seeds], axis=0)[:, :, None]
    right_AB3 = held_AB1 * np.array(KNOWN) + (1 - held_AB1) * np.array(SEEN)
    return np.asarray((1 - wrong_AB1) * right_AB3 + wrong_AB1 * np.array(WRONG))


def _panel(axes: Axes, seeds: Sequence[Plane], title: str, model: str) -> None:
    from matplotlib.patches import Rectangle

    # The first number goes across and the second up, as on any plane.
    image_BA3 = colours(seeds).transpose(1, 0, 2)
    axes.imshow(image_BA3, origin="lower", interpolation="none", extent=(-0.5, SIDE - 0.5, -0.5, SIDE - 0.5))
    split = seeds[0].split
    if split.held == "square":
        corner, side = [number - split.half - 0.5 for number in split.centre], 2 * split.half + 1
        axes.add_patch(Rectangle((corner[0], corner[1]), side, side, fill=False, ec=INK, lw=1.1))
    axes.set_xticks([0, 25, 50, 75, SIDE - 1])
    axes.set_yticks([0, 25, 50, 75, SIDE - 1])
    axes.tick_params(labelsize=8, colors=FAINT, length=2.5)
    axes.spines[:].set_color("#BBBBBB")
    if title:
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    if model:
        axes.set_ylabel(f"{wrapped(model, 30)}\nsecond number", fontsize=9, color=INK)
    axes.set_xlabel("\n".join(["first number", *_counts(seeds)]), fontsize=8.5, color=INK, linespacing=1.4)


def _counts(seeds: Sequence[Plane]) -> tuple[str, str]:
    """What is right of both kinds, with the sizes of the split."""
    held, trained = seeds[0].split.size, SIDE * SIDE - seeds[0].split.size

    def share(kind: bool, of: int) -> str:
        shares = [plane.right(kind) / of for plane in seeds]
        spread = f" ({min(shares):.3f} to {max(shares):.3f})" if len(seeds) > 1 else ""
        return f"{sum(shares) / len(shares):.3f}{spread} of {of:,} right"

    return f"held out: {share(True, held)}", f"trained on: {share(False, trained)}"


def _legend(drawing: Figure, width: float, height: float) -> None:
    from matplotlib.patches import Patch

    names: Mapping[str, Any] = {"trained on, right": SEEN, "held out, right": KNOWN, "wrong": WRONG}
    patches = [Patch(fc=colour, ec="#BBBBBB", lw=0.6, label=visible(name)) for name, colour in names.items()]
    place = ((LEFT - 0.1) / width, 1 - 0.52 / height)
    drawing.legend(handles=patches, loc="center left", bbox_to_anchor=place, ncols=3, fontsize=8.5, frameon=False,
                   handlelength=1.1, handleheight=1.1, columnspacing=1.4, labelcolor=INK, borderpad=0)  # fmt: skip
