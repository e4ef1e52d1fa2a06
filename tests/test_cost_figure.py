"""The figure of what long sequences take, as the bench writes it."""

import re
import sys
from pathlib import Path

import pytest

from lengthlab.bench.measurement import Findings, Measurement, Origin
from lengthlab.cli.bench import _write
from lengthlab.report.costs import Cost
from lengthlab.report.figure import cost_pictures

COSTS = [Cost(model, tokens, tokens / 1e5, tokens) for model in ("lstm", "lstm-hsa") for tokens in (2**16, 2**22)]
ORIGIN = Origin("lengthlab bench", "abc", "a CPU", {"torch": "2"}, "2026-01-01", 1.0, 0.0, "demo", "cpu")


def found(*parts: str) -> Findings:
    return Findings(tuple(Measurement(part, "4,096 tokens", "lstm", 1, 4096, 0.0, (0.5,), 2**20) for part in parts), {}, ORIGIN)


def test_it_names_models_lengths_and_what_is_measured() -> None:
    svg = cost_pictures(COSTS, "Long sequences", "On a CPU.")["reading.svg"].decode()
    texts = set(re.findall(r">([^<>]+)</text>", svg))
    assert {"lstm", "lstm-hsa", "64 K", "4 M", "tokens", "seconds", "memory, MiB", "On a CPU."} <= texts


def test_the_same_numbers_are_the_same_file() -> None:
    assert cost_pictures(COSTS, "", "") == cost_pictures(list(COSTS), "", "")


def test_a_reader_that_takes_no_memory_is_drawn_at_the_bottom() -> None:
    assert cost_pictures([Cost("lstm", 4096, 0.1, 0), Cost("lstm", 8192, 0.2, 0)], "", "")["reading.svg"]


def test_the_bench_draws_it_where_long_sequences_were_read(tmp_path: Path) -> None:
    assert {path.name for path in _write(found("reading"), tmp_path)} == {
        "bench.json",
        "bench.md",
        "reading.svg",
        "reading.png",
    }
    assert {path.name for path in _write(found(), tmp_path / "more")} == {"bench.json", "bench.md"}


def test_numbers_are_written_where_nothing_can_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert {path.name for path in _write(found("reading"), tmp_path)} == {"bench.json", "bench.md"}
    assert "no figure: figures need matplotlib" in capsys.readouterr().err
