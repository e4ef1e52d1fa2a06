"""report.html in a real browser: every control, light and dark, narrow, printed, by keyboard, heard, with hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import serious

Open = Callable[..., Page]
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def rows(page: Page) -> list[str]:
    return page.locator("#overview .heat-map th[scope=row]").all_inner_texts()


def test_every_control_works_without_a_complaint(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    for select in page.locator("select").all():
        for value in select.evaluate("(select) => [...select.options].map((option) => option.value)"):
            select.select_option(value)
    for box in page.locator("input[type=checkbox]").all()[:30]:
        box.click()
    for button in page.get_by_role("button").all():
        if button.inner_text() not in ("CSV", "SVG", "PNG"):
            button.click()


def test_sorting_filtering_and_grouping_change_the_rows(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    ranked = rows(page)
    assert len(ranked) == 34
    page.get_by_label("Sort by").select_option("name")
    assert rows(page) != ranked
    assert sorted(rows(page)) == sorted(ranked)
    page.get_by_label("Filter").first.fill("lstm delayed")
    assert rows(page) == [name for name in rows(page) if "lstm" in name and "delayed" in name]
    assert 0 < len(rows(page)) < 34
    page.get_by_label("Filter").first.fill("")
    page.get_by_label("Group by").select_option("model")
    heads = page.locator("#overview tr.part th").all_inner_texts()
    assert sorted(heads) == ["model: hybrid-block", "model: lstm", "model: sandwich", "model: transformer"]


def test_a_cell_tells_every_seed_under_the_pointer_and_by_keyboard(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    tip, heard = page.locator("#tip"), page.locator("[aria-live]")
    cells = page.locator("#overview tbody tr").first.locator("td[tabindex]")
    cells.first.hover()
    expect(tip).to_contain_text("seed 2")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(cells.nth(1)).to_be_focused()
    expect(tip).to_contain_text("n = 10")
    expect(heard).to_contain_text("interval")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_a_chart_is_read_by_arrow_keys(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    page.locator("#curves svg.chart").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[aria-live]")).to_contain_text("length n 10")


def test_picked_settings_are_drawn_in_both_figures(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    means = page.locator("#curves .chart path.mean:not([d*='l26'])")  # without those of the key
    assert means.count() == 6
    page.locator("#curves .picker summary").click()
    page.locator("#curves .picker input[type=checkbox]").nth(10).check()
    assert means.count() == 7
    assert page.locator("#training .picker input[type=checkbox]").nth(10).is_checked()
    page.locator("#curves").get_by_role("button", name="None").click()
    assert means.count() == 0


def test_only_the_keyboard_reaches_every_control(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred)
    reached: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName.toLowerCase()"))
    assert {"a", "button", "select", "input", "td", "svg", "summary"} <= reached


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_light_and_dark_follow_the_system_and_the_reader(open_page: Open, hundred: Path, scheme: str, dark: bool) -> None:
    page = open_page(hundred, color_scheme=scheme)
    paper = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]) < 100"
    assert page.evaluate(paper) is dark
    page.locator("button.theme").click()
    assert page.evaluate(paper) is not dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: Open, hundred: Path, scheme: str) -> None:
    page = open_page(hundred, color_scheme=scheme, bypass_csp=True)
    assert serious(page) == []


def test_on_380_pixels_nothing_is_wider_than_the_screen(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred, width=380)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert (
        page.locator("#curves svg.chart").evaluate("(chart) => chart.viewBox.baseVal.width") < 400
    )  # drawn for it, not shrunk


def test_on_paper_there_are_no_controls_and_it_is_light(open_page: Open, hundred: Path, tmp_path: Path) -> None:
    page = open_page(hundred, color_scheme="dark")
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    page.emulate_media(media="print")
    expect(page.locator(".tools").first).to_be_hidden()
    expect(page.locator("#overview table").first).to_be_visible()


def test_without_scripts_tables_and_figures_are_there(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred, java_script_enabled=False)
    expect(page.locator("#overview table").first).to_be_visible()
    expect(page.locator("#curves svg.chart").first).to_be_visible()
    assert page.locator(".tools").count() == 0
    expect(page.locator("#provenance")).to_contain_text("loss is not finite")


def test_why_is_told_first_and_every_number_on_demand(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred, width=380)
    expect(page.locator("#why")).to_contain_text("Modulo is carried by the recurrence.")
    page.locator("#why summary").first.click()
    expect(page.locator("#why h4").first).to_be_visible()
    row = page.locator("#why td code").first
    assert row.evaluate("(row) => row.getClientRects().length") == 1  # in one line, under which the next one stands
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_hostile_names_do_nothing(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile)
    page.get_by_label("Sort by").select_option("name")
    page.locator("#overview td[tabindex]").first.hover()
    expect(page.locator("#tip")).to_contain_text("<script>")
    assert page.evaluate("window.pwned === undefined")
    assert page.locator("img").count() == 0


def test_tables_and_drawings_can_be_kept(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred, accept_downloads=True)
    with page.expect_download() as table:
        page.get_by_role("button", name="CSV").click()
    lines = Path(table.value.path()).read_text().splitlines()
    assert lines[0].startswith("setting,")
    assert len(lines) == 1 + 100 * 8 * 3
    with page.expect_download() as drawing:
        page.locator("#curves").get_by_role("button", name="SVG").click()
    text = Path(drawing.value.path()).read_text()
    assert text.startswith("<svg")
    assert "var(" not in text
    wide = page.locator("#curves svg.chart").evaluate("(chart) => chart.viewBox.baseVal.width")
    with page.expect_download() as picture:
        page.locator("#curves").get_by_role("button", name="PNG").click()
    data = Path(picture.value.path()).read_bytes()
    assert (data[:8], int.from_bytes(data[16:20])) == (b"\x89PNG\r\n\x1a\n", 3 * wide)
    assert len(data) > 20_000  # and it is not empty


def test_the_command_is_copied(open_page: Open, hundred: Path) -> None:
    page = open_page(hundred, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "lengthlab report runs"


def test_a_hundred_runs_are_painted_within_a_second(browser: Browser, hundred: Path) -> None:
    times = []
    for _ in range(3):
        page = browser.new_page()
        page.goto(hundred.as_uri())
        page.wait_for_function(f"() => {FIRST_PAINT}")
        times.append(page.evaluate(FIRST_PAINT))
        page.close()
    assert min(times) < 1000


def test_a_thousand_runs_still_answer(open_page: Open, thousand: Path) -> None:
    page = open_page(thousand)
    page.get_by_label("Sort by").select_option("name")
    assert len(rows(page)) == 334
    assert page.evaluate("performance.now()") < 20_000
