"""The figure: accuracy over length, a panel for each question, the training range shaded, chance and intervals drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart by colour-blind readers too."""
TITLES = {"both": "both right"}


def figure(curves: Sequence[Curve]) -> Figure:
    """All curves in one figure; runs that differ in their seed alone share a colour, their mean is drawn thick."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LabError("figures need matplotlib: pip install 'lengthlab[report]'") from None
    questions = curves[0].questions
    drawing = Figure(figsize=(4.2 * len(questions) + 0.4, 4.0), layout="constrained", facecolor="white")
    panels = drawing.subplots(1, len(questions), sharey=True, squeeze=False)[0]
    for axes, question in zip(panels, questions, strict=True):
        _panel(axes, curves, question)
    panels[0].set_ylabel("accuracy")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)), frameon=False)
    return drawing


def _panel(axes: Axes, curves: Sequence[Curve], question: str) -> None:
    trained = curves[0].trained
    lengths = sorted({length for curve in curves for length in curve.lengths})
    axes.axvspan(trained[0], trained[1], color="#DDDDDD", alpha=0.6, lw=0, label="training range")
    chance = curves[0].chance.get(question)
    if chance is not None:
        axes.axhline(chance, color="#777777", ls=":", lw=1.2, label="chance")
    for place, (name, group) in enumerate(_groups(curves).items()):
        _draw(axes, name, group, question, {**_look(group[0], curves), "zorder": 20 - place})
    axes.set_title(TITLES.get(question, question))
    axes.set_xlabel("length n")
    axes.set_ylim(-0.03, 1.03)
    if lengths[-1] > 20 * lengths[0]:
        axes.set_xscale("log")
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.minorticks_off()
    axes.grid(axis="y", color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _groups(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """Curves by what they are called in the legend."""
    several = len({curve.first.model for curve in curves}) > 1
    groups: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: curve.first.training):
        name = f"{curve.first.model}, {curve.first.training}" if several else curve.first.training
        if any(other.first.seed == curve.first.seed for other in groups.get(name, [])):
            name = f"{name}, run {curve.first.run}"  # the names do not tell them apart
        groups.setdefault(name, []).append(curve)
    return groups


def _look(curve: Curve, curves: Sequence[Curve]) -> dict[str, str]:
    """A colour for each training, or for each model where there are several; then the training shows in the line."""
    models, trainings = (sorted({getattr(curve.first, name) for curve in curves}) for name in ("model", "training"))
    if len(models) == 1:
        return {"color": COLOURS[trainings.index(curve.first.training) % len(COLOURS)], "ls": "-"}
    line = ("-", "--", "-.")[trainings.index(curve.first.training) % 3]
    return {"color": COLOURS[models.index(curve.first.model) % len(COLOURS)], "ls": line}


def _draw(axes: Axes, name: str, group: Sequence[Curve], question: str, look: dict[str, Any]) -> None:
    by_length: dict[int, list[float]] = {}
    for curve in group:
        rows = [row for length in curve.lengths if (row := curve.row(length, question))]
        lows = [row.accuracy - row.interval[0] for row in rows]
        highs = [row.interval[1] - row.accuracy for row in rows]
        style = look | {"alpha": 1.0 if len(group) == 1 else 0.45, "lw": 0.8, "marker": "o", "ms": 3.5, "capsize": 2.5}
        axes.errorbar([row.length for row in rows], [row.accuracy for row in rows], yerr=[lows, highs], **style)
        for row in rows:
            by_length.setdefault(row.length, []).append(row.accuracy)
    seeds = f" ({len(group)} seeds)" if len(group) > 1 else ""
    means = [sum(values) / len(values) for _, values in sorted(by_length.items())]
    axes.plot(sorted(by_length), means, **look, lw=2.4, label=f"{name}{seeds}")


def save_figure(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """`accuracy.png` and `accuracy.svg` in the folder; a pair for each task and training range where there are several."""
    kinds: dict[str, list[Curve]] = {}
    for curve in curves:
        kinds.setdefault(f"-{curve.first.task}-{curve.trained[0]}-{curve.trained[1]}", []).append(curve)
    drawings = {kind if len(kinds) > 1 else "": figure(group) for kind, group in kinds.items()}
    return [path for kind, drawing in drawings.items() for path in _save(drawing, folder / f"accuracy{kind}")]


def _save(drawing: Figure, stem: Path) -> list[Path]:
    from matplotlib import rc_context

    paths = [Path(f"{stem}.png"), Path(f"{stem}.svg")]
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lengthlab"}):
        for path in paths:
            # A date inside would make every picture a new file.
            drawing.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths
