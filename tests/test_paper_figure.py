"""`lengthlab figure`: one of a report's figures, as wide as a column, with fonts inside, whatever runs are called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from command import Call
from lengthlab.report.compared import compared
from lengthlab.report.figure import draw
from lengthlab.report.group_figures import reach_bars
from lengthlab.report.paper import FIGURES, WIDTHS, Wanted, paper_figure
from lengthlab.report.reach import Reach
from lengthlab.report.sources import read_sources
from lengthlab.report.style import renderer_of
from page_runs import DIAGNOSIS, write_run, write_runs

LONG = "a hybrid with a name that is much longer than any column, $x_1$ <b>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for number in range(16):
        write_run(folder, number, 1e-3, f"{LONG} {number // 2}", "delayed" if number % 4 < 2 else "end-to-end", number % 2)
        (folder / f"{number:012x}" / "why.json").write_text(json.dumps(DIAGNOSIS))
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_the_width_it_was_asked_for_and_its_fonts_inside(store: Path, name: str) -> None:
    curves = read_sources([str(store)]).curves
    made = paper_figure(curves, Wanted(name), "pdf")
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", made.content)
    assert float(box[0]) == pytest.approx(72 * WIDTHS["column"], abs=0.1)
    assert b"/FontFile2" in made.content  # TrueType, which publishers ask for …
    assert b"/Type3" not in made.content  # … and not this
    assert b"/CreationDate" not in made.content  # the same runs, the same file
    samples = {"training": "trained on n = 1…10.", "why": "200 samples a point. modulo-recall, trained on n = 1…10."}
    assert made.caption.endswith(samples.get(name, "trained on n = 1…10; seeds 0, 1; 1,000 samples a cell."))


@pytest.mark.parametrize(
    ("name", "width", "runs"),
    [("curves", "column", 16), ("reach", "column", 16), ("training", "text", 16), ("reach", "text", 1)],
)
def test_all_words_lie_inside_the_figure(store: Path, name: str, width: str, runs: int) -> None:
    (group,) = compared(read_sources([str(path) for path in sorted(store.iterdir())[:runs]]).curves)
    drawing = draw(replace(FIGURES[name].block(group, ("all",)), width=WIDTHS[width]))
    drawing.draw_without_rendering()
    assert drawing.get_figwidth() == WIDTHS[width]
    box = drawing.get_tightbbox(renderer_of(drawing))  # inches
    assert box.x0 > -0.02
    assert box.x1 < WIDTHS[width] + 0.02
    texts = drawing.findobj(lambda each: hasattr(each, "get_fontsize"))
    letters = [float(text.get_fontsize()) for text in texts if text.get_text()]
    assert min(letters) >= 6.9
    assert max(letters) <= 9


def test_bars_end_where_the_mean_over_seeds_falls_below_nine_tenths(store: Path) -> None:
    (group,) = compared(read_sources([str(store)]).curves)
    block = reach_bars(group)
    assert isinstance(block, Reach)
    axes = draw(block).axes[0]
    ends = [round(bar.get_x() + bar.get_width()) for bar in axes.patches if bar.get_height() < 1]
    assert ends == [setting.reach for setting in group.settings if setting.reach]
    assert len(ends) > 3


def test_what_has_no_room_is_said(store: Path, tmp_path: Path) -> None:
    curves = read_sources([str(store)]).curves
    assert paper_figure(curves, Wanted("curves"), "svg").left_out == (
        "the best 6 of 8 settings are drawn",
        "only 'all' is drawn, as there is room for: name others by --question, or give it more --width",
    )
    small = paper_figure(curves, Wanted("heatmap", questions=("all",)), "svg").left_out
    assert "its smallest letters have" in small[-1]
    assert b"recall" not in paper_figure(curves, Wanted("curves", questions=("modulo",)), "svg").content


def test_wrong_input_is_one_line_and_leaves_nothing(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs", 2)
    call("figure", "pie", "runs", "-o", "fig.pdf").refused("no figure 'pie': one of curves, heatmap, reach, training, why")
    for words, said in (
        (["runs", "-o", "fig.gif"], "ends in .pdf, .svg or .png"),
        (["runs", "-o", "runs/.pdf"], "ends in .pdf, .svg or .png"),
        (["nowhere", "-o", "fig.pdf"], "neither a run folder nor a store"),
        (["runs", "-o", f"{__file__}/fig.pdf"], "not writable"),
        (["runs", "-o", "fig.pdf", "--width", "nan"], "inches from 1.5 to 30"),
        (["runs", "-o", "fig.pdf", "--question", "why"], "nobody was asked 'why'"),
        (["runs", "-o", "fig.pdf", "--task", "sorting"], "no runs are about 'sorting'"),
    ):
        call("figure", "curves", *words).refused(said)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    (tmp_path / "runs" / "000000000000" / "log.jsonl").unlink()
    call("figure", "training", "runs/000000000000", "-o", "fig.pdf").refused("none of these runs has a log")
    call("figure", "why", "runs", "-o", "fig.pdf").refused("nobody has asked why of these runs: lengthlab why RUN")


def test_the_command_writes_the_file_and_says_the_caption(call: Call, tmp_path: Path) -> None:
    runs, out = write_runs(tmp_path / "runs", 4), tmp_path / "figures" / "fig.PNG"
    done = call("figure", "heatmap", runs, "-o", out, "--width", "text")
    assert done.code == 0, done.err
    assert done.out.startswith("caption: Accuracy by length")
    assert out.read_bytes()[:4] == b"\x89PNG"
