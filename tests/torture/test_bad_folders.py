"""Run folders and published rows that are broken or of another version: named, left alone, and no trouble for others."""

from __future__ import annotations

import json
import shutil
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from command import Call
from desk import everything, only_run, refuse
from lengthlab.store import Folder, Store
from lengthlab.store.ids import hash_of

NO_RESULT = "not the result of a run"


class Instead(Enum):
    """Of a file."""

    FOLDER = "folder"
    LOOP = "loop"


FOLDER, LOOP = Instead.FOLDER, Instead.LOOP


@pytest.fixture
def run(desk: Path) -> Folder:
    (path,) = (desk / "runs").iterdir()
    return Folder(path)


def put(path: Path, content: object) -> None:
    """Something else in place of a file; None for nothing."""
    path.unlink()
    if content is FOLDER:
        path.mkdir()
    elif content is LOOP:
        path.symlink_to(path.name)
    elif isinstance(content, bytes):
        path.write_bytes(content)


def changed(run: Folder, name: str, content: dict[str, Any]) -> bytes:
    """A file of the run with other values; those of `count` go to the first count, and what is `...` is taken out."""
    data = run.read_json(name)
    data["counts"] = [data["counts"][0] | content.pop("count", {}), *data["counts"][1:]] if "counts" in data else []
    return json.dumps({key: value for key, value in (data | content).items() if value is not ...}).encode()


FILES: list[tuple[Any, ...]] = [
    ("result.json", FOLDER, "not a folder", "move it away"),
    *(
        ("result.json", content, "truncated or foreign", "move it away")
        for content in (b"", b"{", b"[]", b"5", b"null", b'"x"')
    ),
    ("result.json", b"\xff\x00\xff", "truncated or foreign", "move it away"),
    ("result.json", b"[" * 100_000, "truncated or foreign", "move it away"),
    ("result.json", b"{}", NO_RESULT, "train the run again"),
    ("result.json", {"count": {"correct": 5000}}, "5000 of 1000 cannot be right", NO_RESULT),
    ("result.json", {"count": {"correct": -1}}, "'correct' is -1", NO_RESULT),
    ("result.json", {"count": {"correct": "5"}}, "'correct' is '5'", NO_RESULT),
    ("result.json", {"count": {"correct": None}}, "'correct' is None", NO_RESULT),
    ("result.json", {"count": {"correct": 1.5}}, "'correct' is 1.5", NO_RESULT),
    ("result.json", {"count": {"correct": True}}, "'correct' is True", NO_RESULT),
    ("result.json", {"count": {"correct": 0, "total": 0}}, "'total' is 0", NO_RESULT),
    ("result.json", {"count": {"total": 10**400}}, "'total' is 1000", NO_RESULT),
    ("result.json", {"count": {"length": 0}}, "'length' is 0", NO_RESULT),
    ("result.json", {"count": {"length": -4}}, "'length' is -4", NO_RESULT),
    ("result.json", {"count": {"question": 5}}, "'question' is 5", NO_RESULT),
    ("result.json", {"count": {"right_tokens": 5, "tokens": 4}}, "5 of 4 tokens cannot be right", NO_RESULT),
    ("result.json", {"count": {"right_tokens": -1}}, "'right_tokens' is -1", NO_RESULT),
    ("result.json", {"count": {"of_a_newer_version": 1}}, NO_RESULT, "result.json"),
    *(("result.json", {"counts": bad}, NO_RESULT, "result.json") for bad in ([], 5, {}, [5], None, ...)),
    *(("result.json", {"lengths": bad}, NO_RESULT, "result.json") for bad in ([1], 5, ["a", "b"], [0, -1], [4, 1], None)),
    *(("result.json", {"chance": bad}, NO_RESULT, "result.json") for bad in (5, {}, {"all": "x"}, None, ...)),
    *(("result.json", {"seconds": bad}, NO_RESULT, "result.json") for bad in (-1, "x", float("inf"), float("nan"), None)),
    *(("result.json", {"date": bad}, NO_RESULT, "result.json") for bad in (5, "yesterday", None)),
    *(("result.json", {"versions": bad}, NO_RESULT, "result.json") for bad in ({}, 5, ...)),
    *(
        ("result.json", {name: None}, NO_RESULT, "result.json")
        for name in ("hardware", "precision", "settings", "steps", "batch")
    ),
    ("result.json", {"ends": 5}, NO_RESULT, "result.json"),
    ("result.json", {"ends": ["x"]}, NO_RESULT, "result.json"),
    ("result.json", {"model": 5}, "'model' is 5", NO_RESULT),
    ("result.json", {"task": None}, "'task' is None", NO_RESULT),
    ("result.json", {"seed": "x"}, "'seed' is 'x'", NO_RESULT),
    ("result.json", {"seed": -1}, "'seed' is -1", NO_RESULT),
    ("result.json", {"run": 5}, "'run' is 5", NO_RESULT),
    ("result.json", {"run": "other"}, "'run' is 'other'", NO_RESULT),
    ("result.json", {"model": ...}, NO_RESULT, "result.json"),
]


