"""How fast the live page is with 500 runs of 10,000 log lines, and whether memory stays flat: measured, not tested.

PYTHONPATH=.browser/site-packages:tests .venv/bin/python tests/browser/live_speed.py [lines of an hour [seconds of that hour]]

On a machine that others use, seconds of a clock tell about the others, too; so seconds of a core are told beside them: of the
server, of the page, and of the browser's process that draws it, where no GPU does.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright
from test_live import Server

from conftest import chromium
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


@dataclass
class Costs:
    """Seconds of a core that the server, the page and what draws it have taken since it was last asked."""

    page: Page
    process: int
    before: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.page.context.browser
        self.session = self.page.context.browser.new_browser_cdp_session()
        self.since()

    def since(self) -> dict[str, float]:
        processes = self.session.send("SystemInfo.getProcessInfo")["processInfo"]
        now = {"server": server_seconds(self.process)}
        for kind in ("renderer", "GPU"):
            now[kind] = sum(each["cpuTime"] for each in processes if each["type"] == kind)
        spent = {name: value - self.before.get(name, 0) for name, value in now.items()}
        self.before = now
        return spent

    def each(self, updates: int) -> str:
        spent = {name: 1000 * seconds / updates for name, seconds in self.since().items()}
        return (
            f"of a core each: server {spent['server']:.0f} ms, page {spent['renderer']:.0f} ms, drawing {spent['GPU']:.0f} ms"
        )


def server_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def opened(browser: Browser, address: str, process: int) -> Page:
    page = browser.new_page()
    page.goto(address)
    costs = Costs(page, process)
    page.wait_for_function(f"() => {PAINT}")
    print(f"  first paint {page.evaluate(PAINT):.0f} ms")
    read = "!document.querySelector('#now [role=status]').textContent.includes('Still reading')"
    page.wait_for_function(f"() => {ROWS} >= {FINISHED // 3} && {read}", timeout=500_000, polling=200)
    shown, own = page.evaluate("performance.now()"), costs.each(1)
    print(f"  everything shown {shown:.0f} ms; {own}; the server since it started {server_seconds(process):.1f} s")
    return page


def update(page: Page, folders: Sequence[Folder], step: int) -> float:
    """Milliseconds from the last line that is written to a log to the page that has it."""
    seen = f"""() => [...document.querySelectorAll('#now tbody tr')].some((row) =>
        row.cells[0].textContent === '{folders[-1].id}' && row.cells[6].textContent.startsWith('{step:,} '))"""
    for folder in folders:
        folder.append_log({"step": step, "phase": 2, "loss": 0.01, "lr": 2e-3, "accuracy": {"10": 0.9, "30": 0.5}})
    started = time.perf_counter()
    page.wait_for_function(seen, polling=10)  # at every frame it would ask for frames
    return 1000 * (time.perf_counter() - started)


def memory(page: Page, process: int) -> str:
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    nodes = page.evaluate("document.getElementsByTagName('*').length")
    resident = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return f"server {int(resident.split()[1]) / 1e3:.0f} MB, page {heap:.1f} MB and {nodes:,} elements"


def an_hour(page: Page, server: int, folders: Sequence[Folder], updates: int, step: int, seconds: float) -> None:
    """So many updates of ten runs over so many seconds; each as soon as the one before was seen, where these are too few."""
    began, costs, took = time.perf_counter(), Costs(page, server), []
    print(f"before: {memory(page, server)}")
    for number in range(1, updates + 1):
        took.append(update(page, folders, step + number))
        time.sleep(max(0.0, began + number * seconds / updates - time.perf_counter()))
        if number % -(-updates // 4) == 0 or number == updates:
            passed = time.perf_counter() - began
            print(f"after {number} updates of {len(folders)} runs in {passed:.0f} s: {memory(page, server)}", flush=True)
    print(f"these updates: median {median(took):.0f} ms, slowest {max(took):.0f} ms; {costs.each(updates)}")


def finishes(page: Page, folder: Path, under_way: Sequence[Folder]) -> None:
    done = write_run(folder / "made", 20_000, 5e-3, "sandwich", "delayed", 0)
    began, before = time.perf_counter(), page.evaluate(ROWS)
    (done / "run.json").replace(under_way[0].path / "run.json")
    (done / "result.json").replace(under_way[0].path / "result.json")
    page.wait_for_function(f"() => {ROWS} > {before}", timeout=60_000)
    print(f"a run that finishes is in the overview after {1000 * (time.perf_counter() - began):.0f} ms")


def main(lines: int = 12_000, seconds: float = 0.0) -> None:
    with TemporaryDirectory() as folder, ExitStack() as held, sync_playwright() as playwright:
        under_way = write_store(Path(folder) / "runs")
        for each in under_way:
            held.enter_context(each.lock())
        server = Server(Path(folder) / "runs")
        held.callback(server.stop)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--enable-precise-memory-info"])
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; a server that has just started:")
        opened(browser, server.address, server.process_id).close()
        print("a server that has read everything:")
        page = opened(browser, server.address, server.process_id)
        step = 1500
        for count in (1, UNDER_WAY):
            costs = Costs(page, server.process_id)
            took = [update(page, under_way[-count:], step := step + 1) for _ in range(20)]
            told = f"median {median(took):.0f} ms, slowest {max(took):.0f} ms; {costs.each(20)}"
            print(f"an update of {count} of {UNDER_WAY}: {told}; load {os.getloadavg()[0]:.1f}")
        an_hour(page, server.process_id, under_way[-10:], lines // 10, step, seconds)
        finishes(page, Path(folder), under_way)
        browser.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
