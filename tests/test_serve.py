"""The live page: who may ask for what, what is read and what never is, and how news reach a reader."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from command import Call
from lengthlab.cli.live_page import live_page
from lengthlab.report.course import MOST, course_of
from lengthlab.report.curves import read_curves
from lengthlab.serve.app import app_of
from lengthlab.serve.finished import Finished
from lengthlab.serve.growth import Growth
from lengthlab.serve.live import WAITING, Live
from lengthlab.serve.places import FILES, Places
from lengthlab.serve.server import serve
from lengthlab.serve.under_way import patch
from lengthlab.store import Folder
from lengthlab.store.log import FILE, Tail
from page_runs import write_run, write_runs

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u202e"
SECRET = "nobody is to see this"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs", 2)


@pytest.fixture
def live(store: Path) -> Live:
    """Looked at and written once; tests look again by hand."""
    return looked(Live(Places([str(store)]), listing=0))


def looked(live: Live) -> Live:
    while live.look():
        pass
    live.write()
    return live


def begin(store: Path, name: str = "a" * 12, lines: int = 3, **content: Any) -> Folder:
    """A run that is not finished."""
    folder = Folder(store / name)
    schedule = {"name": "delayed", "phases": [{"length": 100, "off": ["attention"]}, {"length": 900}]}
    known = {
        "task": {"name": "parity"},
        "model": {"name": "lstm"},
        "schedule": schedule,
        "seed": 4,
        "lengths": [1, 10],
        "batch": 8,
    }
    folder.write_json("run.json", known | content)
    for number in range(1, lines + 1):
        log(folder, number * 10)
    return folder


def log(folder: Folder, step: int) -> None:
    folder.append_log({"step": step, "phase": 1, "loss": 30 / step, "lr": 1e-3, "accuracy": {"10": 0.5, "20": 0.25}})


@pytest.fixture
def client(live: Live) -> Iterator[TestClient]:
    with TestClient(app_of(live, ["localhost"]), base_url="http://localhost:8011") as made:
        yield made


def heard(live: Live, then: Callable[[], object]) -> list[tuple[str, Any]]:
    """The events that a reader gets, from joining until `then` is done."""

    async def listen() -> list[bytes]:
        reader = live.join(asyncio.get_running_loop())
        assert reader
        then()
        await asyncio.sleep(0)
        live.leave(reader)
        return [data for _ in range(reader.queue.qsize()) if (data := reader.queue.get_nowait())]

    return [_event(each.decode()) for each in asyncio.run(listen())]


def _event(text: str) -> tuple[str, Any]:
    name, data = text.rstrip("\n").split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "192.168.0.7", "", "localhost@a.example", "[::1"])
def test_a_host_that_is_not_its_own_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "modulo" not in answer.text


def test_numbers_are_its_own_only_where_it_listens_to_all(live: Live) -> None:
    for everywhere, status in ((False, 421), (True, 200)):
        client = TestClient(app_of(live, ["localhost"], everywhere), base_url="http://10.1.2.3:8011")
        assert client.get("/").status_code == status
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_is_for_reading(client: TestClient, method: str) -> None:
    for path in ("/", "/events", "/page.js"):
        assert client.request(method, path).status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/000000000000/log.jsonl", "/page.js/../../secret.txt", "/..%5csecret.txt"],
)
def test_no_address_leads_to_a_file(client: TestClient, store: Path, path: str) -> None:
    (store.parent / "secret.txt").write_text(SECRET)
    answer = client.get(path)
    assert answer.status_code == 404
    assert SECRET not in answer.text


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/nothing"])
def test_the_policy_lets_only_its_own_script_run(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert client.head(path).status_code == client.get(path).status_code


def test_the_page_has_no_script_of_its_own(client: TestClient) -> None:
    text = client.get("/").text
    assert text.count("<script") == 2
    assert '<script src="page.js" defer></script>' in text
    assert '<script type="application/json" id="data">' in text


def test_hostile_names_are_text(store: Path) -> None:
    write_run(store, 9, 1e-3, HOSTILE, HOSTILE, 0)
    begin(store, model={"name": HOSTILE}, task={"name": HOSTILE})
    Folder(store / ("b" * 12)).write_json("run.json", {})
    Folder(store / ("b" * 12)).write_json("failure.json", {"message": HOSTILE})
    live = looked(Live(Places([str(store)]), listing=0))
    assert b"<img" not in live.page
    assert b"<script>alert" not in live.page
    [(_, all_runs)] = heard(live, lambda: None)
    assert "\u202e" not in json.dumps(all_runs, ensure_ascii=False)
    assert {run["state"] for run in all_runs["runs"].values()} == {"stopped", "failed"}


@pytest.mark.parametrize("name", FILES)
def test_no_link_leads_out(store: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"task": {"name": SECRET}, "message": SECRET, "step": 1}) + "\n")
    folder = begin(store, lines=0)
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name).symlink_to(secret)
    live = looked(Live(Places([str(store)]), listing=0))
    assert f"{name} is no file in it" in live.page.decode()
    assert SECRET not in live.page.decode() + json.dumps(heard(live, lambda: None))


def test_a_linked_folder_outside_and_a_pipe_are_not_read(store: Path, tmp_path: Path) -> None:
    begin(tmp_path / "elsewhere", task={"name": SECRET})
    (store / "linked").symlink_to(tmp_path / "elsewhere" / ("a" * 12))
    (store / "again").symlink_to(store / ("0" * 12))  # within what is served: the same run, once
    os.mkfifo(begin(store, "c" * 12, lines=0).path / FILE)
    live = looked(Live(Places([str(store)]), listing=0))
    assert "leads out" in live.page.decode()
    assert SECRET not in live.page.decode()
    assert "2 runs of" in live.page.decode()


def test_a_run_appears_grows_stops_and_settles(store: Path) -> None:
    live = looked(Live(Places([str(store)]), listing=0))
    folder = Folder(store / ("a" * 12))

    def life() -> None:
        begin(store)
        with folder.lock():
            live.look()
            log(folder, 40)
            live.look()
        live.look()
        write_run(store, 7, 1e-3, "lstm", "delayed", 0)
        (store / f"{7:012x}" / "result.json").rename(folder.path / "result.json")
        live.look()

    name, first = (events := heard(live, life))[0]
    assert (name, first["runs"]) == ("all", {})
    appeared, grown, stopped, settled = [data for _, data in events[1:]]
    [(number, run)] = appeared["runs"].items()
    assert (run["state"], run["off"], run["step"], run["steps"]) == ("training", "attention", 30, 1000)
    assert run["course"]["inside"] == [[10, 5000], [20, 5000], [30, 5000]]
    assert grown["runs"][number]["lines"]["loss"] == [3, [[40, 0.75]]]
    assert stopped["runs"][number]["state"] == "stopped"
    assert settled["gone"] == [number]
    before = live.page
    live.write()
    assert live.page != before
    assert b"3 runs of" in live.page


def test_nothing_new_is_no_event(live: Live) -> None:
    assert [name for name, _ in heard(live, live.look)] == ["all"]


def test_a_server_that_starts_again_shows_the_same_version(store: Path) -> None:
    begin(store)
    pages = {looked(Live(Places([str(store)]), listing=0)).page for _ in range(2)}
    assert len(pages) == 1


def test_a_reader_who_does_not_read_is_let_go(live: Live, store: Path) -> None:
    folder = begin(store)

    def much() -> None:
        for step in range(40, 40 + WAITING + 5):
            log(folder, step)
            live.look()

    assert heard(live, much) == []  # only the end, which makes its browser ask for all anew


def test_a_log_of_any_length_is_a_figure_of_few_points(tmp_path: Path) -> None:
    folder = write_run(tmp_path, 1, 1e-3, "lstm", "delayed", 0, lines=1001)
    tail = Tail(folder / FILE, Growth)
    tail.read()
    assert isinstance(tail.summary, Growth)
    grown = tail.summary.course(0, 10, ())
    [curve], _ = read_curves([Folder(folder)])
    whole = course_of(curve, points=10_000)
    assert 0.4 * MOST < len(grown.loss) <= MOST
    assert len(grown.inside) <= MOST + 1
    assert (grown.watched, grown.inside[-1], grown.loss[-1][0]) == (whole.watched, whole.inside[-1], whole.loss[-1][0])
    assert {rate for _, rate in grown.rates} == {1e-3}
    mean = sum(loss for _, loss in whole.loss[:16]) / 16
    assert grown.loss[0] == pytest.approx((whole.loss[15][0], mean))


def test_what_is_finished_is_read_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished, folders = Finished(), [Folder(path) for path in store.iterdir()]
    while finished.look(folders, seconds=0.0):
        pass
    for folder in folders:
        (folder.path / FILE).write_text("another")
    version, courses = finished.version, finished.courses
    assert not finished.look(folders, seconds=1.0)
    assert (finished.version, finished.courses) == (version, courses)
    assert len(courses) == 2


def test_a_patch_makes_one_the_other() -> None:
    course = {"seed": "0", "loss": [[1, 2.0], [2, 1.0]], "rates": [], "inside": [], "beyond": [], "phases": []}
    before = {"0": {"step": 1, "course": course}, "1": {"step": 5, "course": course}}
    merged = {**course, "loss": [[2, 1.5], [3, 0.5]]}
    now = {"0": {"step": 1, "course": merged}, "2": {"step": 0, "course": course}}
    told = patch(before, now)
    assert told == {"runs": {"0": {"lines": {"loss": [0, [[2, 1.5], [3, 0.5]]]}}, "2": now["2"]}, "gone": ["1"]}


def test_bad_input_ends_in_one_line(call: Call, store: Path) -> None:
    call("serve", store / "nowhere").refused("neither a run folder nor a store")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        call("serve", store, "--port", taken.getsockname()[1]).refused("cannot listen at 127.0.0.1", "--port")
    call("serve", store, "--host", "no such host").refused("cannot listen at")


def test_open_shows_the_page_while_the_work_goes_on(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, told = tmp_path / "browser.sh", tmp_path / "address.txt"
    browser.write_text(f'#!/bin/sh\necho "$1" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    def work() -> None:
        with live_page(str(store), wanted=True):
            end = time.monotonic() + 60
            while not told.exists() and time.monotonic() < end:
                time.sleep(0.05)
            assert b"Runs under way" in urlopen(told.read_text().strip(), timeout=10).read()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with pytest.raises(OSError, match="refused"):
        urlopen(told.read_text().strip(), timeout=10)


def test_the_address_is_told_once_it_can_be_asked_for(store: Path) -> None:
    class Enough(Exception):
        pass

    def ready(address: str) -> None:
        port = int(address.rpartition(":")[2].strip("/"))
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        raise Enough

    with pytest.raises(Enough):
        serve([str(store)], "127.0.0.1", 0, ready=ready)
