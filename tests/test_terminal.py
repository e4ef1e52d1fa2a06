"""Pages in terminals as they are: 80 columns, no letters but ASCII, or no terminal at all. No torch."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from lengthlab.bench.measurement import Findings, Measurement, Origin
from lengthlab.bench.page import bench_page
from lengthlab.cli.pages import folded
from lengthlab.experiments import studies
from lengthlab.report.curves import Curve
from lengthlab.report.encoding import EQUALS, spelled
from lengthlab.report.page import Entry, Page, Scores, Table
from lengthlab.report.publication import read_results
from lengthlab.report.runs_page import runs_page
from lengthlab.report.scores import Score, Series
from lengthlab.report.study_page import study_page
from lengthlab.report.terminal import WIDE, console_for, show
from lengthlab.store.rows import Row
from test_report import FAR, curves_of, result, write

ROOT = Path(__file__).parent.parent
CUT = re.compile(r"[\d.]…(?!\d)|–…")
"""A number of which something was left out; n = 1…25 is none."""
PUBLISHED = [name for name, study in studies().items() if study.page and (ROOT / "published" / name).is_dir()]
PAGES = [*PUBLISHED, "bench/cpu", "bench/h200"]
every_page = pytest.mark.parametrize("name", PAGES)


@cache
def published(name: str) -> Page:
    if not name.startswith("bench"):
        return study_page(read_results(studies()[name], (str(ROOT / "published"),)))
    data = json.loads((ROOT / "published" / name / "bench.json").read_text())
    rows = [{field.name: row[field.name] for field in fields(Measurement)} for row in data["measurements"]]
    origin = Origin(**{field.name: data[field.name] for field in fields(Origin)})
    return bench_page(Findings(tuple(Measurement(**row) for row in rows), data["peaks"], origin))


def lines_of(page: Page, width: int = 80, encoding: str = "utf-8") -> list[str]:
    data = io.BytesIO()
    console = Console(file=io.TextIOWrapper(data, encoding), width=width, highlight=False, markup=False, emoji=False)
    show(page, console)
    console.file.flush()
    return data.getvalue().decode(encoding).splitlines()


@every_page
@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_of_a_published_page_is_wider_than_the_terminal_and_no_number_is_cut(name: str, width: int) -> None:
    lines = lines_of(published(name), width)
    assert max(map(cell_len, lines)) <= width
    assert [line for line in lines if CUT.search(line)] == []


@every_page
def test_a_terminal_without_other_letters_shows_every_page_in_ascii(name: str) -> None:
    lines = lines_of(published(name), 80, "ascii")
    assert max(map(len, lines)) <= 80
    assert not any("\\u" in line for line in lines)
    numbers = [re.findall(r"\d\.\d\d", line) for line in lines]
    assert sum(map(len, numbers)) == sum(len(re.findall(r"\d\.\d\d", line)) for line in lines_of(published(name), 80))


def many(tmp_path: Path) -> list[Curve]:
    counts = dict.fromkeys((5, 10, 15, 20, 25, 30, 40, 60, 80, 120, 240, 480, 960), FAR[5])
    named = [{"settings": f"{number}", "training": f"training-{number}"} for number in range(9)]
    return curves_of(tmp_path, *(result(f"{number:012}", counts, **names) for number, names in enumerate(named)))


def test_a_table_of_many_lengths_is_several_with_every_number_whole(tmp_path: Path) -> None:
    lines = lines_of(runs_page(many(tmp_path)))
    assert max(map(cell_len, lines)) <= 80
    heads = [line.split() for line in lines if line.startswith("setting ")]
    assert len(heads) > 1
    assert [head.count("n=960") for head in heads] == [0] * (len(heads) - 1) + [1]
    assert sum(line.count("0.970") for line in lines) == 9 * 13
    assert "…" not in "".join(lines).replace("1…10", "")


def test_a_wide_terminal_has_one_table(tmp_path: Path) -> None:
    lines = lines_of(runs_page(many(tmp_path)), WIDE)
    assert len([line for line in lines if "n=5 " in line]) == 1
    assert any("n=5 " in line and "n=960" in line for line in lines)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(20, 100))
def test_a_table_of_any_size_fits_or_is_shown_row_by_row(sizes: list[int], width: int) -> None:
    header = tuple("h" * size for size in sizes)
    table = Table(header, ((("w" * 5), *("7" * size for size in sizes[1:])),))
    lines = lines_of(Page("", (table,)), width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines).count("7") == sum(sizes[1:])


def test_the_name_of_a_question_is_not_cut() -> None:
    name = "multiplication by three"
    series = Series(name, (Score(5, (Row(5, name, 9, 10),)),))
    lines = lines_of(Page("", (Scores((Entry((("arm", "a"),), (series,)),), (5,), (1, 5)),)))
    assert [line.split() for line in lines if name in line] == [[*name.split(), "0.90"]]


def test_what_an_encoding_lacks_is_spelled_in_what_it_has() -> None:
    everything = "".join(EQUALS)
    assert spelled(everything, "ascii").isascii()
    assert spelled("Attn ∘ LSTM ≥ 0.90 – é日", "ascii") == "Attn o LSTM >= 0.90 - \\xe9\\u65e5"
    assert spelled("é ≥", "latin-1") == "é >="
    assert spelled(everything, "utf-8") == everything


@pytest.mark.parametrize("columns", ["80", ""])
def test_a_command_in_an_ascii_terminal_ends_well(tmp_path: Path, columns: str) -> None:
    write(tmp_path, result(model="∘ mine…"))
    words = [sys.executable, "-m", "lengthlab", "report", str(tmp_path), "--out", str(tmp_path / "out")]
    settings = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": columns}
    done = subprocess.run(words, capture_output=True, env=settings, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode("ascii")
    assert "o mine..." in shown
    assert "0.97" in shown
    if columns:
        assert max(len(line) for line in shown.splitlines() if not line.startswith("wrote ")) <= 80


def test_columns_are_obeyed_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert console_for().width == 72
    monkeypatch.delenv("COLUMNS")
    assert console_for().width == WIDE


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=20), st.integers(20, 60))
def test_a_line_of_a_card_is_folded_between_words_below_its_column(words: list[str], width: int) -> None:
    line = f"  name    {click.style(words[0], fg='red')} {' '.join(words[1:])}".rstrip()
    lines = click.unstyle(folded(line, width)).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split() == ["name", *words]
    assert all(line.startswith(" " * 10) for line in lines[1:])
