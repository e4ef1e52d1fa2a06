"""The page as one HTML file: what it says without a script, that nothing in it acts, that it is small and the same again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthlab.report.compared import compared
from lengthlab.report.course import course_of, thinned
from lengthlab.report.curves import read_curves
from lengthlab.report.html import html
from lengthlab.report.html_page import report_html
from lengthlab.report.markup import embedded, tag
from lengthlab.report.page import Details, Heading, Numbered, Span, Table, Text
from lengthlab.report.rules import by_rule, flattery
from lengthlab.report.sources import Sources, read_sources
from lengthlab.store import Folder
from page_runs import LENGTHS, write_run, write_runs

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028\u202e\x1b[31m"
MEGABYTE = 1_000_000


class Seen(HTMLParser):
    """Every element with its attributes, and the texts in it; what is never closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        self.texts.append(text)
        self.inside.setdefault(self.open[-1] if self.open else "", []).append(text)

    def count(self, name: str) -> int:
        return sum(each == name for each, _ in self.elements)

    def names(self) -> set[str]:
        return {name for name, _ in self.elements}


def page_of(*stores: Path, command: str = "") -> str:
    return report_html(read_sources([str(store) for store in stores]), command).decode()


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture(scope="module")
def dozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve runs, one that failed, one that stopped, one that has not begun."""
    store = write_runs(tmp_path_factory.mktemp("page") / "runs", 12, seeds=2)
    begun = {"task": {"name": "parity"}, "model": {"name": "lstm"}, "schedule": {"name": "delayed"}, "seed": 7}
    for number, name in enumerate(("failed", "stopped", "waiting"), start=1):
        Folder(store / (f"{number}" * 12)).write_json("run.json", begun | {"label": name})
    Folder(store / ("1" * 12)).write_json("failure.json", {"message": "loss is not finite: a lower rate helps"})
    Folder(store / ("2" * 12)).append_log({"step": 50, "loss": 1.5})
    return store


@pytest.fixture(scope="module")
def page(dozen: Path) -> str:
    return page_of(dozen, command="lengthlab report runs")


def test_a_page_is_whole_and_has_every_section(page: str) -> None:
    seen = Seen(page)
    anchors = [attributes["id"] for name, attributes in seen.elements if name == "section"]
    assert anchors == ["overview", "curves", "training", "selection", "tasks", "provenance"]
    links = {attributes.get("href") for name, attributes in seen.elements if name == "a"}
    assert {f"#{anchor}" for anchor in anchors} <= links
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_without_a_script_there_are_tables_and_figures(page: str) -> None:
    seen = Seen(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert seen.count("table") >= 5
    charts = [attributes for name, attributes in seen.elements if name == "svg" and attributes.get("class") == "chart"]
    assert len(charts) == 4  # three questions, and the loss
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)
    text = " ".join(seen.texts)
    assert "above 0.90" in text
    assert "A sample" in text
    assert "Lemma 7" in text
    assert "0–500 attention off; 500–1,500 everything on" in text


def test_a_cell_has_mean_and_interval_and_every_seed(page: str) -> None:
    group = data_of(page)["groups"][0]
    first = group["settings"][0]["series"][0]
    cells = [attributes for name, attributes in Seen(page).elements if name == "td" and "title" in attributes]
    seeds = "; ".join(f"seed {seed}: {each[0] / 1e4:.3f}" for seed, each in zip(first["seeds"], first["each"], strict=True))
    assert cells[0]["title"] == seeds
    assert f"{first['mean'][0] / 1e4:.2f}<small>{first['low'][0] / 1e4:.2f}–{first['high'][0] / 1e4:.2f}</small>" in page


def test_the_best_stand_first_and_the_training_range_is_marked(page: str) -> None:
    group = data_of(page)["groups"][0]
    reaches = [setting["series"][0]["reach"] for setting in group["settings"]]
    assert reaches[0] == max(reaches)
    assert group["lengths"] == list(LENGTHS)
    heads = [attributes for name, attributes in Seen(page).elements if name == "th" and attributes.get("scope") == "colgroup"]
    assert [head["colspan"] for head in heads[:2]] == ["2", "6"]  # n = 5 and 10 of 1…10


def test_what_gave_no_numbers_is_listed_with_its_reason(page: str) -> None:
    text = " ".join(Seen(page).texts)
    for word in ("failed", "loss is not finite: a lower rate helps", "stopped", "no process has it", "waiting", "not begun"):
        assert word in text
    assert "3 runs without a result" in text


def test_provenance_names_machine_versions_commit_seeds_and_command(page: str) -> None:
    text = " ".join(Seen(page).texts)
    for word in ("abc1234", "a slide rule", "python 3.11.7, torch 2.13.0", "fp32", "0, 1", "lengthlab report runs"):
        assert word in text


def test_the_same_runs_give_the_same_bytes(dozen: Path, page: str) -> None:
    assert page_of(dozen, command="lengthlab report runs") == page


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<>)]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, which nobody fetches
    for name, attributes in Seen(page).elements:
        assert name not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes
        assert "style" not in attributes
        assert not any(key.startswith("on") for key in attributes)
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_lets_our_script_and_style_run_and_nothing_else(page: str) -> None:
    from base64 import b64encode
    from hashlib import sha256

    policy = next(a["content"] or "" for name, a in Seen(page).elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    texts = [re.search(r"<style>(.*?)</style>", page, re.DOTALL), re.search(r"<script>(.*?)</script>", page, re.DOTALL)]
    for text in texts:
        assert text
        assert b64encode(sha256(text[1].encode()).digest()).decode() in policy


def test_hostile_names_are_text(tmp_path: Path) -> None:
    clean = page_of(write_runs(tmp_path / "clean", 2, seeds=2), command="lengthlab report runs")
    for number, label in enumerate((HOSTILE, "{{7*7}} ${7*7} <!-- ]]>")):
        write_run(tmp_path / "runs", number, 1e-3, f"{HOSTILE}{number}", HOSTILE, 0, label=label)
    result = tmp_path / "runs" / f"{0:012x}" / "result.json"
    told = json.loads(result.read_text())
    told |= {"commit": HOSTILE, "hardware": HOSTILE, "versions": {"torch": HOSTILE}, "task": HOSTILE}
    told["portrait"] = {
        "sample": [HOSTILE],
        "scored": {HOSTILE: [0]},
        "parts": [{"text": HOSTILE}],
        "theory": {"says": HOSTILE},
    }
    told["chance"] = {HOSTILE: 0.5}
    told["counts"] = [{"length": 5, "question": HOSTILE, "correct": 9, "total": 10}]
    result.write_text(json.dumps(told))
    failed = Folder(tmp_path / "runs" / ("f" * 12))
    failed.write_json("run.json", {"task": {"name": HOSTILE}})
    failed.write_json("failure.json", {"message": HOSTILE})
    page = page_of(tmp_path / "runs", command=f"lengthlab report {HOSTILE}")
    seen = Seen(page)
    assert seen.names() == Seen(clean).names()
    assert seen.count("script") == 2
    assert not set("\u2028\u202e\x1b") & set(page)
    assert "alert(1)" in " ".join(seen.texts)
    for _, attributes in seen.elements:
        assert not any(key.startswith("on") for key in attributes)
    assert any(HOSTILE.split("\u2028")[0] in setting["name"] for g in data_of(page)["groups"] for setting in g["settings"])


@given(st.text())
def test_embedded_data_comes_back_and_ends_no_element(text: str) -> None:
    written = embedded({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set("<>&\u2028\u2029") & set(written)


@given(st.text(), st.text())
def test_whatever_stands_in_a_text_or_an_attribute_is_one_element(text: str, title: str) -> None:
    assert [name for name, _ in Seen(tag("p", text, title=title)).elements] == ["p"]


def test_every_block_has_its_form() -> None:
    made = html(Details("more", (Heading("a"), Text("b"), Table(("n",), (("5",),)), Numbered(("c",), "made"))))
    assert made == (
        "<details><summary>more</summary><h3>a</h3><p>b</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="table: n"><table><thead><tr>'
        '<th scope="col" class="number">n</th></tr>'
        '</thead><tbody><tr><td class="number">5</td></tr></tbody></table></div><ol><li id="made-1">c</li></ol></details>'
    )
    assert html(Text(Span("x", target="#made-1"))) == '<p><a href="#made-1">x</a></p>'
    assert html(Text(Span("x", target="https://example.org"))) == "<p>x</p>"


def test_a_hundred_runs_are_less_than_a_megabyte(tmp_path: Path) -> None:
    assert len(page_of(write_runs(tmp_path / "runs", 100)).encode()) < MEGABYTE


def test_a_thousand_runs_are_less_than_eight(tmp_path: Path) -> None:
    """The page of 100 runs made ten times as many in memory: reading files would take the time."""
    found = read_sources([str(write_runs(tmp_path / "runs", 100))])
    curves = []
    for copy in range(10):
        for curve in found.curves:
            run = f"{copy:x}{curve.first.run[1:]}"
            rows = tuple(replace(row, run=run) for row in curve.rows)
            content = {**curve.content, "width": copy}
            made = curve.made | {"settings": f"{curve.made['settings']} {copy}"}
            curves.append(replace(curve, rows=rows, content=content, made=made))
    page = report_html(Sources(tuple(curves)))
    assert sum(len(setting["courses"]) for setting in data_of(page.decode())["groups"][0]["settings"]) == 1000
    assert len(page) < 8 * MEGABYTE


def test_rules_of_selection_against_plain_ones(dozen: Path) -> None:
    curves, _ = read_curves([Folder(path) for path in sorted(dozen.glob("0*"))])
    (group,) = compared(curves)
    for place, line in enumerate(by_rule(group, 40)):
        rows = [
            row for curve in group.settings[place].curves for row in curve.rows if (row.length, row.question) == (40, "all")
        ]
        shares = sorted(row.correct / row.total for row in rows)
        assert line[0] == pytest.approx(sum(shares) / 2)
        assert line[1] == pytest.approx(sum(shares) / 2)  # of two seeds the median is the mean
        assert line[2] == shares[-1]
    assert flattery(by_rule(group, 40))[0] == 0
    assert (flattery(by_rule(group, 40))[2] or 0) >= 0


def test_the_best_rate_is_that_of_settings_that_differ_in_nothing_else(tmp_path: Path) -> None:
    for number, (lr, model) in enumerate([(0.1, "lstm"), (0.2, "lstm"), (0.1, "sandwich")]):
        write_run(tmp_path, number, lr, model, "end-to-end", 0)
    curves, _ = read_curves([Folder(path) for path in sorted(tmp_path.iterdir())])
    (group,) = compared(curves)
    found = {setting.name: line for setting, line in zip(group.settings, by_rule(group, 40), strict=True)}
    lstms = [line for name, line in found.items() if "lstm" in name]
    assert [line[4] for line in lstms] == [max(line[0] or 0 for line in lstms)] * 2
    assert next(line[4] for name, line in found.items() if "sandwich" in name) is None


def test_a_course_has_phases_and_keeps_the_mean_of_the_loss(tmp_path: Path) -> None:
    curves, _ = read_curves([Folder(write_run(tmp_path, 1, 0.1, "lstm", "delayed", 0, lines=200))])
    course = course_of(curves[0], 40)
    assert [(stretch.end, stretch.off) for stretch in course.stretches] == [(500, ("attention",)), (1500, ())]
    assert len(course.loss) == 40
    logged = [line["loss"] for line in curves[0].folder.read_log()]
    assert sum(loss for _, loss in course.loss) / 40 == pytest.approx(sum(logged) / 200)
    assert course.watched == (10, 30)
    assert course.rates == ((7, 0.1), (1500, 0.1))
    assert thinned([], 5) == []


def test_a_run_without_log_or_portrait_is_shown_all_the_same(tmp_path: Path) -> None:
    folder = write_run(tmp_path, 1, 0.1, "lstm", "delayed", 0)
    (folder / "log.jsonl").unlink()
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({key: value for key, value in result.items() if key != "portrait"}))
    text = " ".join(Seen(page_of(tmp_path)).texts)
    assert "A sample" not in text
    assert "lstm, width 32" in text


def test_numbers_that_are_none_end_no_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path, 1, 0.1, "lstm", "delayed", 0)
    junk = [
        '{"step": 10, "loss": NaN, "lr": Infinity, "accuracy": {"10": NaN, "30": 7}}',
        f'{{"step": 20, "loss": {10**400}, "lr": -1}}',
        f'{{"step": {10**40}, "loss": 1.0}}',
        '{"step": 30, "loss": -2.5}',
    ]
    (folder / "log.jsonl").write_text("\n".join(junk) + "\n")
    result = json.loads((folder / "result.json").read_text())
    result["chance"] = {"modulo": float("nan"), "recall": 1e308, "all": -1}
    result["portrait"] = {"sample": ["a"], "scored": {"x": [[1], {}, 0]}, "parts": [{"depth": "deep"}], "theory": {"says": 5}}
    (folder / "result.json").write_text(json.dumps(result))
    page = page_of(tmp_path)
    assert data_of(page)["groups"][0]["settings"][0]["courses"][0]["loss"] == [[30, -2.5]]
    assert not re.search(r"\bnan\b", re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL))


def test_published_rows_are_a_page_too() -> None:
    place = Path(__file__).parents[1] / "published" / "far"
    page = page_of(place)
    titles = [group["title"] for group in data_of(page)["groups"]]
    assert titles == [
        "modulo-recall, study far, gpu, trained on n = 1…25",
        "modulo-recall, study far, cpu, trained on n = 1…10",
    ]
    assert "lengthlab reproduce far" in page
    assert "Of 2 of 2 groups of runs neither a sample nor the parts of models are known" in page


def test_a_file_nested_too_deeply_ends_no_page(tmp_path: Path) -> None:
    nested: Any = {"name": "core"}
    for _ in range(300):
        nested = [nested]
    folder = write_run(tmp_path, 1, 0.1, "lstm", "delayed", 0)
    content = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(content | {"model": {"name": "lstm", "body": nested}}))
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"portrait": "none"}))
    assert "lstm" in page_of(tmp_path)
