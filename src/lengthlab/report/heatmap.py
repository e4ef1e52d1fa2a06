"""Accuracies by model and length as a heat map: what is good is dark with bold white numbers and all else is light with dark
ones, so that it reads without colour too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lengthlab.report.page import Entry, Heatmap, title_of, visible
from lengthlab.report.scores import DIFFERS, GOOD, MARGIN, Score
from lengthlab.report.style import FAINT, INK, LETTER, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Colour = tuple[float, float, float]
DARK: Colour = (0.106, 0.478, 0.337)
LOW: Colour = (0.976, 0.965, 0.941)
HIGH: Colour = (0.953, 0.796, 0.447)


@dataclass(frozen=True)
class Measures:
    """Of a heat map: cells and gaps in inches, letters in points."""

    cell: tuple[float, float]
    number: float
    label: float
    small: float
    gap: float


LARGE = Measures(cell=(0.65, 0.46), number=10.5, label=10, small=7.5, gap=0.28)
SMALL = Measures(cell=(0.38, 0.215), number=6, label=7.5, small=6.5, gap=0.22)
MOST = 24
"""Columns that stand side by side and can still be read; where questions and lengths come to more, the first is drawn."""
HEAD, FOOT, RIGHT, EDGE = 0.82, 0.52, 0.36, 0.12
UNTITLED = 0.3
"""Where it begins without a title."""


def draw_heatmap(block: Heatmap) -> Figure:
    """Entries down, lengths across; a small number under ours is the reference's. All coordinates are inches."""
    groups = list(dict.fromkeys(entry.group for entry in block.entries))
    entries = sorted(_told_apart(block.entries), key=lambda entry: groups.index(entry.group))
    block = replace(block, entries=tuple(entries))
    several = len(block.entries[0].series) * len(block.lengths) <= MOST
    questions = len(block.entries[0].series) if several else 1
    size = LARGE if questions == 1 else SMALL
    left = max(_inches(entry, size) for entry in block.entries) + 0.2
    panel = len(block.lengths) * size.cell[0]
    tops = list(_tops(block.entries, size))
    bottom = tops[-1] + size.cell[1]
    width = left + questions * panel + (questions - 1) * size.gap + RIGHT
    edge, caption = _placed(heat_caption(block, questions), left, width, size.small + 0.5)
    foot = FOOT + max(0, caption.count("\n") - 1) * 1.5 * (size.small + 0.5) / 72
    height = bottom + (EDGE if block.width else foot)
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), facecolor="white")
    axes = drawing.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    axes.text(EDGE, 0.22, visible(_title(block)), fontsize=size.label + 2, fontweight="bold", color=INK, va="center")
    for entry, top in zip(block.entries, tops, strict=True):
        _names(axes, entry, left, top, size)
    for number in range(questions):
        start = left + number * (panel + size.gap)
        _head(axes, block, number if questions > 1 else None, start, bottom, size)
        for entry, top in zip(block.entries, tops, strict=True):
            for column, length in enumerate(block.lengths):
                _cell(axes, start + column * size.cell[0], top, entry.series[number].at(length), size)
    _groups(axes, block.entries, tops, width - RIGHT + 0.08, size)
    if block.width:
        _shrink(drawing, axes, min(1.0, block.width / width))
    else:
        axes.text(edge, bottom + 0.1, caption, va="top", fontsize=size.small + 0.5, color=FAINT, linespacing=1.5)
    return drawing


def _shrink(drawing: Figure, axes: Axes, share: float) -> None:
    """Letters and lines as all else; what was left for a title is not."""
    bottom, _ = axes.get_ylim()
    axes.set_ylim(bottom, UNTITLED)
    drawing.set_size_inches(share * drawing.get_figwidth(), share * (bottom - UNTITLED))
    for text in axes.texts:
        text.set_fontsize(share * float(text.get_fontsize()))
    for line in axes.lines:
        line.set_linewidth(share * line.get_linewidth())


def _title(block: Heatmap) -> str:
    return f"{block.title}, ours" if block.reference else block.title


def _told_apart(entries: Sequence[Entry]) -> list[Entry]:
    """By no more words than it takes: a column is left out where all entries have the same in it, and where another says it."""
    words = {column: [dict(entry.names).get(column, "") for entry in entries] for column, _ in entries[0].names}
    kept = [column for column, found in words.items() if len(set(found)) > 1 and column != "training"]
    for column in kept[::-1]:  # of two that say the same, the first stays
        if any(_says(words[other], words[column]) for other in kept if other != column):
            kept.remove(column)
    kept = kept or list(words)[:1]
    return [replace(entry, names=tuple(name for name in entry.names if name[0] in kept)) for entry in entries]


