"""Figures for papers: one of a report's, as wide as a column, in letters of 7 to 9 points, and what its caption needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lengthlab.errors import LabError, require
from lengthlab.report.carried import Carried
from lengthlab.report.compared import Compared, compared
from lengthlab.report.course import course_of
from lengthlab.report.curves import Curve
from lengthlab.report.figure import draw, rendered
from lengthlab.report.group_figures import asking, courses_of, curves_of, heatmap_of, reach_bars
from lengthlab.report.lines import caption as lines_caption
from lengthlab.report.lines import side_by_side
from lengthlab.report.page import Figure, title_of
from lengthlab.report.scores import GOOD, samples_told
from lengthlab.report.training_figure import Training
from lengthlab.report.why_section import read_diagnoses

WIDTHS = {"column": 3.25, "text": 6.75}
"""Inches of a column and of the text of a page, as conferences and journals have them."""
FORMS = ("pdf", "svg", "png")
DPI = 300
POINTS = 160
"""Of a line of a training figure."""
READABLE = 5.0
"""Points of a letter below which few can read it."""


@dataclass(frozen=True)
class Wanted:
    """Which figure. `task`: a part of what the runs to draw are about, where these are several; `questions`: none is all."""

    name: str
    width: float = WIDTHS["column"]
    task: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """A figure, and lines for its author: a caption's facts, and what is not in it."""

    content: bytes
    caption: str
    left_out: tuple[str, ...]


def paper_figure(curves: Sequence[Curve], wanted: Wanted, form: str) -> Made:
    """Of finished runs; `form` is one of FORMS."""
    require(wanted.name in FIGURES, f"there is no figure '{wanted.name}': one of {', '.join(FIGURES)}")
    require(form in FORMS, f"a figure is a file that ends in {', '.join(f'.{each}' for each in FORMS)}, not in '.{form}'")
    group = _group(compared(curves), wanted.task)
    for question in wanted.questions:
        require(question in group.questions, f"nobody was asked '{question}': one of {', '.join(group.questions)}")
    kind = FIGURES[wanted.name]
    asked = wanted.questions or tuple(group.questions)
    narrow = wanted.name in ("curves", "heatmap") and not wanted.questions and side_by_side(wanted.width) < min(2, len(asked))
    block = replace(kind.block(group, asked[:1] if narrow else asked), width=wanted.width)
    drawing = draw(block)
    content = rendered(drawing, form, DPI)
    number = len(group.settings)
    drawn = f"the best {kind.most} of {number} settings are drawn" if kind.most > 1 else f"one setting is drawn: {block.alt}"
    left = [drawn] if number > kind.most else []
    left += (
        [f"only '{asked[0]}' is drawn, as there is room for: name others by --question, or give it more --width"]
        if narrow
        else []
    )
    letters = min((float(text.get_fontsize()) for axes in drawing.axes for text in axes.texts), default=READABLE)
    left += [f"its smallest letters have {letters:.1f} points: give it more --width"] if letters < READABLE else []
    return Made(content, " ".join([*kind.words(block), *_facts(group, kind)]), tuple(left))


def _group(groups: Sequence[Compared], task: str) -> Compared:
    exact = [group for group in groups if task == group.first.first.task]
    found = exact or [group for group in groups if task in group.title]
    titles = "; ".join(group.title for group in found or groups)
    require(bool(found), f"no runs are about '{task}': there are {titles}")
    require(len(found) == 1, f"runs that cannot be in one figure, choose by --task: {titles}")
    return found[0]


def _facts(group: Compared, kind: Kind) -> list[str]:
    """Of all runs of the group; on how many samples, where the figure shows accuracies that were measured at the end."""
    seeds = sorted({curve.first.seed for setting in group.settings for curve in setting.curves})
    rows = [row for setting in group.settings for curve in setting.curves for row in curve.rows]
    told = [group.title, f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}", samples_told(rows)]
    return [f"{'; '.join(told if kind.measured else told[:1])}."]


@dataclass(frozen=True)
class Kind:
    """`most`: settings that one figure of this kind can hold. `measured`: whether it shows accuracies of finished runs."""

    block: Callable[[Compared, tuple[str, ...]], Figure]
    words: Callable[[Figure], list[str]]
    most: int
    measured: bool = True


def _curves(group: Compared, questions: tuple[str, ...]) -> Figure:
    return asking(curves_of(group, FIGURES["curves"].most), questions)


def _heatmap(group: Compared, questions: tuple[str, ...]) -> Figure:
    return asking(heatmap_of(group, FIGURES["heatmap"].most), questions)


def _reach(group: Compared, questions: tuple[str, ...]) -> Figure:
    return asking(reach_bars(group, FIGURES["reach"].most), questions[:1])


def _training(group: Compared, questions: tuple[str, ...]) -> Figure:
    found = {curve.first.run: course_of(curve, POINTS) for setting in group.settings for curve in setting.curves}
    courses = courses_of(group, {run: course for run, course in found.items() if course.loss}, FIGURES["training"].most)
    known = tuple((name, tuple(own)) for name, own in courses if own)
    if not known:
        raise LabError("none of these runs has a log of its training: published rows have none, run folders do")
    return Training((), tuple(group.lengths), group.trained, courses=known)


def _why(group: Compared, questions: tuple[str, ...]) -> Figure:
    """Of the best setting that `lengthlab why` has looked into."""
    for setting in group.settings:
        known, _ = read_diagnoses(setting.curves)
        found = tuple(each for each in known.values() if each.pathways)
        there = {row.question for each in found for row in each.pathways}
        asked = tuple(question for question in questions if question in there)
        if found and asked:
            return Carried(
                (), tuple(group.lengths), group.trained, title="", alt=setting.name, diagnoses=found, questions=asked
            )
    raise LabError("nobody has asked why of these runs: lengthlab why RUN measures what carries their answers")


def _heat_words(block: Figure) -> list[str]:
    return [f"Accuracy by length, mean over seeds; dark: above {GOOD:.2f}; right of the line: longer than in training."]


def _reach_words(block: Figure) -> list[str]:
    asked = title_of(block.entries[0].series[0].question)
    return [
        f"The greatest length up to which accuracy ({asked}) is above {GOOD:.2f} wherever it was measured: bars of the mean "
        "over seeds, circles of each seed; ≥: nothing longer was measured. Shaded: the training range."
    ]


def _training_words(block: Figure) -> list[str]:
    return [
        "Training, a line for each seed: the loss, each point a mean of log lines, and accuracy on 200 samples, watched only."
    ]


def _why_words(block: Figure) -> list[str]:
    found = block.diagnoses if isinstance(block, Carried) else ()
    samples = sorted({row.samples for each in found for row in each.pathways})
    seeds = f"thin: each of {len(found)} seeds, thick: their mean; " if len(found) > 1 else "one seed; "
    told = f"{seeds}{' to '.join(str(each) for each in dict.fromkeys((samples[0], samples[-1])))} samples a point"
    return [f"{block.alt}: right answers where attention, or the recurrence's state, is cut before the questions; {told}."]


FIGURES = {
    "curves": Kind(_curves, lambda block: [lines_caption(block.entries)], 6),
    "heatmap": Kind(_heatmap, _heat_words, 40),
    "reach": Kind(_reach, _reach_words, 40),
    "training": Kind(_training, _training_words, 6, measured=False),
    "why": Kind(_why, _why_words, 1, measured=False),
}
