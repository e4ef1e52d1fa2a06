"""Who carries the answer, as lines: accuracy over length of the whole model, and with attention or the state cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthlab.report.lines import panels, scale
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.page import title_of
from lengthlab.report.style import COLOURS, DASHES, MARKERS, SHADE, legend_below, points, tidy, write_title
from lengthlab.store.diagnosis import ANOTHER, ATTENTION, RESET, ZEROS, Diagnosis, Pathways

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHOLE = "whole"
CUTS = {
    WHOLE: "nothing cut",
    ATTENTION: "attention cut",
    ANOTHER: "state of another sequence",
    ZEROS: "state begins anew",
    RESET: "state anew where the range ends",
}
Point = tuple[int, float]


@dataclass(frozen=True)
class Carried(FigureBlock):
    """`diagnoses`: one for each seed of a setting. A panel for each of its `questions`."""

    diagnoses: tuple[Diagnosis, ...] = ()
    questions: tuple[str, ...] = ()


def draw_carried(block: Carried) -> Figure:
    """Each seed thin, the mean over seeds thick."""
    drawing, row = panels(block, len(block.questions))
    for axes, question in zip(row, block.questions, strict=True):
        _panel(axes, block, question)
    write_title(drawing, block.title)
    named = {label: handle for axes in row for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    legend_below(drawing, list(named.values()), list(named), "")
    return drawing


def _panel(axes: Axes, block: Carried, question: str) -> None:
    seeds = [[row for row in found.pathways if row.question == question] for found in block.diagnoses]
    rows = [row for seed in seeds for row in seed]
    axes.axvspan(*block.trained, color=SHADE, alpha=0.6, lw=0, label="training range")
    chance = sorted({(row.length, row.chance) for row in rows})
    axes.plot(*zip(*chance, strict=True), ls=":", color="#777777", lw=points(1.2), label="chance")
    for number, (cut, name) in enumerate(CUTS.items()):
        known = [points_of(seed, cut) for seed in seeds]
        look = {"color": COLOURS[number], "ls": DASHES[number % len(DASHES)]}
        for line in known if len(known) > 1 else []:
            axes.plot([n for n, _ in line], [share for _, share in line], color=COLOURS[number], lw=points(0.8), alpha=0.45)
        means = list(_means(known))
        if means:
            mark = {"marker": MARKERS[number], "ms": points(4.5), "lw": points(2)}
            axes.plot(*zip(*means, strict=True), label=name, **look, **mark)  # type: ignore[arg-type]
    scale(axes, sorted({row.length for row in rows}), block)
    axes.set_title(title_of(question), fontsize=points(11))
    axes.set_xlabel("length n")
    axes.set_ylim(-0.03, 1.05)
    tidy(axes, "y")


def points_of(rows: Sequence[Pathways], cut: str) -> list[Point]:
    """Accuracy by length with this cut, as far as it was measured.

    >>> points_of([Pathways(20, "recall", 200, 0.1, 0.9, {"attention": 0.1})], "attention")
    [(20, 0.1)]
    """
    shares = [(row.length, row.whole if cut == WHOLE else row.cut.get(cut)) for row in rows]
    return sorted((length, share) for length, share in shares if share is not None)


def _means(lines: Sequence[Sequence[Point]]) -> Iterator[Point]:
    for length in sorted({length for line in lines for length, _ in line}):
        shares = [share for line in lines for at, share in line if at == length]
        yield length, sum(shares) / len(shares)
