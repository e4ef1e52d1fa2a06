"""What is drawn: legends inside the canvas, names at the ends of lines, grids and strips, levels that guessing reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from lengthlab.errors import LabError
from lengthlab.experiments import Arm, Grid, Section, Size, Strip, Study
from lengthlab.report.figure import draw
from lengthlab.report.lines import legend_names
from lengthlab.report.page import Chance, Curves, Entry, Grids, Heatmap, Strips
from lengthlab.report.scores import Score, Series
from lengthlab.report.style import renderer_of
from lengthlab.store.rows import Row

LENGTHS = (5, 10, 20, 40)
CHANCE: Chance = {
    "all": dict.fromkeys(LENGTHS, 0.05),
    "modulo": dict.fromkeys(LENGTHS, 0.5),
    "recall": dict.fromkeys(LENGTHS, 0.1),
}
Accuracy = Callable[[int, int], float]
"""By seed and length."""


def series(question: str, accuracy: Accuracy, lengths: Sequence[int] = LENGTHS, seeds: int = 2) -> Series:
    scores = [
        Score(n, tuple(Row(n, question, round(1000 * accuracy(s, n)), 1000, seed=s, run=f"{s}") for s in range(seeds)))
        for n in lengths
    ]
    return Series(question, tuple(scores))


def entry(accuracy: Accuracy = lambda seed, n: 0.9, group: str = "", lengths: Sequence[int] = LENGTHS, **names: str) -> Entry:
    questions = ("all", "modulo", "recall")
    return Entry(tuple(names.items()), tuple(series(each, accuracy, lengths) for each in questions), group=group)


def curves(entries: Sequence[Entry], lengths: Sequence[int] = LENGTHS) -> Curves:
    return Curves(tuple(entries), tuple(lengths), (1, 10), title="Accuracy", chance=CHANCE)


def words_of(drawing: Any) -> list[str]:
    return [text.get_text() for axes in drawing.axes for text in axes.texts]


def lies_inside(drawing: Any, box: Any) -> bool:
    """With a pixel of grace."""
    whole = drawing.bbox
    return whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1 and whole.y0 - 1 <= box.y0 and box.y1 <= whole.y1 + 1


LONG = "a hybrid of many words and a width that takes a whole line by itself, and then some more, "


@pytest.mark.parametrize("groups", [1, 2, 8, 20])
@pytest.mark.parametrize(("name", "questions"), [("rate", 3), (LONG, 1)])
def test_the_legend_lies_inside_the_canvas(groups: int, name: str, questions: int) -> None:
    entries = [entry(model=f"{name} {number}") for number in range(groups)]
    drawing = draw(curves([replace(each, series=each.series[:questions]) for each in entries]))
    drawing.draw_without_rendering()
    (legend,) = drawing.legends
    assert lies_inside(drawing, legend.get_window_extent(renderer_of(drawing)))
    panel = drawing.axes[0].get_window_extent(renderer_of(drawing))
    assert panel.height > 2 * drawing.dpi  # the legend takes nothing from it
    assert not panel.overlaps(legend.get_window_extent(renderer_of(drawing)))


@pytest.mark.parametrize("groups", [2, 8, 20])
def test_lines_look_different_however_many_there_are(groups: int) -> None:
    drawing = draw(curves([entry(model=f"line {number}") for number in range(groups)]))
    lines = [line for line in drawing.axes[0].get_lines() if str(line.get_label()).startswith("line")]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) == groups


def test_two_lines_that_lie_on_each_other_are_both_seen() -> None:
    first, second = (
        line for line in draw(curves([entry(model="a"), entry(model="b")])).axes[0].get_lines() if line.get_label()[0] in "ab"
    )
    assert not first.is_dashed()
    assert second.is_dashed()
    assert second.get_zorder() > first.get_zorder()
    assert second.get_markersize() < first.get_markersize()


def test_few_lines_are_named_at_their_ends_and_many_in_the_legend() -> None:
    apart = [entry(lambda seed, n, at=at: at, training=f"t{number}") for number, at in enumerate((0.2, 0.8))]
    drawing = draw(curves(apart))
    assert {"t0 (2 seeds)", "t1 (2 seeds)"} <= set(words_of(drawing))
    assert not any(text.get_text().startswith("t0") for text in drawing.legends[0].get_texts())
    alike = draw(curves([entry(lambda seed, n: 0.8, training=f"t{number}") for number in range(5)]))
    assert words_of(alike) == []
    assert sum(text.get_text().startswith("t") for text in alike.legends[0].get_texts()) == 5 + 1  # and the training range


def test_names_at_the_ends_lie_on_no_line_and_inside_the_panel() -> None:
    apart = [
        entry(lambda seed, n, at=at: at + 0.04 * seed, training=f"t{number}") for number, at in enumerate((0.3, 0.6, 0.95))
    ]
    drawing = draw(curves(apart))
    drawing.draw_without_rendering()
    axes = drawing.axes[0]
    boxes = [text.get_window_extent(renderer_of(drawing)) for text in axes.texts]
    assert len(boxes) == 3
    for line in axes.get_lines():
        path = line.get_transform().transform_path(line.get_path())
        assert not any(path.intersects_bbox(box, filled=False) for box in boxes)
    assert all(lies_inside(drawing, box) for box in boxes)


def test_the_level_of_one_guessed_question_is_drawn_where_all_are_asked() -> None:
    everything, modulo, _ = draw(curves([entry(model="a")])).axes
    levels = {str(line.get_label()): set(line.get_ydata()) for line in everything.get_lines()}
    assert levels["modulo guessed, recall right"] == {0.5}
    assert levels["recall guessed, modulo right"] == {0.1}
    assert levels["chance"] == {0.05}
    assert not any("guessed" in str(line.get_label()) for line in modulo.get_lines())


@pytest.mark.parametrize(
    ("lengths", "trained"),
    [((5, 15, 25, 50, 75, 100, 1000, 4000), 25), ((1024, 4096, 65_536, 1_048_576, 4_194_304), 1024), ((10, 11, 20, 30), 10)],
)
@pytest.mark.parametrize("width", [0.0, 3.25, 6.75])
def test_numbers_of_lengths_do_not_touch_and_the_ends_have_theirs(lengths: tuple[int, ...], trained: int, width: float) -> None:
    block = replace(curves([entry(model="a", lengths=lengths)], lengths), trained=(1, trained), width=width)
    drawing = draw(block)
    drawing.draw_without_rendering()
    axes = drawing.axes[0]
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    named = {int(label.get_text()) for label in labels}
    assert {lengths[0], lengths[-1]} <= named <= set(lengths)
    assert trained in named
    boxes = [label.get_window_extent() for label in labels]
    assert all(later.x0 > earlier.x1 for earlier, later in pairwise(boxes))
    assert axes.get_xscale() == ("log" if lengths[-1] > 20 * lengths[0] else "linear")


def test_a_label_that_tells_arms_apart_is_all_that_a_legend_has() -> None:
    told = [entry(arm=arm, model="m", training="t") for arm in ("norms on", "norms off")]
    assert legend_names(told) == ["norms on", "norms off"]


def grids(at_the_longest: float, far: float, seeds: int = 2) -> Grids:
    def accuracy(seed: int, n: int) -> float:
        return (at_the_longest if n <= 10 else far) + 0.05 * seed

    entries = [
        entry(accuracy, group, positions=positions, scores=scores)
        for positions in ("rotary", "none")
        for scores in ("softmax", "log-n")
        for group in ("end-to-end", "delayed")
    ]
    return Grids(tuple(entries), LENGTHS, (1, 10), down="scores", across="positions", at=(20, 40), learned=0.9)


def test_grids_have_a_number_and_a_range_for_each_arm_question_and_length() -> None:
    words = words_of(draw(grids(0.95, 0.6)))
    assert words.count("0.62") == words.count("0.60–0.65") == 4 * 2 * 2 * 3
    assert {"end to end", "delayed", "2×, n = 20", "4×, n = 40", "rotary", "log-n", "recall"} <= set(words)
    assert "the lowest and the highest seed" in " ".join(" ".join(words).split())


def test_an_arm_that_did_not_learn_its_training_range_is_hatched_and_in_italics() -> None:
    for at_the_longest, hatched in ((0.95, False), (0.5, True)):
        (axes,) = draw(grids(at_the_longest, 0.4)).axes
        assert {bool(patch.get_hatch()) for patch in axes.patches} == {hatched}
        numbers = [text for text in axes.texts if text.get_text() == "0.43" or text.get_text() == "0.42"]
        assert {text.get_fontstyle() for text in numbers} == {"italic" if hatched else "normal"}
        assert "not learned (below 0.90 at n = 10" in " ".join(" ".join(words_of(draw(grids(0.5, 0.4)))).split())


def test_everything_of_a_grid_lies_inside_the_canvas() -> None:
    drawing = draw(grids(0.95, 0.6))
    renderer = renderer_of(drawing)
    assert all(lies_inside(drawing, text.get_window_extent(renderer)) for text in drawing.axes[0].texts)


def test_a_heat_map_names_its_rows_by_no_more_than_tells_them_apart() -> None:
    entries = [entry(model=name.split()[-1], recurrence=name, state="S3") for name in ("negative delta", "delta", "lstm")]
    drawn = words_of(draw(Heatmap(tuple(entries), LENGTHS, (1, 10), title="Recall")))
    assert [drawn.count(name) for name in ("negative delta", "delta", "lstm")] == [1, 1, 1]
    assert not any("S3" in word for word in drawn)
    others = [entry(model="lstm", heads=heads, width=width) for heads in ("1", "2") for width in ("128", "512")]
    assert {"1, 128", "1, 512", "2, 128", "2, 512"} <= set(words_of(draw(Heatmap(tuple(others), LENGTHS, (1, 10)))))


def test_strips_have_a_dot_for_each_seed_and_a_bar_at_their_mean() -> None:
    entries = tuple(entry(lambda seed, n, at=at: at + 0.1 * seed, arm=f"arm {at}") for at in (0.2, 0.7))
    drawing = draw(Strips(entries, LENGTHS, (1, 10), at=(10, 40), chance=CHANCE))
    axes = drawing.axes[0]
    assert len(drawing.axes) == 3
    dots = [tuple(float(x) for x, _ in group.get_offsets()) for group in axes.collections]
    assert sorted(dots) == [pytest.approx((0.2, 0.3))] * 2 + [pytest.approx((0.7, 0.8))] * 2
    bars = [line.get_xdata()[0] for line in axes.get_lines() if len(set(line.get_xdata())) == 1 and line.get_lw() > 1.5]
    assert sorted(bars) == pytest.approx([0.25, 0.25, 0.75, 0.75])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["arm 0.2", "arm 0.7"]
    drawing.draw_without_rendering()
    assert lies_inside(drawing, drawing.legends[0].get_window_extent(renderer_of(drawing)))


def study(figure: Grid | Strip, **about: str) -> Study:
    arm = Arm("a", "lstm", "recall", "delayed", about=tuple(about.items()))
    size = Size("cpu", (1, 10), (10, 40))
    return Study("mine", "", "", lambda arm, size: None, (size,), sections=(Section("one", "", (arm,), figure=figure),))  # type: ignore


def test_a_figure_of_what_is_not_there_is_refused_when_the_study_is_made() -> None:
    assert study(Strip((1, 4))).sections[0].figure
    with pytest.raises(LabError, match="not all are measured at size 'cpu'"):
        study(Strip((3,)))
    with pytest.raises(LabError, match="is of no length"):
        study(Strip(()))
    with pytest.raises(LabError, match="by their 'scores', and not every arm says it"):
        study(Grid("positions", "scores", (1,)), positions="none")
