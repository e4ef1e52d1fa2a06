"""Whatever is in a file or on a command line: a right answer, or one line and exit code 2, and never a stack trace.

Some hundreds of cases; more by hand: LENGTHLAB_CASES=10000 pytest tests/torture/test_fuzz.py --hypothesis-profile=others.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from command import Done
from desk import MAKERS, RUN, lay
from lengthlab.cli import main
from lengthlab.report.html_page import report_html
from lengthlab.report.sources import read_sources
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINTS
from lengthlab.store.ids import hash_of
from lengthlab.training import recorder

CASES = int(os.environ.get("LENGTHLAB_CASES", "300"))


def cases(share: float) -> settings:
    """So many of all; each may take long, and a desk serves all of them."""
    off = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=max(1, round(share * CASES)), suppress_health_check=off, database=None)


TEXTS = [
    *(
        "",
        " ",
        "x" * 10_000,
        "a/b",
        "../../../etc/passwd",
        "/etc/passwd",
        "C:\\x",
        "a\0b",
        "\x1b[31mred\x1b]0;title\x07",
        "a\nb\r\nc",
    ),
    *(
        "left\u202eright",
        "\u2066\u2069",
        "\ufeff",
        "\u0085",
        "\u2028",
        "e\u0301",
        "\U0001f4a9",
        "ünï",
        "\ud800",
        "\x7f",
        "\x9b31m",
    ),
    *(
        "<script>alert(1)</script>",
        "</script><b>",
        "&amp;",
        "[/b]",
        "[bold red]",
        "*x* _y_ `z` | # $\\alpha$",
        "{}",
        "%s %d",
        "'\"",
    ),
    *("-1", "1e6", "nan", "--help", "-", "lstm", "modulo-recall", "own.py:x", "own.py:__import__", "os:system", "kind"),
]
NUMBERS = [0, -1, 1, 2, 3.5, -0.0, 1e-300, 1e308, math.inf, -math.inf, math.nan, 2**31, 2**53, 2**63, 10**30, -(10**400)]
DEEP: list[Any] = []
for _ in range(300):
    DEEP = [DEEP]
values = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from([None, True, False, [], {}, [1], [[]], {"": 0}, {"kind": "lstm"}, {"name": "lstm"}, DEEP, [0] * 5000]),
    st.text(max_size=20),
)


def mutated(draw: st.DrawFn, data: Any) -> Any:
    """A copy of the data in which something, somewhere, is missing, something else, twice or under another name."""
    if isinstance(data, dict) and data and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(data)))
        rest = {name: value for name, value in data.items() if name != key}
        match draw(st.integers(0, 5)):
            case 0:
                return rest
            case 1:
                return rest | {draw(st.sampled_from(TEXTS)): data[key]}
            case _:
                return data | {key: mutated(draw, data[key])}
    if isinstance(data, list) and data and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                return data[:place] + data[place + 1 :]
            case 1:
                return data + data
            case _:
                return [*data[:place], mutated(draw, data[place]), *data[place + 1 :]]
    return draw(values)


@st.composite
def mutations(draw: st.DrawFn, times: int = 3) -> Any:
    """A function from data to a mutated copy of it."""
    number = draw(st.integers(1, times))

    def act(data: Any) -> Any:
        for _ in range(number):
            data = mutated(draw, data)
        return data

    return act


@st.composite
def broken_bytes(draw: st.DrawFn) -> Any:
    """A function from bytes to others: cut, doubled, with bytes changed, put in or taken out."""
    kind, where, junk = draw(st.integers(0, 5)), draw(st.floats(0, 1)), draw(st.binary(max_size=12))

    def act(data: bytes) -> bytes:
        at = int(where * len(data))
        return [
            data[:at],
            data + data,
            data[:at] + junk + data[at:],
            data[:at] + junk + data[at + len(junk) :],
            junk,
            b"\0" * at,
        ][kind]

    return act


def called(*words: str) -> Done:
    """`lengthlab WORDS`, in this process."""
    out, err = io.StringIO(), io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["lengthlab", *words]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.argv = before
    return Done(code, out.getvalue(), err.getvalue())


def answered(done: Done) -> None:
    """Right, or refused in a line; nothing that a terminal would obey, and nothing that nobody foresaw."""
    assert done.code in (0, 1, 2), done
    assert "Traceback" not in done.out + done.err, done
    assert "LENGTHLAB_TRACE" not in done.err, done.err
    for text in (done.out, done.err):
        assert all(character.isprintable() for character in text.replace("\n", "")), repr(text[:2000])
    if done.code == 2:
        assert done.out == "", done
        assert done.said or done.err.startswith("Usage:"), done.err


@pytest.fixture(scope="module")
def place(finished_once: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("desk")
    lay(folder)
    shutil.copytree(finished_once.path.parent, folder / "runs")
    with chdir(folder):
        yield folder


@pytest.fixture
def run(place: Path, finished_once: Folder) -> Iterator[Folder]:
    """Where the finished run is laid for a case, by `whole`."""
    yield Folder(place / "fuzzed" / finished_once.id)
    shutil.rmtree(place / "fuzzed", ignore_errors=True)


def whole(place: Path, run: Folder) -> None:
    shutil.rmtree(place / "fuzzed", ignore_errors=True)
    shutil.copytree(place / "runs" / run.path.name, run.path)


PLAN: dict[str, Any] = {
    "task": {"name": "modulo-recall", "modulus": 2, "keys": 16},
    "model": {
        "name": "hybrid-block",
        "width": 16,
        "blocks": 1,
        "heads": 2,
        "mlp": 1,
        "positions": {"name": "rope", "base": 100.0},
    },
    "schedule": {"name": "delayed", "first": 5, "joint": 5, "lr": {"name": "cosine", "peak": 1e-3, "warm_up": 2}},
    "optimizer": {"name": "adamw", "decay": 0.1, "clip": 1.0},
    **{"lengths": [1, 4], "batch": 4, "evaluate": [4], "seeds": [0], "label": "mine"},
}


def toml(value: Any) -> str:
    """As TOML, where that can say it; what it cannot is written as JSON, which is then no TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


