"""Published studies as pages: an index with every claim, a page for each, the same where they are served, and small."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from command import Call
from lengthlab.report.published_curves import published_curves, rows_in
from lengthlab.report.study_site import INDEX, Site, read_site, site_files
from lengthlab.serve.site import site_app

PUBLISHED = Path(__file__).parents[1] / "published"
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def site() -> Site:
    return read_site([PUBLISHED / "far", PUBLISHED / "dat"])


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[str, str]:
    return {name: data.decode() for name, data in site_files(site, "lengthlab report published").items()}


def words(page: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def test_the_index_has_every_claim_with_its_verdict_and_leads_to_every_study(site: Site, pages: dict[str, str]) -> None:
    index = words(pages[INDEX])
    for study in site.studies:
        assert f'href="{study.file}"' in pages[INDEX]
        assert study.results.study.question in index
        for finding in study.results.findings():
            assert " ".join(finding.claim.words.split()) in index
            assert finding.verdict in index
    assert "NVIDIA H200" in index
    assert "107 runs" in index


def test_every_link_leads_to_a_page_or_a_place_that_is_there(pages: dict[str, str]) -> None:
    for page in pages.values():
        for target in re.findall(r' href="([^"]*)"', page):
            file, _, anchor = target.partition("#")
            assert not file or file in pages
            assert not anchor or f'id="{anchor}"' in (pages[file] if file else page)


def test_the_page_of_a_study_has_its_tables_beside_the_reference_and_its_runs(pages: dict[str, str]) -> None:
    told = words(pages["study-dat.html"])
    for word in ("Question and claims", "Table 1: recall", "paper 0.98", "How training went", "Selection rules", "Provenance"):
        assert word in told
    assert [group["trained"] for group in _data(pages["study-far.html"])["groups"]] == [[1, 25], [1, 10]]


def _data(page: str) -> dict[str, list[dict[str, object]]]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return data


def test_pages_are_small_and_the_same_again(site: Site, pages: dict[str, str]) -> None:
    assert len(pages["study-dat.html"]) < 700_000  # 92 runs
    again = {name: data.decode() for name, data in site_files(site, "lengthlab report published").items()}
    assert again == pages


def test_it_is_served_as_it_is_written_and_nothing_else_is(pages: dict[str, str]) -> None:
    files = {name: page.encode() for name, page in pages.items()}
    with TestClient(site_app(files, ["localhost"]), base_url="http://localhost:8011") as client:
        assert client.get("/").content == client.get(f"/{INDEX}").content == files[INDEX]
        answer = client.get("/study-far.html")
        assert answer.content == files["study-far.html"]
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.split("; frame-ancestors")[0] in pages["study-far.html"].replace("&#x27;", "'")
        assert client.get("/../pyproject.toml").status_code == 404
        assert client.post("/").status_code == 405
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421


def test_rows_of_others_are_text_and_run_nothing(call: Call, tmp_path: Path) -> None:
    place = tmp_path / "rows" / "far"
    shutil.copytree(PUBLISHED / "far", place)
    (tmp_path / "evil.py").write_text("raise SystemExit('this was run')")
    row = json.loads((place / "results.jsonl").read_text().splitlines()[0])
    for name in (f"{tmp_path}/evil.py:STUDY", HOSTILE):
        with (place / "results.jsonl").open("a") as file:
            file.write(json.dumps(row | {"experiment": name}) + "\n")
    origins = json.loads((place / "provenance.json").read_text())
    (place / "provenance.json").write_text(json.dumps([origin | {"hardware": HOSTILE} for origin in origins]))
    done = call("report", tmp_path / "rows", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "no study is called" in done.err
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["report.html", "study-far.html", "table.csv", "table.json"]
    assert "<img" not in (tmp_path / "out" / INDEX).read_text()
    call("serve", tmp_path / "rows", tmp_path).refused("published rows")


def test_a_curve_has_the_training_range_of_the_section_that_its_arm_is_in() -> None:
    curves, _ = published_curves(rows_in(PUBLISHED / "coupling"))
    ranges = {(curve.first.task, curve.trained) for curve in curves}
    sums = {("addition", (1, 30)), ("addition", (1, 12))}  # those of the second are of two cores
    assert ranges == {
        *sums,
        *(("copy", trained) for trained in ((1, 40), (1, 12))),
        ("reverse", (1, 40)),
        ("multiplication", (1, 40)),
        ("minesweeper", (5, 9)),
    }