@pytest.mark.parametrize("case", FILES, ids=lambda case: f"{case[0]} {case[1]!r}"[:70])
@pytest.mark.parametrize("typed", ["report RUN", "evaluate RUN --lengths 8"])
def test_a_result_that_is_none_is_named_and_left_alone(
    call: Call, desk: Path, run: Folder, typed: str, case: tuple[Any, ...]
) -> None:
    name, content, *says = case
    put(run.path / name, changed(run, name, dict(content)) if isinstance(content, dict) else content)
    refuse(call, desk, typed, (name, *says), lines=2 if typed.startswith("report") else 1)


@pytest.mark.parametrize(
    "bad", [FOLDER, b"{", {"count": {"correct": 5000}}, {"chance": {}}], ids=["folder", "cut", "count", "chance"]
)
def test_a_report_tells_of_a_bad_folder_in_a_line_and_shows_the_good_run(
    call: Call, desk: Path, run: Folder, bad: object
) -> None:
    other = Folder(desk / "runs" / "0123456789abcdef0123")
    shutil.copytree(run.path, other.path)
    put(other.path / "result.json", changed(other, "result.json", dict(bad)) if isinstance(bad, dict) else bad)
    done = call("report", "runs")
    assert done.code == 0
    assert len(done.said) == 1
    assert str(Path("runs", other.id, "result.json")) in done.said[0]
    assert "hybrid-block" in done.out
    assert (desk / "runs" / "report" / "table.md").is_file()


OTHERS: list[tuple[Any, ...]] = [
    ("run.json", None, "evaluate RUN --lengths 8", "is no run folder", "run.json"),
    ("run.json", None, "report RUN", "no runs in"),
    ("run.json", None, "train plan.toml", "run.json is missing", "put it back"),
    ("run.json", LOOP, "train plan.toml", "run.json", "a link that leads to itself"),
    ("run.json", FOLDER, "evaluate RUN --lengths 8", "run.json", "not a folder"),
    ("run.json", b"", "evaluate RUN --lengths 8", "run.json is truncated or foreign"),
    ("run.json", b"[]", "evaluate RUN --lengths 8", "run.json is truncated or foreign"),
    ("run.json", b"\xff", "train plan.toml", "run.json is truncated or foreign"),
    ("run.json", b"{}", "evaluate RUN --lengths 8", "run.json is the content of run", "move it away"),
    ("run.json", {"seed": 7}, "evaluate RUN --lengths 8", "run.json is the content of run", "move it away"),
    ("run.json", {"seed": 7}, "train plan.toml", "run.json is the content of run", "move it away"),
    ("result.json", None, "evaluate RUN --lengths 8", "not finished"),
    ("result.json", LOOP, "evaluate RUN --lengths 8", "not finished"),
    ("result.json", {"count": {"correct": 5000}}, "train plan.toml", "result.json", "5000 of 1000 cannot be right"),
    ("result.json", {"ends": "x"}, "train plan.toml", "result.json", NO_RESULT),
    *(
        ("weights.safetensors", content, "evaluate RUN --lengths 8", "weights.safetensors", "put it back")
        for content in (None, FOLDER, LOOP, b"", b"x" * 100)
    ),
]


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: f"{case[0]} {case[1]!r} {case[2]}"[:70])
def test_a_broken_file_of_a_run_is_named_and_left_alone(call: Call, desk: Path, run: Folder, case: tuple[Any, ...]) -> None:
    name, content, typed, *says = case
    put(run.path / name, changed(run, name, dict(content)) if isinstance(content, dict) else content)
    refuse(call, desk, typed, tuple(says))