@cases(0.3)
@given(change=mutations())
def test_any_plan(place: Path, change: Any) -> None:
    plan = change(PLAN)
    text = (
        f"[[run]]\n{chr(10).join(f'{json.dumps(key)} = {toml(each)}' for key, each in plan.items())}"
        if isinstance(plan, dict)
        else toml(plan)
    )
    Path("any.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
    answered(called("train", "any.toml", "--queue", "--store", "queued"))


@cases(0.05)
@given(change=broken_bytes())
def test_any_bytes_as_a_plan(place: Path, change: Any) -> None:
    Path("any.toml").write_bytes(change(RUN.encode()))
    answered(called("train", "any.toml", "--queue", "--store", "queued"))


WORDS = [
    *("tasks", "models", "experiments", "report", "status", "evaluate", "check", "delay", "guarantee", "train", "why", "rules"),
    *(
        "--json",
        "--lengths",
        "--store",
        "--out",
        "--set",
        "--queue",
        "--length",
        "--samples",
        "--device",
        "cpu",
        "4",
        "runs",
        "plan.toml",
    ),
    *(
        "makers.py:small",
        "makers.py:five",
        "lstm",
        "modulo",
        "empty",
        "loop",
        "file",
        "nowhere",
        "--queue",
        "data",
        "--task",
        "--form",
    ),
]
LONG = {"train", "rules", "why", "delay", "check", "guarantee"}
"""Commands that work for a while where all is well."""


@cases(0.25)
@given(words=st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(TEXTS), st.text(max_size=8)), min_size=1, max_size=6))
@example(["tasks", "\ud800"])
@example(["models", "\u202e[/b]"])
@example(["status", "x" * 10_000])
@example(["report", "\udcff"])
@example(["evaluate", "runs", "--lengths", "9" * 5000])
def test_any_command_line(place: Path, words: list[str]) -> None:
    if words[0] in LONG:
        words = [words[0], *(word for word in words[1:] if word not in ("plan.toml", "makers.py:small", "lstm", "modulo"))]
    answered(called(*(word.replace("\0", "") for word in words)))  # no system passes that one on


READERS = [
    ("report", "STORE", "--json"),
    ("status", "STORE"),
    ("status", "STORE", "--json"),
    ("evaluate", "RUN", "--lengths", "4"),
]


