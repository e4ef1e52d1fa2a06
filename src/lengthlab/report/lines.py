"""Accuracy over length as lines: a panel for each question, each seed thin and their mean thick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lengthlab.report.page import Curves, Entry, title_of, visible
from lengthlab.report.scores import Series
from lengthlab.store.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart by colour-blind readers too."""
BESIDE = ("#999999", "#D55E00", "#CC79A7")
"""Of what is drawn thin behind the curves, by group."""


def draw_lines(block: Curves) -> Figure:
    """Accuracy over length, a panel for each question: the mean over seeds thick, each seed thin with its interval."""
    questions = list(dict.fromkeys(series.question for entry in block.entries for series in entry.series))
    return _panels(questions, lambda axes, question: _panel(axes, block, question))


def _panels(questions: Sequence[str], fill: Callable[[Axes, str], None]) -> Figure:
    """Side by side, with one legend below."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(4.4 * len(questions) + 0.4, 4.2), layout="constrained", facecolor="white")
    row = drawing.subplots(1, len(questions), sharey=True, squeeze=False)[0]
    for axes, question in zip(row, questions, strict=True):
        fill(axes, question)
    row[0].set_ylabel("accuracy")
    handles, labels = row[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    return drawing


def _panel(axes: Axes, block: Curves, question: str) -> None:
    lengths = sorted(block.lengths)
    axes.axvspan(*block.trained, color="#DDDDDD", alpha=0.6, lw=0, label="training range")
    chance = {length: share for length, share in block.chance.get(question, {}).items() if length in lengths}
    if chance:
        axes.plot(sorted(chance), [chance[n] for n in sorted(chance)], color="#777777", ls=":", lw=1.2, label="chance")
    _draw_beside(axes, block.beside, question)
    labels = legend_names(block.entries)
    for place, (entry, label) in enumerate(zip(block.entries, labels, strict=True)):
        line = {**_look(place, entry, block.entries), "zorder": 20 - place}
        for series in entry.series:
            if series.question == question:
                _draw_seeds(axes, label, series, line)
    if lengths[-1] > 20 * lengths[0]:
        axes.set_xscale("log")
        axes.set_xlim(left=min(lengths[0], block.trained[1]) / 3)
    look: dict[str, Any] = {"fontsize": 8, "rotation": 45} if len(lengths) > 8 else {}
    axes.set_xticks(lengths, [str(length) for length in lengths], **look)
    axes.set_title(title_of(question))
    axes.set_xlabel("length n")
    axes.set_ylim(-0.03, 1.03)
    axes.minorticks_off()
    axes.grid(axis="y", color="#EEEEEE")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_names(entries: Sequence[Entry]) -> list[str]:
    """The arm and the training of each, and what else differs between them.

    >>> legend_names([Entry((("model", "lstm"), ("training", word)), ()) for word in ("delayed", "end-to-end")])
    ['delayed', 'end-to-end']
    """
    names = [dict(entry.names) for entry in entries]
    columns = list(dict.fromkeys(column for each in names for column in each))
    differ = [column for column in columns if len({each.get(column, "") for each in names}) > 1]
    told = [column for column in columns if column in differ or column in ("arm", "training")] or columns[:1]
    return [visible(", ".join(each[column] for column in told if each.get(column))) for each in names]


def _look(place: int, entry: Entry, entries: Sequence[Entry]) -> dict[str, str]:
    """A colour for each entry; with several models and trainings, one for each model, and the training shows in the line."""
    pairs = [(names.get("model", ""), names.get("training", "")) for names in (dict(each.names) for each in entries)]
    models, trainings = (list(dict.fromkeys(words)) for words in zip(*pairs, strict=True))
    if len(models) == 1 or len(set(pairs)) < len(pairs):
        return {"color": COLOURS[place % len(COLOURS)], "ls": "-"}
    model, training = pairs[place]
    line = ("-", "--", "-.")[trainings.index(training) % 3]
    return {"color": COLOURS[models.index(model) % len(COLOURS)], "ls": line}


def _draw_seeds(axes: Axes, label: str, series: Series, look: Mapping[str, Any]) -> None:
    """Each seed thin with its intervals, their mean thick."""
    seeds = series.seeds
    for seed in seeds:
        rows = series.of_seed(seed)
        style = {**look, "alpha": 1.0 if len(seeds) == 1 else 0.45, "lw": 0.8, "marker": "o", "ms": 3.5, "capsize": 2.5}
        axes.errorbar([row.length for row in rows], [row.accuracy for row in rows], yerr=_bars(rows), **style)
    means = [(score.length, score.mean) for score in series.scores if score.mean is not None]
    several = f" ({len(seeds)} seeds)" if len(seeds) > 1 else ""
    axes.plot([n for n, _ in means], [mean for _, mean in means], **look, lw=2.4, label=f"{label}{several}")


def _bars(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return [row.accuracy - row.interval[0] for row in rows], [row.interval[1] - row.accuracy for row in rows]


def _draw_beside(axes: Axes, entries: Sequence[Entry], question: str) -> None:
    """Every seed of every entry, thin; one entry in the legend for each group."""
    groups = list(dict.fromkeys(entry.group for entry in entries))
    known: set[str] = set()
    for entry in entries:
        colour = BESIDE[groups.index(entry.group) % len(BESIDE)]
        for series in entry.series:
            for seed in series.seeds if series.question == question else ():
                rows = series.of_seed(seed)
                label = None if entry.group in known else f"{visible(entry.title)}, each seed"
                known.add(entry.group)
                axes.plot([r.length for r in rows], [r.accuracy for r in rows], color=colour, lw=0.8, alpha=0.8, label=label)
