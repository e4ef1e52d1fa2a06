"""The live page in a real browser, from a real server: news arrive, and a server that starts again is found again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import serious
from lengthlab.store import Folder
from page_runs import write_run, write_runs

HOSTILE = "<img src=x onerror=window.pwned=1>"


class Server:
    """`lengthlab serve` in a process of its own, always at the same port."""

    def __init__(self, store: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.store, self.address = store, f"http://127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        words = ["-m", "lengthlab", "serve", str(self.store), "--port", str(self.port)]
        self._process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, env=dict(os.environ))
        assert self._process.stderr
        self._process.stderr.readline()  # the address, once it can be asked for

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)

    @property
    def process_id(self) -> int:
        return self._process.pid


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(write_runs(tmp_path / "runs", 6))
    yield started
    started.stop()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    opened = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    opened.goto(server.address)
    yield opened
    opened.context.close()


def begin(store: Path, name: str) -> Folder:
    folder = Folder(store / name)
    content = {"task": {"name": "parity"}, "model": {"name": HOSTILE}, "seed": 1, "lengths": [1, 10], "batch": 4}
    folder.write_json("run.json", content | {"schedule": {"name": "delayed", "phases": [{"length": 1000}]}})
    return folder


def log(folder: Folder, *steps: int) -> None:
    for step in steps:
        folder.append_log({"step": step, "phase": 1, "loss": 5 / step, "lr": 1e-3})


def finish(store: Path, folder: Folder, number: int) -> None:
    made = write_run(store.parent / "made", number, 1e-3, "sandwich", "delayed", 0)
    for name in ("run.json", "result.json"):
        (made / name).replace(folder.path / name)


def test_runs_appear_grow_stop_and_settle_and_a_server_may_start_again(page: Page, server: Server) -> None:
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    state, rows = page.locator("#now [role=status]"), page.locator("#now tbody tr")
    expect(state).to_contain_text("No run is under way")
    expect(page.locator("#overview .heat-map th[scope=row]")).to_have_count(2)
    page.get_by_label("Sort by").select_option("name")

    folder = begin(server.store, "a" * 12)
    with folder.lock():
        log(folder, 10, 20)
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("training")
        expect(rows.first).to_contain_text("20 of 1,000")
        drawn = page.locator("#now svg.chart path.run").first.get_attribute("d") or ""
        log(folder, 30, 40)
        expect(rows.first).to_contain_text("40 of 1,000")
        assert page.locator("#now svg.chart path.run").first.get_attribute("d") != drawn
    expect(rows.first).to_contain_text("stopped")
    expect(rows.first).to_contain_text(HOSTILE)

    server.stop()
    expect(state).to_contain_text("Not connected")
    log(folder, 50)
    server.start()
    expect(state).to_contain_text("Live", timeout=15_000)
    expect(rows.first).to_contain_text("50 of 1,000")

    finish(server.store, folder, 77)
    expect(rows).to_have_count(0)
    expect(page.locator("#overview .heat-map th[scope=row]")).to_have_count(3, timeout=10_000)
    expect(page.locator("header p").first).to_contain_text("7 runs")
    assert page.get_by_label("Sort by").input_value() == "name"  # what a reader chose stays chosen
    assert page.evaluate("window.pwned === undefined")
    assert page.locator("img").count() == 0
    assert complaints == []


def test_nothing_grows_with_the_number_of_updates(page: Page, server: Server) -> None:
    folder = begin(server.store, "b" * 12)
    count = "document.getElementsByTagName('*').length"
    with folder.lock():
        log(folder, *range(1, 400))
        expect(page.locator("#now tbody tr")).to_contain_text("399 of")
        expect(page.locator("#provenance")).to_contain_text("still in training")
        before = page.evaluate(count)
        for step in range(400, 420):
            log(folder, step)
            time.sleep(0.05)
        expect(page.locator("#now tbody tr")).to_contain_text("419 of")
        assert page.evaluate(count) <= before + 20


def test_the_live_section_fits_380_pixels_and_axe_finds_nothing_serious_in_it(browser: Browser, server: Server) -> None:
    training, stopped = begin(server.store, "c" * 12), begin(server.store, "d" * 12)
    failed = begin(server.store, "e" * 12)
    failed.write_json("failure.json", {"message": "loss is not finite: a lower rate helps"})
    log(stopped, 10)
    with training.lock():
        log(training, 10, 20, 30)
        for scheme, width in (("light", 1280), ("dark", 380)):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
            page = context.new_page()
            page.goto(server.address)
            expect(page.locator("#now tbody tr")).to_have_count(3)
            expect(page.locator("#now svg.chart path.run").first).to_be_attached()
            assert serious(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("#now svg.chart").evaluate("(chart) => chart.getBoundingClientRect().width") <= width
            context.close()