@cases(0.25)
@given(
    name=st.sampled_from(["run.json", "result.json", "run.json and name", "failure.json"]),
    change=mutations(),
    typed=st.sampled_from(READERS),
)
def test_any_json_in_a_run_folder(place: Path, run: Folder, name: str, change: Any, typed: tuple[str, ...]) -> None:
    whole(place, run)
    path, at = run.path / name.split()[0], run.path
    data = {"run": run.id, "step": 3, "message": "why", "date": ""} if name == "failure.json" else json.loads(path.read_bytes())
    data = change(data)
    path.write_bytes(json.dumps(data).encode("utf-8", "surrogatepass"))
    if name == "failure.json":
        (run.path / "result.json").unlink()
    if name.endswith("name") and isinstance(data, dict):
        at = at.rename(at.parent / hash_of(data))
    answered(called(*(word.replace("STORE", "fuzzed").replace("RUN", str(at)) for word in typed)))


@cases(0.1)
@given(name=st.sampled_from(["run.json", "result.json", "log.jsonl", "weights.safetensors"]), change=broken_bytes())
def test_any_bytes_in_a_run_folder(place: Path, run: Folder, name: str, change: Any) -> None:
    whole(place, run)
    (run.path / name).write_bytes(change((run.path / name).read_bytes()))
    for typed in READERS[:2] if name in ("run.json", "log.jsonl") else READERS[::3]:
        answered(called(*(word.replace("STORE", "fuzzed").replace("RUN", str(run.path)) for word in typed)))


ROW = {
    **{"experiment": "far", "arm": "x", "size": "cpu", "model": "m", "task": "t", "training": "d", "seed": 0, "length": 5},
    **{"question": "all", "correct": 9, "total": 10, "run": "0123456789ab"},
}


@cases(0.05)
@given(change=mutations())
def test_any_row(place: Path, change: Any) -> None:
    Path("rows").mkdir(exist_ok=True)
    Path("rows/results.jsonl").write_text(json.dumps(change(ROW)) + "\n", encoding="utf-8", errors="surrogatepass")
    answered(called("report", "rows", "--json"))


@pytest.fixture(scope="module")
def begun(place: Path) -> None:
    """Checkpoints of the plan's run after some steps."""
    from lengthlab.spec.plan import read_plan
    from small_runs import train_until_killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "LOG_STEPS", 2)
        (run,) = read_plan(Path("plan.toml"), ())
        train_until_killed(run, Path("begun"), 7, checkpoint_seconds=0.0)


@cases(0.05)
@given(change=broken_bytes(), names=st.sampled_from([CHECKPOINTS, CHECKPOINTS[:1], (*CHECKPOINTS, "log.jsonl")]))
def test_any_bytes_as_a_checkpoint_and_a_log(place: Path, begun: None, change: Any, names: tuple[str, ...]) -> None:
    shutil.rmtree("again", ignore_errors=True)
    shutil.copytree("begun", "again")
    (folder,) = Path("again").iterdir()
    for name in names:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
    answered(called("train", "plan.toml", "--store", "again", "--no-progress"))


@cases(0.05)
@given(change=broken_bytes(), typed=st.sampled_from(["tasks", "models", "check", "experiments"]))
def test_any_bytes_as_a_file_of_ones_own(place: Path, change: Any, typed: str) -> None:
    Path("own.py").write_bytes(change(MAKERS.encode()))
    answered(called(typed, "own.py:small"))


@cases(0.05)
@given(name=st.sampled_from(["model", "task", "training", "precision", "hardware", "commit"]), text=st.sampled_from(TEXTS))
def test_any_name_on_a_page(place: Path, run: Folder, name: str, text: str) -> None:
    whole(place, run)
    data = json.loads((run.path / "result.json").read_bytes()) | {name: text}
    (run.path / "result.json").write_bytes(json.dumps(data).encode())
    found = read_sources(["fuzzed"])
    if not found.curves:
        assert found.problems
        return
    page = report_html(found, "lengthlab report").decode()
    assert "<script>alert" not in page
    assert page.count("</script") == page.count("<script")
    assert all(character.isprintable() or character in "\n\t" for character in page), repr(text)
