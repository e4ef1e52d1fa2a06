"""A study as a figure: a few arms as curves over length, many as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lengthlab.paper.cells import GREEN
from lengthlab.report.comparison import Line
from lengthlab.report.figure import COLOURS, blank, rendered
from lengthlab.report.grid import FAINT, INK, shade
from lengthlab.report.study import QUESTIONS, Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = len(COLOURS)
TITLES = {"both": "both right"}


def study_pictures(study: Findings) -> dict[str, bytes]:
    """`NAME.svg` and `NAME.png`; none where there are no rows."""
    if not study.rows:
        return {}
    drawing = study_curves(study) if len(study.cells) <= FEW else study_map(study)
    return {f"{study.name}.{form}": rendered(drawing, form) for form in ("svg", "png")}


def study_curves(study: Findings) -> Figure:
    """Accuracy over length, a panel for each question: the mean over seeds thick, each seed thin with its interval."""
    drawing = blank(4.4 * len(QUESTIONS) + 0.4, 4.2)
    panels = drawing.subplots(1, len(QUESTIONS), sharey=True, squeeze=False)[0]
    for axes, question in zip(panels, QUESTIONS, strict=True):
        _panel(axes, study, question)
    panels[0].set_ylabel("accuracy")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawing


def _panel(axes: Axes, study: Findings, question: str) -> None:
    axes.axvspan(1, study.longest, color="#DDDDDD", alpha=0.6, lw=0, label="training range")
    for line, colour in zip(study.lines(question), COLOURS, strict=False):
        _draw(axes, line, colour)
    axes.set_title(TITLES.get(question, question))
    axes.set_xlabel("length n")
    axes.set_xscale("log")
    axes.set_xlim(left=study.longest / 3)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks(study.lengths, [str(length) for length in study.lengths], fontsize=8, rotation=45)
    axes.minorticks_off()
    axes.grid(axis="y", color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw(axes: Axes, line: Line, colour: str) -> None:
    measured = [entry for entry in line.entries if entry.rows]
    for seed in line.seeds:
        rows = [row for entry in measured for row in entry.rows if row.seed == seed]
        errors = [[row.accuracy - row.interval[0] for row in rows], [row.interval[1] - row.accuracy for row in rows]]
        look: dict[str, Any] = {"color": colour, "alpha": 0.45, "lw": 0.8, "marker": "o", "ms": 3, "capsize": 2}
        axes.errorbar([row.length for row in rows], [row.accuracy for row in rows], yerr=errors, **look)
    seeds = f" ({len(line.seeds)} seeds)" if len(line.seeds) > 1 else ""
    means = [entry.ours or 0.0 for entry in measured]
    label = f"{line.cell.part}, {line.cell.training}{seeds}"
    axes.plot([entry.length for entry in measured], means, color=colour, lw=2.4, label=label)


def study_map(study: Findings) -> Figure:
    """Arms down, lengths across, a panel for each question and a block for each training."""
    trainings = list(dict.fromkeys(cell.training for cell in study.cells))
    names = list(dict.fromkeys(cell.part for cell in study.cells))
    drawing = blank(11.5, 0.21 * (len(names) + 3) * len(trainings) + 0.6)
    panels = drawing.subplots(len(trainings), len(QUESTIONS), squeeze=False, sharey=True)
    for down, training in enumerate(trainings):
        for across, question in enumerate(QUESTIONS):
            lines = {line.cell.part: line for line in study.lines(question) if line.cell.training == training}
            _block(panels[down][across], study, [lines.get(name) for name in names])
            title = f"{training.replace('-', ' ')}: {TITLES.get(question, question)}"
            panels[down][across].set_title(title, fontsize=9, color=INK)
        panels[down][0].set_yticks([place + 0.5 for place in range(len(names))], names, fontsize=7.5)
    return drawing


def _block(axes: Axes, study: Findings, lines: Sequence[Line | None]) -> None:
    from matplotlib.patches import Rectangle

    for top, line in enumerate(lines):
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
