"""Which setting is best, and when that cannot be said; results as a table."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.report.best import Best, best_of, sentence
from lengthlab.report.curves import read_curves
from lengthlab.report.result_table import ResultTable, results
from lengthlab.report.runs_page import runs_page
from lengthlab.report.setting import Setting, settings_of
from lengthlab.report.terminal import as_text
from lengthlab.store import Folder


def write(store: Path, run: str, lr: float, seed: int, right: Mapping[int, int], total: int = 1000, **more: Any) -> Folder:
    """The folder of a run on one question with so many right by length."""
    folder = Folder(store / (run * 12)[:12])
    counts = [
        {"length": n, "question": asked, "correct": correct, "total": total}
        for n, correct in right.items()
        for asked in ("parity", "all")
    ]
    names = {"model": "lstm", "task": "parity", "training": "end-to-end"}
    settings = f"lr {lr}"
    schedule = {"kind": "schedule", "name": "end-to-end", "phases": [{"kind": "phase", "length": 10, "lr": lr}]}
    content = {"task": {"kind": "parity"}, "model": {"name": "lstm", "width": 8}, "schedule": schedule, "seed": seed}
    made = {"hardware": "a slide rule", "versions": {"torch": "2"}, "precision": "fp32", "date": "2025-01-01T00:00:00+00:00"}
    numbers = {"seconds": 1.0, "steps": 10, "batch": 4, "lengths": [1, 10], "chance": {"parity": 0.5, "all": 0.5}}
    folder.write_json("run.json", content | {"lengths": [1, 10], "batch": 4, "files": {}} | more)
    found = {"run": folder.id, "seed": seed, "settings": settings, "counts": counts}
    folder.write_json("result.json", found | names | made | numbers)
    return folder


def settings(store: Path, by_rate: Mapping[float, list[Mapping[int, int]]]) -> list[Setting]:
    letters = iter("abcdef0123456789")
    folders = [
        write(store, next(letters), lr, seed, right) for lr, seeds in by_rate.items() for seed, right in enumerate(seeds)
    ]
    curves, problems = read_curves(folders)
    assert problems == []
    return settings_of(curves)


def best(store: Path, by_rate: Mapping[float, list[Mapping[int, int]]]) -> Best:
    return best_of(settings(store, by_rate))


def names(found: Best) -> list[str]:
    return [setting.name for setting in found.settings]


GOOD, BAD = {10: 1000, 20: 990, 40: 950}, {10: 1000, 20: 500, 40: 500}


def test_the_setting_that_is_above_090_to_the_greatest_length_is_best(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [BAD, BAD], 0.2: [GOOD, GOOD]})
    assert (names(found), found.reach) == (["lr 0.2"], 40)
    assert sentence(found) == (
        "Best: lr 0.2, above 0.90 to n = 40, 4 × the training length and was not measured further (parity); mean of 2 seeds."
    )


def test_the_reach_ends_where_the_mean_falls_though_it_rises_again(tmp_path: Path) -> None:
    (setting,) = settings(tmp_path, {0.1: [{10: 950, 20: 900, 40: 999}]})
    assert setting.reach == 10


def test_the_mean_over_seeds_decides_and_not_the_luckiest_seed(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [GOOD, BAD], 0.2: [{**GOOD, 40: 910}, {**GOOD, 40: 915}]})
    assert names(found) == ["lr 0.2", "lr 0.1"]  # but the seeds of the other one reach both ends: no telling
    found = best(tmp_path / "again", {0.1: [{**GOOD, 40: 500}, {**GOOD, 40: 600}], 0.2: [{**GOOD, 40: 910}] * 2})
    assert names(found) == ["lr 0.2"]


def test_settings_whose_seeds_overlap_tie(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [{**GOOD, 40: 905}, {**GOOD, 40: 890}], 0.2: [{**GOOD, 40: 899}, {**GOOD, 40: 940}]})
    assert set(names(found)) == {"lr 0.1", "lr 0.2"}
    assert "all tie" in sentence(found)


def test_one_seed_each_ties_where_the_intervals_over_samples_overlap(tmp_path: Path) -> None:
    assert len(best(tmp_path, {0.1: [{10: 930}], 0.2: [{10: 940}]}).settings) == 2
    assert len(best(tmp_path / "far", {0.1: [{10: 920}], 0.2: [{10: 990}]}).settings) == 1


def test_where_nothing_is_good_that_is_said(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [BAD | {10: 500}], 0.2: [BAD | {10: 800}]})
    assert names(found) == ["lr 0.2"]
    assert sentence(found).startswith(
        "Nothing is above 0.90 anywhere (parity); at n = 10 the highest is 0.800, one seed: lr 0.2"
    )


def test_one_setting_says_how_far_it_reaches(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [{10: 1000, 20: 500}]})
    assert sentence(found) == "lstm, end-to-end: above 0.90 to n = 10, the training length (parity); one seed."


def test_what_was_not_measured_where_it_counts_does_not_tie(tmp_path: Path) -> None:
    short = {10: 1000, 20: 990}
    assert names(best(tmp_path, {0.1: [GOOD], 0.2: [short]})) == ["lr 0.1"]
    assert names(best(tmp_path / "late", {0.1: [GOOD], 0.2: [{40: 950}]})) == ["lr 0.1"]
    assert names(best(tmp_path / "far", {0.1: [{**GOOD, 80: 300}], 0.2: [{80: 910}]})) == ["lr 0.1"]


def test_settings_that_differ_before_the_reach_do_not_tie(tmp_path: Path) -> None:
    assert names(best(tmp_path, {0.1: [GOOD], 0.2: [{**GOOD, 10: 500}]})) == ["lr 0.1"]


def test_the_reach_is_that_of_all_seeds(tmp_path: Path) -> None:
    found = best(tmp_path, {0.1: [GOOD, {**GOOD, 500: 990}]})
    assert found.reach == 40


def test_settings_on_other_numbers_of_samples_stand_in_tables_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "a", 0.1, 0, GOOD)
    write(tmp_path, "b", 0.2, 0, {10: 10, 20: 10, 40: 10}, total=100)
    text = as_text(runs_page(results(tmp_path).curves))
    many, few = text.split("On 100 samples, not 1,000:")
    assert "0.99" in many
    assert "lr 0.2" not in many
    assert "0.10" in few


def test_another_text_of_the_task_is_another_task(tmp_path: Path) -> None:
    for letter, lr, text in (("a", 0.1, "easy"), ("b", 0.2, "hard")):
        write(tmp_path, letter, lr, 0, GOOD, task={"kind": "my.py:Mine"}, files={"my.py": text})
    assert len(runs_page(results(tmp_path).curves).figures) == 2


def test_a_setting_named_like_a_number_has_a_column_of_its_own(tmp_path: Path) -> None:
    for letter, lr, tokens in (("a", 0.1, 1), ("b", 0.1001, 2)):
        write(tmp_path, letter, lr, 0, GOOD, model={"kind": "module", "arguments": {"tokens": tokens}})
    assert {row["tokens (setting)"] for row in results(tmp_path)} == {1, 2}


@given(st.lists(st.lists(st.integers(0, 100), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_best_reaches_as_far_as_any_and_is_ranked_first(rights: list[list[int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as store:
        shares = {number / 10: [dict(zip((10, 20, 40), right, strict=True))] for number, right in enumerate(rights, start=1)}
        letters = iter("abcdef")
        folders = [write(Path(store), next(letters), lr, 0, right[0], total=100) for lr, right in shares.items()]
        found = best_of(settings_of(read_curves(folders)[0]))
        assert found.reach == max(setting.reach for setting in found.ranked) == found.settings[0].reach
        assert found.ranked[: len(found.settings)] == found.settings
        assert len(found.ranked) == len(rights)


def test_the_page_says_the_answer_first_and_then_the_rule(tmp_path: Path) -> None:
    settings(tmp_path, {0.1: [BAD, BAD], 0.2: [GOOD, GOOD]})
    lines = as_text(runs_page(results(tmp_path).curves)).splitlines()
    assert lines[1].startswith("Best: lr 0.2, above 0.90 to n = 40")
    assert all(len(line) <= 80 for line in lines)


def test_numbers_on_more_samples_stand_in_a_table_of_their_own(tmp_path: Path) -> None:
    folder = write(tmp_path, "a", 0.1, 0, GOOD)
    data = folder.read_json("result.json")
    more = [count | {"length": 5, "correct": 5000, "total": 5000} for count in data["counts"][:2]]
    folder.write_json("result.json", dict(data) | {"counts": [*more, *data["counts"]]})
    text = as_text(runs_page(results(tmp_path).curves))
    assert "On 5,000 samples, not 1,000:" in text
    heads = [line.split() for line in text.splitlines() if line.split()[:1] == ["n"]]
    assert heads == [["n", "10", "20", "40"], ["n", "5"]]


def test_labels_are_the_names_of_their_settings(tmp_path: Path) -> None:
    write(tmp_path, "a", 0.1, 0, GOOD, label="ours")
    write(tmp_path, "b", 0.2, 0, BAD)
    assert {row["setting"] for row in results(tmp_path)} == {"ours", "lr 0.2"}


def test_results_have_a_row_for_each_run_length_and_question_with_settings_as_columns(tmp_path: Path) -> None:
    settings(tmp_path, {0.1: [BAD, BAD], 0.2: [GOOD, GOOD]})
    table = ll.results(tmp_path)
    assert len(table) == len(table.rows) == 4 * 3 * 2
    assert {row["lr"] for row in table} == {0.1, 0.2}
    frame = table.to_pandas()
    assert list(frame.columns) == table.columns
    assert frame[(frame.lr == 0.2) & (frame.length == 40) & (frame.question == "all")].accuracy.tolist() == [0.95, 0.95]
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["run"] for row in read] == [row["run"] for row in table]
    assert json.loads(table.to_json()) == table.rows
    assert repr(table).splitlines()[1].startswith("Best: lr 0.2")


def test_small_rates_are_whole_in_the_csv(tmp_path: Path) -> None:
    settings(tmp_path, {1e-5: [BAD], 3e-6: [GOOD]})
    read = list(csv.DictReader(io.StringIO(results(tmp_path).to_csv())))
    assert {float(row["lr"]) for row in read} == {1e-5, 3e-6}


def test_results_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="neither a run folder nor a store"):
        results(tmp_path / "nowhere")
    begun = Folder(tmp_path / "begun")
    begun.write_json("run.json", {})
    with pytest.raises(LabError, match="no finished run"):
        results(tmp_path)
    assert repr(ResultTable(())) == "no results"


def test_without_pandas_a_sentence_says_what_else_there_is(tmp_path: Path) -> None:
    write(tmp_path, "a", 0.1, 0, GOOD)
    code = (
        "import sys; sys.modules['pandas'] = None; import lengthlab as ll\n"
        f"try: ll.results({str(tmp_path)!r}).to_pandas()\nexcept ll.LabError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("pandas is not installed: pip install 'lengthlab[pandas]'")


def test_the_package_shows_what_a_user_wants_to_see() -> None:
    assert {"Run", "grid", "train", "train_all", "results", "delay_attention", "tasks", "models"} <= set(dir(ll))
    assert not {"import_module", "TYPE_CHECKING", "Any", "started"} & set(dir(ll))
