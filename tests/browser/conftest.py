"""A real browser, and pages in it: what they write to the console is kept, and a test fails if it is an error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from lengthlab.report.html_page import report_html
from lengthlab.report.publication import write_files
from lengthlab.report.sources import read_sources
from lengthlab.report.study_site import INDEX, read_site, site_files
from lengthlab.store import Folder
from page_runs import DIAGNOSIS, write_run, write_runs

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"


def chromium() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.fail("there is no browser: apt-get install chromium, or name one in CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Opened:
    """A page and what it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a file from disk; at the end nothing may have gone wrong in it."""
    opened: list[Opened] = []

    def open_it(path: Path, width: int = 1280, **how: Any) -> Page:
        page = browser.new_context(viewport={"width": width, "height": 900}, **how).new_page()
        here = Opened(page)
        page.on("console", lambda message: here.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: here.complaints.append(str(error)))
        page.on("dialog", lambda dialog: here.complaints.append(dialog.message))
        page.on("request", lambda request: here.complaints.append(request.url) if not _own(request.url) else None)
        opened.append(here)
        page.goto(path.as_uri())
        return page

    yield open_it
    for each in opened:
        each.page.context.close()
        assert each.complaints == []


def serious(page: Page) -> list[tuple[str, str]]:
    """What axe-core finds that keeps people out; the page has to let its script in (`bypass_csp`)."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")]


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of two published studies, with their pages beside it."""
    folder = tmp_path_factory.mktemp("studies")
    published = Path(__file__).parents[2] / "published"
    write_files(folder, site_files(read_site([published / "far", published / "crasp"]), "lengthlab report published"))
    return folder / INDEX


def _own(address: str) -> bool:
    return address.startswith(("file:", "blob:", "data:"))


def written(store: Path) -> Path:
    page = store.parent / "report.html"
    page.write_bytes(report_html(read_sources([str(store)]), f"lengthlab report {store.name}"))
    return page


@pytest.fixture(scope="session")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a hundred runs, one of them failed, a few looked into."""
    store = write_runs(tmp_path_factory.mktemp("hundred") / "runs", 100)
    for number in range(3):
        Folder(store / f"{number:012x}").write_json("why.json", DIAGNOSIS)
    failed = Folder(store / ("f" * 12))
    failed.write_json("run.json", {"task": {"name": "parity"}, "seed": 1})
    failed.write_json("failure.json", {"message": "loss is not finite"})
    return written(store)


@pytest.fixture(scope="session")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(write_runs(tmp_path_factory.mktemp("thousand") / "runs", 1000))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose names want to be more than names."""
    store = tmp_path_factory.mktemp("hostile") / "runs"
    for number in range(3):
        write_run(store, number, 1e-3, f"{HOSTILE} {number}", HOSTILE, 0, label=f"{HOSTILE} {number}")
    return written(store)