def test_a_run_of_a_newer_version_says_so(call: Call, desk: Path, run: Folder) -> None:
    content = run.read_json("run.json") | {"results": 99}
    newer = Store(desk / "runs").folder(hash_of(content))
    run.path.rename(newer.path)
    newer.write_json("run.json", content)
    refuse(call, desk, "evaluate RUN --lengths 8", (newer.id, "another version", "99"))


def test_a_run_under_another_runs_name_is_refused(call: Call, desk: Path, run: Folder) -> None:
    run.path.rename(desk / "runs" / "000000000000")
    refuse(call, desk, "evaluate RUN --lengths 8", ("000000000000", run.id))


def test_an_id_that_several_runs_have_is_refused(call: Call, desk: Path, run: Folder) -> None:
    shutil.copytree(run.path, desk / "runs" / f"{run.id[:6]}000000")
    before = everything(desk)
    call("evaluate", run.id[:6], "--lengths", "4").refused(run.id[:6], "several", "give more of the id")
    assert everything(desk) == before


def test_a_mark_of_an_editor_before_json_does_no_harm(call: Call, desk: Path, run: Folder) -> None:
    for name in ("run.json", "result.json"):
        path = run.path / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert call("evaluate", run.path, "--lengths", "4").code == 0
    assert call("report", run.path).code == 0


def test_names_are_shown_as_text_whatever_is_in_them(call: Call, desk: Path, run: Folder) -> None:
    (run.path / "result.json").write_bytes(
        changed(run, "result.json", {"model": "[/b]", "training": "a|b<script>", "task": "*x*"})
    )
    done = call("report", run.path)
    assert done.code == 0, done.err
    assert "[/b]" in done.out
    assert "a|b<script>" in done.out
    page = (run.path / "report" / "table.md").read_text()
    assert r"\[/b\], a\|b\<script\>" in page
    assert "<script>" not in (run.path / "report" / "accuracy.svg").read_text()


ROW = {
    **{"experiment": "far", "arm": "x", "size": "cpu", "model": "m", "task": "t", "training": "d", "seed": 0, "length": 5},
    **{"question": "all", "correct": 9, "total": 10, "run": "0123456789ab"},
}
ROWS: list[tuple[Any, ...]] = [
    ("results.jsonl", "{", "line 1 is not a row of results"),
    ("results.jsonl", "5", "line 1 is not a row of results"),
    ("results.jsonl", "[]", "line 1 is not a row of results"),
    ("results.jsonl", "null", "line 1 is not a row of results"),
    ("results.jsonl", json.dumps(ROW) + "\n{", "line 2 is not a row of results"),
    ("results.jsonl", json.dumps(ROW | {"correct": 11}), "line 1", "11 of 10 cannot be right"),
    ("results.jsonl", json.dumps(ROW | {"total": 0}), "line 1", "'total' is 0"),
    ("results.jsonl", json.dumps(ROW | {"seed": "x"}), "line 1", "'seed' is 'x'"),
    ("results.jsonl", json.dumps(ROW | {"newer": 1}), "line 1 is not a row of results"),
    ("results.jsonl", json.dumps({key: ROW[key] for key in ROW if key != "run"}), "line 1 is not a row of results"),
    ("results.jsonl", b"\xff\xfe", "is not text"),
    ("results.jsonl", FOLDER, "not a folder"),
    ("results.jsonl", "", "no rows of experiment 'far'"),
    *(
        ("provenance.json", content, "provenance.json is not a provenance", "command")
        for content in ("{", "5", '[{"a": 1}]', "[5]")
    ),
    ("provenance.json", b"\xff", "provenance.json", "is not text"),
    ("provenance.json", FOLDER, "provenance.json", "not a folder"),
    *(("traces.jsonl", content, "traces.jsonl is not a file of traces", "learned_at") for content in ("{", "5", '{"a": 1}')),
    ("traces.jsonl", FOLDER, "traces.jsonl", "not a folder"),
]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: f"{case[0]} {case[1]!r}"[:70])
def test_published_files_that_are_none_are_named(call: Call, desk: Path, case: tuple[Any, ...]) -> None:
    name, content, *says = case
    rows = desk / "rows"
    rows.mkdir()
    (rows / "results.jsonl").write_text(json.dumps(ROW))
    (rows / name).touch()
    put(rows / name, content.encode() if isinstance(content, str) else content)
    refuse(call, desk, "reproduce far --from rows", ("rows", *says))


def test_the_run_on_the_desk_is_that_of_the_plan(desk: Path, run: Folder) -> None:
    assert only_run(desk / "plan.toml").id == run.id
