"""Accuracy over length as lines: a panel for each question, each seed thin and their mean thick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from lengthlab.report.line_ends import label_ends
from lengthlab.report.page import Curves, Entry, title_of, visible
from lengthlab.report.page import Figure as FigureBlock
from lengthlab.report.scores import Series
from lengthlab.report.style import COLOURS, DASHES, MARKERS, SHADE, legend_below, points, tidy, with_room, write_title
from lengthlab.store.rows import ALL, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (4.3, 3.7)
"""Inches."""
WIDE_SPAN = 20
"""Lengths that span more than this are drawn on a logarithmic axis."""
NARROW, LOW, AXIS = 2.0, 0.78, 0.8
"""Inches of a panel where a width is given; how high it is, and how long the axis of any, as shares of how wide it is."""
VISIBLE = 0.03
"""A level that is nearer to chance is not drawn."""
MOST_SEEDS = 20
"""Of more seeds no lines are drawn: nobody could tell them apart."""


def draw_lines(block: Curves) -> Figure:
    """Accuracy over length, a panel for each question: the mean over seeds thick, each seed thin with its interval."""
    questions = list(dict.fromkeys(series.question for entry in block.entries for series in entry.series))
    drawing, row = panels(block, len(questions))
    for axes, question in zip(row, questions, strict=True):
        _panel(axes, block, question)
    write_title(drawing, block.title)
    named: dict[str, Any] = {}
    for axes in row:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    labelled = label_ends(drawing, row, [label for label, _ in _labels(block.entries)])
    shown = {label: handle for label, handle in named.items() if label not in labelled}
    legend_below(drawing, list(shown.values()), list(shown), "" if block.width else caption(block.entries))
    return drawing


def panels(block: FigureBlock, number: int) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of accuracies: side by side, and as many as that has room for where its width is given."""
    from matplotlib.figure import Figure

    across = min(number, side_by_side(block.width)) if block.width else number
    down = -(-number // across)
    size = (block.width, down * min(PANEL[1], LOW * block.width / across))
    usual = (PANEL[0] * across + 0.4, PANEL[1])
    drawing = Figure(figsize=size if block.width else usual, layout="constrained", facecolor="white")
    every = [axes for row in drawing.subplots(down, across, sharey=True, squeeze=False) for axes in row]
    for axes in every[number:]:
        axes.remove()
    for axes in every[:number:across]:
        axes.set_ylabel("accuracy")
    return drawing, every[:number]


def side_by_side(width: float) -> int:
    """How many panels so many inches have room for."""
    return max(1, int(width / NARROW))


def _panel(axes: Axes, block: Curves, question: str) -> None:
    lengths = sorted(block.lengths)
    axes.axvspan(*block.trained, color=SHADE, alpha=0.6, lw=0, label="training range")
    grey: dict[str, Any] = {"color": "#777777", "lw": 1.2, "zorder": 2}
    for (label, level), dash in zip(_levels(block, question), (":", (0, (6, 3)), (0, (1, 4))), strict=False):
        axes.plot(sorted(level), [level[n] for n in sorted(level)], ls=dash, label=label, **grey)
    looks = _looks(block.entries)
    for (label, entry), look in zip(_labels(block.entries), looks, strict=True):
        for series in entry.series:
            if series.question == question and series.seeds:
                _draw_seeds(axes, label, series, look)
    scale(axes, lengths, block)
    axes.set_title(title_of(question), fontsize=points(11))
    axes.set_xlabel("length n")
    axes.set_ylim(-0.03, 1.05)
    tidy(axes, "y")


def _levels(block: Curves, question: str) -> Iterator[tuple[str, dict[int, float]]]:
    """Chance; where all questions are asked, what is reached with one of them guessed and the others right."""
    chance = {n: share for n, share in block.chance.get(question, {}).items() if n in block.lengths}
    if chance:
        yield "chance", chance
    each = {other: known for other, known in block.chance.items() if other != ALL}
    if question != ALL or len(each) != 2 or not chance:
        return
    alike: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for other, known in each.items():
        level = {n: share for n, share in known.items() if n in chance}
        if level and max(level[n] - chance[n] for n in level) > VISIBLE:
            alike.setdefault(tuple(sorted(level.items())), []).append(other)
    for levels, guessed in alike.items():
        rest = [visible(other) for other in each if other not in guessed]
        words = f"{visible(guessed[0])} guessed, {rest[0]} right" if rest else "one guessed, the other right"
        yield words, dict(levels)


def scale(axes: Axes, lengths: Sequence[int], block: FigureBlock) -> None:
    """Logarithmic where lengths span much; a tick for each length, and a number where there is room for it: the ends and the
    end of the training range first.
    """
    longest = block.trained[1]
    first, last = lengths[0], lengths[-1]
    wide = last > WIDE_SPAN * first
    if wide:
        axes.set_xscale("log")
        axes.set_xlim(left=first / 1.6 if first < longest else longest / 3)
    at = [log(length) if wide else float(length) for length in lengths]
    grid, (left, right) = axes.get_gridspec(), axes.get_xlim()
    seen = log(right / left) if wide else right - left
    inches = AXIS * grid.figure.get_figwidth() / grid.ncols * (at[-1] - at[0]) / seen  # type: ignore[union-attr]
    named = with_room(lengths, at, (first, last, longest), inches)
    axes.set_xticks(lengths, [str(length) if length in named else "" for length in lengths], fontsize=points(9))


def legend_names(entries: Sequence[Entry]) -> list[str]:
    """The arm of each, where that tells them apart; else arm and training, and what else differs between them.

    >>> legend_names([Entry((("model", "lstm"), ("training", word)), ()) for word in ("delayed", "end-to-end")])
    ['delayed', 'end-to-end']
    """
    names = [dict(entry.names) for entry in entries]
    arms = [each.get("arm", "") for each in names]
    if all(arms) and len(set(arms)) == len(arms):
        return list(map(visible, arms))
    columns = list(dict.fromkeys(column for each in names for column in each))
    differ = [column for column in columns if len({each.get(column, "") for each in names}) > 1]
    told = [column for column in columns if column in differ or column in ("arm", "training")] or columns[:1]
    return [visible(", ".join(each[column] for column in told if each.get(column))) for each in names]


def _labels(entries: Sequence[Entry]) -> list[tuple[str, Entry]]:
    """How the legend calls each entry, with how many seeds it has where these are several."""
    found = []
    for name, entry in zip(legend_names(entries), entries, strict=True):
        seeds = max((len(series.seeds) for series in entry.series), default=0)
        found.append((f"{name} ({seeds} seeds)" if seeds > 1 else name, entry))
    return found


def _looks(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A colour, dash and marker for each entry; with several trainings, and several kinds of models trained so, a colour for
    each kind, and the training shows in the dash. Later ones of a few are thinner and over the others: none is hidden.
    """
    names = [dict(entry.names) for entry in entries]
    trainings = [each.get("training", "") for each in names]
    kinds = [tuple(item for item in each.items() if item[0] != "training") for each in names]
    colours, dashes = list(dict.fromkeys(kinds)), list(dict.fromkeys(trainings))
    told = len(set(zip(kinds, trainings, strict=True))) == len(entries)
    crossed = told and 1 < len(colours) <= len(COLOURS) and 1 < len(dashes) <= len(DASHES)
    looks = []
    for place, (kind, training) in enumerate(zip(kinds, trainings, strict=True)):
        colour = colours.index(kind) if crossed else place
        dash = dashes.index(training) if crossed else place
        thin = place / 3 if len(entries) <= 4 else 1
        looks.append(
            {
                **{"color": COLOURS[colour % len(COLOURS)], "ls": DASHES[dash % len(DASHES)]},
                **{"marker": MARKERS[place % len(MARKERS)], "ms": points(7 - 3.4 * thin), "lw": points(3 - 1.3 * thin)},
                **{"zorder": 10 + place, "markeredgewidth": 0},
            }
        )
    return looks


def _draw_seeds(axes: Axes, label: str, series: Series, look: Mapping[str, Any]) -> None:
    """Each seed thin with its intervals, their mean thick; of very many seeds, the band that they lie in."""
    seeds = series.seeds
    if len(seeds) > MOST_SEEDS:
        bands = [(score.length, *score.spread) for score in series.scores if score.spread]
        lengths, lowest, highest = zip(*bands, strict=True) if bands else ((), (), ())
        axes.fill_between(lengths, lowest, highest, color=look["color"], alpha=0.1, lw=0)
    for seed in seeds if len(seeds) <= MOST_SEEDS else ():
        rows = series.of_seed(seed)
        style = {
            "color": look["color"],
            "alpha": 1.0 if len(seeds) == 1 else 0.45,
            "lw": points(0.8),
            "capsize": points(2),
            "zorder": 5,
        }
        axes.errorbar([row.length for row in rows], [row.accuracy for row in rows], yerr=_bars(rows), **style)
    means = [(score.length, score.mean) for score in series.scores if score.mean is not None]
    axes.plot([n for n, _ in means], [mean for _, mean in means], **look, label=label)


def _bars(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return [row.accuracy - row.interval[0] for row in rows], [row.interval[1] - row.accuracy for row in rows]


def caption(entries: Sequence[Entry]) -> str:
    """Which line is what: how seeds differ is one thing, how sure samples make us of each is another."""
    several = any(len(series.seeds) > 1 for entry in entries for series in entry.series)
    seeds = "Thick: the mean over seeds. Thin: each seed, with" if several else "One seed, with"
    many = any(len(series.seeds) > MOST_SEEDS for entry in entries for series in entry.series)
    band = f" A band: from the lowest to the highest of more than {MOST_SEEDS} seeds." if many else ""
    return f"{seeds} Wilson's interval at 95 % over its samples.{band}"
