"""How fast the live page is with 500 runs of 10,000 log lines, and whether memory stays flat: measured, not tested.

PYTHONPATH=.browser/site-packages:tests .venv/bin/python tests/browser/live_speed.py [seconds of updates]
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright
from test_live import Server

from lengthlab.store import Folder
from page_runs import write_run, write_runs

FINISHED, UNDER_WAY, LINES = 400, 100, 10_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
ROWS = "document.querySelectorAll('#overview .heat-map tbody tr').length"


def write_store(store: Path) -> list[Folder]:
    """The folders of those that are under way."""
    write_runs(store, FINISHED)
    log = write_run(store.parent / "one", 1, 1e-3, "lstm", "delayed", 0, lines=LINES) / "log.jsonl"
    under_way = []
    for number in range(UNDER_WAY):
        folder = write_run(store, 10_000 + number, 2e-3, f"model-{number}", "delayed", 0, lines=1)
        (folder / "result.json").unlink()
        under_way.append(Folder(folder))
    for folder in store.iterdir():
        shutil.copyfile(log, folder / "log.jsonl")
    return under_way


def opened(browser: Browser, address: str) -> Page:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function(f"() => {PAINT}")
    print(f"  first paint {page.evaluate(PAINT):.0f} ms")
    page.wait_for_function(
        f"() => {ROWS} >= {FINISHED // 3} && !document.body.innerText.includes('Still reading')", timeout=300_000
    )
    print(f"  everything shown {page.evaluate('performance.now()'):.0f} ms")
    return page


def update(page: Page, folders: Sequence[Folder], step: int) -> float:
    """Milliseconds from a line in a log to the page that has it."""
    row = f"row.cells[0].textContent === '{folders[-1].id}' && row.cells[6].textContent.startsWith('{step:,} ')"
    seen = f"() => [...document.querySelectorAll('#now tbody tr')].some((row) => {row})"
    started = time.perf_counter()
    for folder in folders:
        folder.append_log({"step": step, "phase": 2, "loss": 0.01, "lr": 2e-3, "accuracy": {"10": 0.9, "30": 0.5}})
    page.wait_for_function(seen)
    return 1000 * (time.perf_counter() - started)


def memory(page: Page, process: int) -> str:
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    resident = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return f"server {int(resident.split()[1]) / 1e3:.0f} MB, page {heap:.1f} MB"


def main(seconds: float) -> None:
    with TemporaryDirectory() as folder, ExitStack() as held, sync_playwright() as playwright:
        under_way = write_store(Path(folder) / "runs")
        for each in under_way:
            held.enter_context(each.lock())
        server = Server(Path(folder) / "runs")
        held.callback(server.stop)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        print("a server that has just started:")
        opened(browser, server.address).close()
        print("a server that has read everything:")
        page = opened(browser, server.address)
        step = 1500
        for count in (1, UNDER_WAY):
            took = [update(page, under_way[-count:], step := step + 1) for _ in range(20)]
            print(f"an update of {count} of {UNDER_WAY}: median {median(took):.0f} ms, slowest {max(took):.0f} ms")
        print(memory(page, server.process_id))
        began, updates = time.perf_counter(), 0
        marks = [seconds / 3, 2 * seconds / 3, seconds]
        while marks:
            update(page, under_way[-10:], step := step + 1)
            updates += 1
            if time.perf_counter() - began > marks[0]:
                marks.pop(0)
                took = time.perf_counter() - began
                print(f"after {updates} updates of 10 runs in {took:.0f} s: {memory(page, server.process_id)}")
        done = write_run(Path(folder) / "made", 20_000, 5e-3, "sandwich", "delayed", 0)
        began, before = time.perf_counter(), page.evaluate(ROWS)
        (done / "run.json").replace(under_way[0].path / "run.json")
        (done / "result.json").replace(under_way[0].path / "result.json")
        page.wait_for_function(f"() => {ROWS} > {before}", timeout=60_000)
        print(f"a run that finishes is in the overview after {1000 * (time.perf_counter() - began):.0f} ms")
        browser.close()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
