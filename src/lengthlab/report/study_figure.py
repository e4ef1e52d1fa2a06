"""A study as a figure: a few arms as curves over length, many as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthlab.paper.cells import CELLS, GREEN, HYBRIDS
from lengthlab.report.comparison import Line, compare
from lengthlab.report.figure import COLOURS, TITLES, blank, draw_runs, finish, panels, rendered, shade_trained
from lengthlab.report.grid import FAINT, INK, shade
from lengthlab.report.study import QUESTIONS, Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = len(COLOURS)
PAPER = {"delayed": COLOURS[1], "end-to-end": "#999999"}
"""The colour of the paper's hybrids, by how they are trained."""


def study_pictures(study: Findings) -> dict[str, bytes]:
    """`NAME.svg` and `NAME.png`; none where there are no rows."""
    if not study.rows:
        return {}
    drawing = study_curves(study) if len(study.cells) <= FEW else study_map(study)
    return {f"{study.name}.{form}": rendered(drawing, form) for form in ("svg", "png")}


def study_curves(study: Findings) -> Figure:
    """Accuracy over length, a panel for each question: the mean over seeds thick, each seed thin with its interval."""
    return panels(QUESTIONS, 4.4 * len(QUESTIONS) + 0.4, 4.2, lambda axes, question: _panel(axes, study, question))


def _panel(axes: Axes, study: Findings, question: str) -> None:
    shade_trained(axes, (1, study.longest))
    _draw_paper(axes, study, question)
    for line, colour in zip(study.lines(question), COLOURS, strict=False):
        of_seeds = [[row for entry in line.entries for row in entry.rows if row.seed == seed] for seed in line.seeds]
        draw_runs(axes, f"{line.cell.part}, {line.cell.training}", of_seeds, {"color": colour})
    axes.set_xscale("log")
    axes.set_xlim(left=study.longest / 3)
    axes.set_xticks(study.lengths, [str(length) for length in study.lengths], fontsize=8, rotation=45)
    finish(axes, question)


def _draw_paper(axes: Axes, study: Findings, question: str) -> None:
    """Every seed of every hybrid of the paper's figure, thin; one entry in the legend for each training."""
    for training, colour in PAPER.items():
        cells = [cell for cell in CELLS if (cell.part, cell.training) == ("figure1", training) and cell.model in HYBRIDS]
        label: str | None = f"the paper's hybrids, {training.replace('-', ' ')}, each seed"
        for line in compare(study.beside, cells, question):
            for seed in line.seeds:
                known = [(entry.length, entry.by_seed[seed]) for entry in line.entries if seed in entry.by_seed]
                axes.plot(*zip(*known, strict=True), color=colour, lw=0.8, alpha=0.8, label=label)
                label = None


def study_map(study: Findings) -> Figure:
    """Arms down, lengths across, a panel for each question and a block for each training."""
    trainings = list(dict.fromkeys(cell.training for cell in study.cells))
    names = list(dict.fromkeys(cell.part for cell in study.cells))
    drawing = blank(11.5, 0.21 * (len(names) + 3) * len(trainings) + 0.6)
    blocks = drawing.subplots(len(trainings), len(QUESTIONS), squeeze=False, sharey=True)
    for down, training in enumerate(trainings):
        for across, question in enumerate(QUESTIONS):
            lines = {line.cell.part: line for line in study.lines(question) if line.cell.training == training}
            _block(blocks[down][across], study, [lines.get(name) for name in names])
            title = f"{training.replace('-', ' ')}: {TITLES.get(question, question)}"
            blocks[down][across].set_title(title, fontsize=9, color=INK)
        blocks[down][0].set_yticks([place + 0.5 for place in range(len(names))], names, fontsize=7.5)
    return drawing


def _block(axes: Axes, study: Findings, lines: Sequence[Line | None]) -> None:
    from matplotlib.patches import Rectangle

    for top, line in enumerate(lines):
        if line is None or not line.runs:
            axes.text(0.15, top + 0.52, "missing", va="center", fontsize=6, color=FAINT, style="italic")
        for column, entry in enumerate(line.entries if line else ()):
            if entry.ours is None:
                continue
            axes.add_patch(Rectangle((column, top), 1, 1, fc=shade(entry.ours), ec="white", lw=0.6))
            ink = "white" if entry.ours > GREEN else INK
            axes.text(column + 0.5, top + 0.52, f"{entry.ours:.2f}", ha="center", va="center", fontsize=6, color=ink)
    inside = sum(length <= study.longest for length in study.lengths)
    axes.plot([inside, inside], [0, len(lines)], color=INK, lw=1.2)
    axes.set_xlim(0, len(study.lengths))
    axes.set_ylim(len(lines), 0)
    axes.set_xticks([place + 0.5 for place in range(len(study.lengths))], [study.times(n) for n in study.lengths], fontsize=7.5)
    axes.tick_params(length=0, labelcolor=FAINT)
    for spine in axes.spines.values():
        spine.set_visible(False)