def _says(column: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a column has the words of another in its own, and tells apart what that does."""
    pairs = set(zip(column, other, strict=True))
    return len(pairs) == len(set(column)) and all(set(theirs.split()) <= set(mine.split()) for mine, theirs in pairs)


def _inches(entry: Entry, size: Measures) -> float:
    """About how wide the names of an entry are."""
    label, under = _label(entry, size)
    return max(len(visible(label)) * size.label, len(visible(under)) * size.small) * LETTER


def _label(entry: Entry, size: Measures) -> tuple[str, str]:
    """What an entry is called; and in small letters what else, and how many seeds it has where others have more."""
    label, *more = (text for _, text in entry.names)
    if size is SMALL:
        return ", ".join((label, *more)), ""
    series = entry.series[0]
    seeds = [f"{len(series.seeds)} of {len(series.seeds) + len(series.missing)} seeds"] if series.missing else []
    return label, ", ".join([*more, *seeds])


def _names(axes: Axes, entry: Entry, left: float, top: float, size: Measures) -> None:
    label, under = _label(entry, size)
    look: dict[str, Any] = {"ha": "right", "va": "center"}
    share = 0.36 if under else 0.5
    axes.text(left - 0.1, top + share * size.cell[1], visible(label), fontsize=size.label, color=INK, **look)
    axes.text(left - 0.1, top + 0.74 * size.cell[1], visible(under), fontsize=size.small, color=FAINT, **look)


def _tops(entries: Sequence[Entry], size: Measures) -> Iterator[float]:
    """Where each entry begins, from above; groups stand apart."""
    top, before = HEAD, entries[0].group
    for entry in entries:
        top += size.gap * (entry.group != before)
        before = entry.group
        yield top
        top += size.cell[1]


def _cell(axes: Axes, start: float, top: float, score: Score, size: Measures) -> None:
    from matplotlib.patches import Polygon, Rectangle

    wide, high = size.cell
    good = score.mean is not None and score.mean > GOOD
    ink = "white" if good else INK
    missing: dict[str, Any] = {"facecolor": "white", "hatch": "////", "edgecolor": "#DDDDDD", "lw": 0}
    fill = missing if score.mean is None else {"fc": shade(score.mean)}
    axes.add_patch(Rectangle((start + 0.012, top + 0.012), wide - 0.024, high - 0.024, **fill))
    middle = top + high * (0.5 if score.reference is None else 0.37)
    look: dict[str, Any] = {"ha": "center", "va": "center_baseline" if size is SMALL else "center", "color": ink}
    weight = "bold" if good else "normal"
    number = "–" if score.mean is None else f"{score.mean:.2f}"
    axes.text(start + wide / 2, middle, number, fontsize=size.number, fontweight=weight, **look)
    if score.reference is not None:
        axes.text(start + wide / 2, top + 0.76 * high, f"{score.reference:.2f}", fontsize=size.small, alpha=0.8, **look)
    if score.verdict == DIFFERS:
        right, upper = start + wide - 0.012, top + 0.012
        # In the colour of the number: a red mark on green is no mark to many readers.
        corner = [(right - 0.18 * wide, upper), (right, upper), (right, upper + 0.38 * high)]
        axes.add_patch(Polygon(corner, facecolor=ink, lw=0))


def shade(accuracy: float) -> Colour:
    """The colour of an accuracy."""
    if accuracy > GOOD:
        return DARK
    share = accuracy / GOOD
    red, green, blue = (low + share * (high - low) for low, high in zip(LOW, HIGH, strict=True))
    return red, green, blue


def _head(axes: Axes, block: Heatmap, question: int | None, start: float, bottom: float, size: Measures) -> None:
    """Lengths, the end of the training range and, where there are several, the question of a panel."""
    wide, longest = size.cell[0], block.trained[1]
    names = block.times if size is SMALL and block.times else [str(length) for length in block.lengths]
    for column, name in enumerate(names):
        axes.text(start + (column + 0.5) * wide, HEAD - 0.06, name, ha="center", va="bottom", fontsize=size.label, color=INK)
    if question is not None:
        asked = visible(block.entries[0].series[question].question)
        axes.text(start, HEAD - 0.24, title_of(asked), va="bottom", fontsize=size.label + 1.5, color=INK)
    inside = start + wide * sum(length <= longest for length in block.lengths)
    axes.plot([inside, inside], [HEAD - 0.42 if question is None else HEAD - 0.2, bottom], color=INK, lw=1.3)
    if question is None:
        look: dict[str, Any] = {"va": "bottom", "fontsize": 8.5, "color": FAINT}
        axes.text(inside - 0.08, HEAD - 0.28, f"trained on n ≤ {longest}", ha="right", **look)
        axes.text(inside + 0.08, HEAD - 0.28, "beyond", ha="left", **look)
    if not question:
        axes.text(start - 0.1, HEAD - 0.06, "length n", ha="right", va="bottom", fontsize=size.small + 1, color=FAINT)


def _groups(axes: Axes, entries: Sequence[Entry], tops: Sequence[float], at: float, size: Measures) -> None:
    """The name of each group, beside it."""
    for group in dict.fromkeys(entry.group for entry in entries):
        own = [top for entry, top in zip(entries, tops, strict=True) if entry.group == group]
        look: dict[str, Any] = {"rotation": 270, "ha": "left", "va": "center", "fontsize": size.label - 0.5, "color": INK}
        if own[-1] - own[0] + size.cell[1] > 0.07 * len(group):  # a few small lines have no room for it
            axes.text(at, (own[0] + own[-1] + size.cell[1]) / 2, visible(group.replace("-", " ")), **look)


def _placed(caption: str, left: float, width: float, points: float) -> tuple[float, str]:
    """Where a caption begins, and its lines: below the cells, or, where it has no room there, from the edge on."""
    lines = caption.split("\n")
    if LETTER * points * max(map(len, lines)) <= width - left:
        return left, caption
    return EDGE, "\n".join(wrapped(line, int((width - 2 * EDGE) / (LETTER * points))) for line in lines)


def heat_caption(block: Heatmap, questions: int) -> str:
    counts = sorted({len(entry.series[0].seeds) for entry in block.entries if entry.series[0].seeds})
    seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
    right = "every question right" if questions == 1 else "all questions, or one, right"
    spread = "" if counts == [1] else " (their range: in the table)"
    said = f"Share of samples with {right}, mean over {seeds}{spread}. Green: above {GOOD:.2f}."
    if any(score.reference is not None for entry in block.entries for score in entry.series[0].scores):
        said += f"\nSmall number: {visible(block.reference)}'s. Marked corner: more than {MARGIN:.2f} apart."
    missing = any(score.mean is None for entry in block.entries for score in entry.series[0].scores)
    return f"{said} Hatched: not measured." if missing else said
