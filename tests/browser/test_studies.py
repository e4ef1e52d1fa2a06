"""Published studies in a real browser: the index leads to every study and back, narrow, dark, heard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from conftest import serious

Open = Callable[..., Page]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_index_leads_to_a_study_and_back_and_nothing_serious_is_found(open_page: Open, studies: Path, scheme: str) -> None:
    page = open_page(studies, color_scheme=scheme, bypass_csp=True)
    assert serious(page) == []
    page.locator("#far").get_by_role("link", name="Tables, curves").click()
    expect(page.locator("h1")).to_have_text("Far beyond the training length")
    expect(page.locator("#claims table")).to_contain_text("holds")
    expect(page.locator("#curves svg.chart").first).to_be_visible()
    assert serious(page) == []
    page.get_by_role("link", name="Published studies").click()
    expect(page.locator("#studies tbody tr")).to_have_count(2)


def test_on_380_pixels_no_page_of_a_study_is_wider_than_the_screen(open_page: Open, studies: Path) -> None:
    for path in sorted(studies.parent.glob("*.html")):
        page = open_page(path, width=380)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
