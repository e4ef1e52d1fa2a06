"""The pictures of the page in the README, anew: `lengthlab demo`'s two runs, looked into with `lengthlab why`.

make screenshots, or
PYTHONPATH=.browser/site-packages .venv/bin/python tests/browser/screenshots.py RUNS FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from conftest import chromium
from lengthlab.experiments.demo import demo
from lengthlab.report.html_page import report_html
from lengthlab.report.sources import read_sources

WIDE, SHARP = 900, 1.2
PLACE = "(element) => [element.getBoundingClientRect().top, element.getBoundingClientRect().bottom]"
GAP = 14
"""Pixels around what is shown."""


def looked_into(store: str) -> list[str]:
    """The folders of the demo's runs, trained and explained where that is missing."""
    lengthlab = [sys.executable, "-m", "lengthlab"]
    subprocess.run([*lengthlab, "demo", "--store", store], check=True, stdout=subprocess.DEVNULL)
    folders = [Path(store) / run.id for run in demo([0])]
    for folder in folders:
        if not (folder / "why.json").exists():
            subprocess.run([*lengthlab, "why", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return list(map(str, folders))


def opened(browser: Browser, page: Path, scheme: str) -> Page:
    how = {"viewport": {"width": WIDE, "height": 1000}, "color_scheme": scheme, "device_scale_factor": SHARP}
    made = browser.new_context(**how).new_page()  # type: ignore[arg-type]
    made.goto(page.as_uri())
    return made


def keep(page: Page, first: str, last: str, path: Path) -> None:
    """From the top of one element to the bottom of another."""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)  # figures are drawn once their width is known
    above, below = (page.locator(each).first.evaluate(PLACE) for each in (first, last))
    top, bottom = max(0, above[0] - GAP), below[1] + GAP
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": top, "width": WIDE, "height": bottom - top})
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def main(store: str, folder: Path) -> None:
    with TemporaryDirectory() as place, sync_playwright() as playwright:
        file = Path(place) / "report.html"
        file.write_bytes(report_html(read_sources(looked_into(store)), "lengthlab report runs"))
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        light, dark = opened(browser, file, "light"), opened(browser, file, "dark")
        keep(light, "header", "#overview .heat-map", folder / "overview.png")
        dark.locator("#curves select").first.select_option(label="modulo")
        keep(dark, "#curves h2", "#curves figure", folder / "curves.png")
        dark.locator("#why summary").filter(has_text="end-to-end").click()
        keep(dark, "#why h2", "#why details[open] .scroll", folder / "why.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
