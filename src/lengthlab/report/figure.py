"""The figure: accuracy over length, a panel for each question, the training range shaded, chance and intervals drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve
from lengthlab.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart by colour-blind readers too."""
TITLES = {"both": "both right"}


def blank(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LabError("figures need matplotlib: pip install 'lengthlab[report]'") from None
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def figure(curves: Sequence[Curve]) -> Figure:
    """All curves in one figure; runs that differ in their seed alone share a colour, their mean is drawn thick."""
    questions = curves[0].questions
    return panels(questions, 4.2 * len(questions) + 0.4, 4.0, lambda axes, question: _panel(axes, curves, question))


def panels(questions: Sequence[str], width: float, height: float, draw: Callable[[Axes, str], None]) -> Figure:
    """A panel for each question, side by side, with one legend below."""
    drawing = blank(width, height)
    row = drawing.subplots(1, len(questions), sharey=True, squeeze=False)[0]
    for axes, question in zip(row, questions, strict=True):
        draw(axes, question)
    row[0].set_ylabel("accuracy")
    handles, labels = row[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)), frameon=False)
    return drawing


def _panel(axes: Axes, curves: Sequence[Curve], question: str) -> None:
    lengths = sorted({length for curve in curves for length in curve.lengths})
    shade_trained(axes, curves[0].trained)
    chance = curves[0].chance.get(question)
    if chance is not None:
        axes.axhline(chance, color="#777777", ls=":", lw=1.2, label="chance")
    groups = _groups(curves)
    for place, (name, group) in enumerate(groups.items()):
        of_runs = [[row for length in curve.lengths if (row := curve.row(length, question))] for curve in group]
        draw_runs(axes, name, of_runs, {**_look(place, group[0], groups), "zorder": 20 - place})
    if lengths[-1] > 20 * lengths[0]:
        axes.set_xscale("log")
    axes.set_xticks(lengths, [str(length) for length in lengths])
    finish(axes, question)


def shade_trained(axes: Axes, trained: tuple[int, int]) -> None:
    """The training range, under all that is drawn."""
    axes.axvspan(trained[0], trained[1], color="#DDDDDD", alpha=0.6, lw=0, label="training range")


def finish(axes: Axes, question: str) -> None:
    """What all panels of accuracy over length have in common, once lengths are marked."""
    axes.set_title(TITLES.get(question, question))
    axes.set_xlabel("length n")
    axes.set_ylim(-0.03, 1.03)
    axes.minorticks_off()
    axes.grid(axis="y", color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _groups(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """Curves that differ in their seed alone, by what they are called in the legend."""
    several = len({curve.first.model for curve in curves}) > 1
    by_settings: dict[tuple[str, ...], list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.first.training, curve.first.model)):
        name = f"{curve.first.model}, {curve.first.training}" if several else curve.first.training
        by_settings.setdefault((name, str(curve.made.get("settings", ""))), []).append(curve)
    names = [name for name, _ in by_settings]
    return {
        name if names.count(name) == 1 else f"{name} ({settings[:6]})": group for (name, settings), group in by_settings.items()
    }


def _look(place: int, curve: Curve, groups: Mapping[str, Sequence[Curve]]) -> dict[str, str]:
    """A colour for each group; with several models and trainings, one for each model, and the training shows in the line."""
    firsts = [group[0].first for group in groups.values()]
    models, trainings = (sorted({getattr(first, name) for first in firsts}) for name in ("model", "training"))
    if len(models) == 1 or len(firsts) != len({(first.model, first.training) for first in firsts}):
        return {"color": COLOURS[place % len(COLOURS)], "ls": "-"}
    line = ("-", "--", "-.")[trainings.index(curve.first.training) % 3]
    return {"color": COLOURS[models.index(curve.first.model) % len(COLOURS)], "ls": line}


def draw_runs(axes: Axes, name: str, of_runs: Sequence[Sequence[Row]], look: dict[str, Any]) -> None:
    """Runs that differ in their seed alone: each thin with its intervals, their mean thick."""
    by_length: dict[int, list[float]] = {}
    for rows in of_runs:
        lows = [row.accuracy - row.interval[0] for row in rows]
        highs = [row.interval[1] - row.accuracy for row in rows]
        style = look | {"alpha": 1.0 if len(of_runs) == 1 else 0.45, "lw": 0.8, "marker": "o", "ms": 3.5, "capsize": 2.5}
        axes.errorbar([row.length for row in rows], [row.accuracy for row in rows], yerr=[lows, highs], **style)
        for row in rows:
            by_length.setdefault(row.length, []).append(row.accuracy)
    seeds = f" ({len(of_runs)} seeds)" if len(of_runs) > 1 else ""
    means = [sum(values) / len(values) for _, values in sorted(by_length.items())]
    axes.plot(sorted(by_length), means, **look, lw=2.4, label=f"{name}{seeds}")


def pictures(curves: Sequence[Curve]) -> dict[str, bytes]:
    """`accuracy.png` and `accuracy.svg`; a pair for each task and training range where there are several."""
    kinds: dict[str, list[Curve]] = {}
    for curve in curves:
        chance = f"{curve.chance['both']:.3g}"
        kinds.setdefault(f"-{curve.first.task}-{chance}-{curve.trained[0]}-{curve.trained[1]}", []).append(curve)
    drawings = {kind if len(kinds) > 1 else "": figure(group) for kind, group in kinds.items()}
    return {f"accuracy{kind}.{form}": rendered(drawing, form) for kind, drawing in drawings.items() for form in ("png", "svg")}


def rendered(drawing: Figure, form: str) -> bytes:
    """The same drawing is the same file, bit for bit."""
    from matplotlib import rc_context

    data = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lengthlab"}):
        # A date inside would make every picture a new file.
        drawing.savefig(data, format=form, dpi=160, metadata={"Date": None} if form == "svg" else None)
    return data.getvalue()
