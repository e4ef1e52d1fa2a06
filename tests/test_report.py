"""Tables and figures, made of run folders that were written by hand: no torch, no training."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lengthlab.report import figure as drawing
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.markdown import markdown as as_markdown
from lengthlab.report.result_table import ResultTable
from lengthlab.report.runs_page import provenance, runs_page
from lengthlab.report.terminal import console_for, show
from lengthlab.store import Folder

Counts = Mapping[int, Mapping[str, int]]
FAR: Counts = {
    5: {"modulo": 990, "recall": 980, "both": 970},
    10: {"modulo": 1000, "recall": 950, "both": 950},
    40: {"modulo": 500, "recall": 40, "both": 20},
}


def result(run: str = "0123456789ab", counts: Counts = FAR, total: int = 1000, **changed: Any) -> dict[str, Any]:
    rows = [
        {"length": length, "question": question, "correct": correct, "total": total}
        for length, by_question in counts.items()
        for question, correct in by_question.items()
    ]
    return {
        "run": run,
        "model": "hybrid-block",
        "task": "modulo-recall",
        "training": "delayed",
        "seed": 0,
        "settings": "abcdef123456",
        "lengths": [1, 10],
        "steps": 100,
        "batch": 8,
        "chance": {"modulo": 0.5, "recall": 0.1, "both": 0.05},
        "counts": rows,
        "seconds": 1.5,
        "precision": "fp32",
        "hardware": "a slide rule",
        "versions": {"lengthlab": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        "date": "2025-01-01T00:00:00+00:00",
    } | changed


def write(store: Path, data: Mapping[str, Any]) -> Folder:
    folder = Folder(store / data["run"])
    folder.write_json("run.json", {})
    folder.write_json("result.json", data)
    return folder


def curves_of(store: Path, *results: Mapping[str, Any]) -> list[Curve]:
    curves, problems = read_curves([write(store, data) for data in results])
    assert problems == []
    return curves


def in_terminal(curves: list[Curve], width: int = 160) -> list[list[str]]:
    """The words of every line; how lines and columns are ruled is a matter of taste."""
    console = console_for(width)
    console.file = io.StringIO()
    show(runs_page(curves), console)
    table = console.file.getvalue().split("Training lengths")[0]
    return [re.sub(r"[^\w\s.=…–-]", " ", line).split() for line in table.splitlines()]


def markdown(curves: list[Curve]) -> str:
    return as_markdown(runs_page(curves, each_seed=True))


def figure(curves: list[Curve]) -> Any:
    """The first figure, as matplotlib has it."""
    return drawing.draw(runs_page(curves).figures[0])


def pictures(curves: list[Curve]) -> dict[str, bytes]:
    return drawing.pictures(runs_page(curves))


def every_number(curves: list[Curve]) -> list[list[str]]:
    """The cells of every line of the table that is folded away in Markdown."""
    text = markdown(curves).split("<details>")[1].split("</details>")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def as_csv(curves: list[Curve]) -> str:
    return ResultTable(tuple(curves)).to_csv()


def of_question(question: str, lines: list[list[str]]) -> list[list[str]]:
    return [line for line in lines if question in line]


def test_the_terminal_shows_a_line_for_each_question_all_first(tmp_path: Path) -> None:
    lines = in_terminal(curves_of(tmp_path, result()))
    asked = [line for line in lines if line and line[0] in ("all", "modulo", "recall")]
    assert asked == [
        ["all", "0.97", "0.95", "0.02"],
        ["modulo", "0.99", "1.00", "0.50"],
        ["recall", "0.98", "0.95", "0.04"],
    ]


def test_lengths_stand_in_order_whatever_order_they_were_measured_in(tmp_path: Path) -> None:
    shuffled = {length: FAR[length] for length in (40, 5, 10)}
    lines = in_terminal(curves_of(tmp_path, result(counts=shuffled)))
    assert ["n", "5", "10", "40"] in lines
    assert ["all", "0.97", "0.95", "0.02"] in lines


def test_six_lengths_fit_into_eighty_columns_with_nothing_cut(tmp_path: Path) -> None:
    # What the demo shows, in a terminal as wide as terminals are when nobody touches them.
    counts = dict.fromkeys((5, 10, 20, 30, 40, 60), FAR[5])
    other = result("b" * 12, counts=counts, training="end-to-end", settings="other")
    lines = in_terminal(curves_of(tmp_path, result(counts=counts), other), width=80)
    assert ["delayed", "60", *["0.970"] * 6] in lines
    assert ["end-to-end", "60", *["0.970"] * 6] in lines
    assert "…" not in " ".join(" ".join(line) for line in lines)


def test_the_markdown_has_every_seed_the_range_over_them_and_the_interval_over_samples(tmp_path: Path) -> None:
    lower = result("b" * 12, counts={5: {"modulo": 900, "recall": 900, "both": 870}}, seed=1)
    header, _, *rows = every_number(curves_of(tmp_path, result(counts={5: FAR[5]}), lower))
    assert header == ["setting", "question", "n", "mean", "each seed", "range", "interval", "samples"]
    assert rows[0] == [
        *("hybrid-block, delayed", "all", "5", "0.920", "0: 0.970, 1: 0.870", "0.870–0.970", "0.907–0.931", "2,000")
    ]
    assert len(rows) == 3


def test_a_cell_that_was_not_measured_is_a_dash(tmp_path: Path) -> None:
    half = result("b" * 12, counts={5: FAR[5]}, training="end-to-end", settings="other")
    lines = in_terminal(curves_of(tmp_path, result(), half))
    assert ["end-to-end", "5", "0.970", "–", "–"] in lines
    assert ["recall", "0.98", "–", "–"] in lines


def test_what_was_not_measured_has_no_line_in_the_csv(tmp_path: Path) -> None:
    curves = curves_of(tmp_path, result(), result("b" * 12, counts={5: FAR[5]}, seed=1))
    lines = list(csv.DictReader(io.StringIO(as_csv(curves))))
    assert [line["length"] for line in lines if line["seed"] == "1"] == ["5", "5", "5"]
    assert len(lines) == 9 + 3


def test_the_csv_has_settings_counts_interval_and_chance(tmp_path: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(curves_of(tmp_path, result())))))
    (line,) = [line for line in lines if (line["length"], line["question"]) == ("10", "all")]
    assert line == {
        **{"setting": "hybrid-block, delayed", "task": "modulo-recall", "model": "hybrid-block", "training": "delayed"},
        **{"seed": "0", "trained_to": "10", "length": "10", "question": "all", "correct": "950", "total": "1000"},
        **{"accuracy": "0.9500", "low": "0.9347", "high": "0.9619", "chance": "0.0500", "run": "0123456789ab"},
    }


def test_seeds_are_one_setting_and_every_seed_is_shown_on_demand(tmp_path: Path) -> None:
    seeds = [
        result(f"{seed}" * 12, seed=seed, counts={5: {"both": 900 + seed, "modulo": 1, "recall": 1}}) for seed in (2, 0, 1)
    ]
    curves = curves_of(tmp_path, *seeds)
    assert [line for line in in_terminal(curves) if line[:1] in (["lowest"], ["highest"])] == [
        ["lowest", "0.90"],
        ["highest", "0.90"],
    ]
    console = console_for(80)
    console.file = io.StringIO()
    show(runs_page(curves, each_seed=True), console)
    assert [f"seed {seed}" in console.file.getvalue() for seed in (0, 1, 2)] == [True] * 3


def test_provenance_says_range_seeds_samples_chance_and_machine(tmp_path: Path) -> None:
    curves = curves_of(tmp_path, result(), result("b" * 12, total=2000, seed=3))
    text = " ".join(provenance(curves))
    for word in (
        "1…10",
        "0, 3",
        "2,000 samples a cell, but 1,000 at n = 5, 10, 40",
        "modulo-recall: 0.05",
        "a slide rule",
        "torch 2.13.0",
    ):
        assert word in text
    assert all(line in markdown(curves) for line in provenance(curves))


def test_a_task_with_one_question_has_one_line(tmp_path: Path) -> None:
    one = result(counts={5: {"parity": 900, "both": 900}}, task="parity", chance={"parity": 0.5, "both": 0.5})
    curves = curves_of(tmp_path, one)
    assert [line for line in in_terminal(curves) if line[:1] == ["parity"]] == [["parity", "0.90"]]
    assert len(every_number(curves)) == 2 + 1
    assert len(figure(curves).axes) == 1


def test_an_unfinished_run_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    begun = Folder(tmp_path / "begun")
    begun.write_json("run.json", {})
    curves, problems = read_curves([begun, write(tmp_path, result())])
    assert [curve.first.run for curve in curves] == ["0123456789ab"]
    assert problems == ["run begun is not finished"]


@pytest.mark.parametrize("missing", sorted(result()))
def test_a_result_with_a_piece_missing_is_named_and_left_out(tmp_path: Path, missing: str) -> None:
    data = {key: value for key, value in result().items() if key != missing}
    folder = Folder(tmp_path / "half")
    folder.write_json("result.json", data)
    curves, problems = read_curves([folder])
    assert curves == []
    assert len(problems) == 1
    assert "half" in problems[0]
    assert json.loads((folder.path / "result.json").read_text()) == data


@pytest.mark.parametrize("counts", [[], [{"length": 5}], "none", [None]])
def test_counts_that_are_no_counts_are_named(tmp_path: Path, counts: object) -> None:
    _, problems = read_curves([write(tmp_path, result() | {"counts": counts})])
    assert len(problems) == 1
    assert "result.json" in problems[0]


def test_the_figure_is_a_png_and_an_svg_that_say_what_is_drawn(tmp_path: Path) -> None:
    files = pictures(curves_of(tmp_path, result()))
    assert list(files) == ["accuracy.svg", "accuracy.png"]
    assert files["accuracy.png"].startswith(b"\x89PNG\r\n\x1a\n")
    text = files["accuracy.svg"].decode()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    for word in ("training range", "chance", "delayed", "accuracy", "all questions right", "modulo", "recall"):
        assert word in text


def test_accuracies_of_exactly_zero_and_one_are_drawn(tmp_path: Path) -> None:
    ends = {5: {"modulo": 0, "recall": 1000, "both": 0}}
    low, high = figure(curves_of(tmp_path, result(counts=ends))).axes[1:]
    assert low.get_lines()[-1].get_ydata().tolist() == [0.0]
    assert high.get_lines()[-1].get_ydata().tolist() == [1.0]


def test_the_same_curves_make_the_same_picture(tmp_path: Path) -> None:
    curves = curves_of(tmp_path, result())
    assert pictures(curves) == pictures(curves)


def test_tasks_with_other_chances_get_pictures_of_their_own(tmp_path: Path) -> None:
    ten = result("b" * 12, settings="other", chance={"modulo": 0.1, "recall": 0.1, "both": 0.01})
    assert len(pictures(curves_of(tmp_path, result(), ten))) == 4


def test_runs_that_differ_in_more_than_the_seed_are_not_averaged(tmp_path: Path) -> None:
    wider = result("b" * 12, seed=1, settings="fedcba987654")
    first, second = [write(tmp_path, data) for data in (result(), wider)]
    for folder, width in ((first, 64), (second, 128)):
        folder.write_json("run.json", {"model": {"kind": "model", "width": width}})
    curves, _ = read_curves([first, second])
    assert {"width 64", "width 128"} <= set(legend(curves))


def legend(curves: list[Curve]) -> list[str]:
    """What lines are called: in the legend, or at their ends."""
    drawn = figure(curves)
    return [text.get_text() for text in (*drawn.legends[0].get_texts(), *(text for axes in drawn.axes for text in axes.texts))]


def test_seeds_share_a_line_of_the_legend_and_models_do_not(tmp_path: Path) -> None:
    seeds = [result(f"{seed}" * 12, seed=seed) for seed in (0, 1)]
    assert "hybrid-block, delayed (2 seeds)" in legend(curves_of(tmp_path, *seeds))
    other = result("c" * 12, model="lstm", training="end-to-end", settings="other")
    names = legend(curves_of(tmp_path, *seeds, other))
    assert {"hybrid-block, delayed (2 seeds)", "lstm, end-to-end"} <= set(names)


def test_the_thick_line_is_the_mean_of_the_seeds_measured_at_that_length(tmp_path: Path) -> None:
    low = result("a" * 12, counts={5: {"modulo": 500, "recall": 500, "both": 400}}, seed=0)
    high = result("b" * 12, counts={length: {"modulo": 700, "recall": 800, "both": 600} for length in (5, 10)}, seed=1)
    axes = figure(curves_of(tmp_path, low, high)).axes[0]
    (mean,) = [line for line in axes.get_lines() if str(line.get_label()).startswith("hybrid-block, delayed")]
    assert list(zip(*mean.get_data(), strict=True)) == [(5, 0.5), (10, 0.6)]


def test_the_training_range_and_chance_are_where_they_should_be(tmp_path: Path) -> None:
    both, modulo, _ = figure(curves_of(tmp_path, result())).axes
    (span,) = both.patches
    assert span.get_extents().transformed(both.transData.inverted()).x1 == pytest.approx(10)
    for axes, chance in ((both, 0.05), (modulo, 0.5)):
        (line,) = [line for line in axes.get_lines() if line.get_label() == "chance"]
        assert set(line.get_ydata()) == {chance}


def without_matplotlib(*words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['matplotlib'] = None; from lengthlab.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60)


def test_without_matplotlib_tables_are_shown_and_written_and_one_line_says_what_to_install(tmp_path: Path) -> None:
    write(tmp_path, result())
    done = without_matplotlib("report", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["no figure: figures need matplotlib: pip install 'lengthlab[report]'"]
    assert "0.97" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "table.csv", "table.json", "table.md"]
    assert ".svg" not in (tmp_path / "out" / "table.md").read_text()


def test_answers_of_several_tokens_show_the_share_of_right_ones(tmp_path: Path) -> None:
    counts = [
        {"length": n, "question": question, "correct": 5, "total": 10, "right_tokens": 10 * n - 5, "tokens": 10 * n}
        for n in (5, 20)
        for question in ("copy", "all")
    ]
    curves = curves_of(tmp_path, result(task="copy", counts={}) | {"counts": counts, "chance": {"copy": 0.1, "all": 0.1}})
    (line,) = [line for line in in_terminal(curves) if "tokens" in line]
    assert line[-2:] == ["0.90", "0.97"]
    lines = list(csv.DictReader(io.StringIO(as_csv(curves))))
    assert {line["token_accuracy"] for line in lines} == {"0.9000", "0.9750"}


@pytest.mark.parametrize(
    "changed", [{"versions": {}}, {"hardware": 3}, {"lengths": [1]}, {"seconds": "long"}, {"settings": None}, {"date": 5}]
)
def test_a_foreign_result_is_named_and_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    fine, foreign = write(tmp_path, result()), write(tmp_path, result(run="f" * 12, **changed))
    curves, problems = read_curves([fine, foreign])
    assert [curve.first.run for curve in curves] == ["0123456789ab"]
    assert len(problems) == 1
    assert "is not the result of a run" in problems[0]


def test_tasks_whose_names_differ_in_odd_letters_have_figures_of_their_own(tmp_path: Path) -> None:
    tasks = [result(run=f"{number}" * 12, settings=task, task=task) for number, task in enumerate(("a/b", "a:b", "a?b"))]
    curves = curves_of(tmp_path, *tasks)
    assert len({figure.name for figure in runs_page(curves).figures}) == 3


def test_a_figure_is_the_same_whatever_matplotlib_was_told(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    curves = curves_of(tmp_path, result())
    before = pictures(curves)["accuracy.svg"]
    with matplotlib.rc_context({"font.size": 20, "text.usetex": True, "axes.facecolor": "red"}):
        assert pictures(curves)["accuracy.svg"] == before


def test_chance_may_depend_on_the_length(tmp_path: Path) -> None:
    chance = {"modulo": 0.5, "recall": {"5": 0.2, "10": 0.1, "40": 0.025}, "all": {"5": 0.1, "10": 0.05, "40": 0.0125}}
    curves = curves_of(tmp_path, result(chance=chance))
    assert [curves[0].chance_at(length, "recall") for length in (5, 40, 99)] == [0.2, 0.025, None]
    (line,) = [line for line in figure(curves).axes[2].get_lines() if line.get_label() == "chance"]
    assert line.get_ydata().tolist() == [0.2, 0.1, 0.025]
    assert "modulo-recall: 0.1 to 0.0125" in " ".join(provenance(curves))


def test_tokens_of_long_answers_are_read_beside_samples(tmp_path: Path) -> None:
    data = result()
    data["counts"] = [count | {"right_tokens": 2990, "tokens": 3000} for count in data["counts"]]
    (curve,) = curves_of(tmp_path, data)
    assert {row.token_accuracy for row in curve.rows} == {2990 / 3000}
    assert curve.first.to_json()["tokens"] == 3000
    assert "tokens" not in curves_of(tmp_path, result("b" * 12))[0].first.to_json()


def test_a_run_that_lies_in_two_stores_is_one(tmp_path: Path) -> None:
    folders = [write(tmp_path / store, result()) for store in ("here", "there")]
    curves, problems = read_curves(folders)
    assert len(curves) == 1
    assert problems == [f"{folders[1].path}: the same run is in {folders[0].path}"]
