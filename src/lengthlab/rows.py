"""Results as rows: one per run, length and question. The field names are an interface that other people's scripts read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError, require
from lengthlab.evaluation.interval import wilson

FILE = "results.jsonl"
"""Where rows are kept, a JSON object a line."""


@dataclass(frozen=True)
class Row:
    experiment: str
    part: str
    model: str
    task: str
    training: str
    seed: int
    length: int
    question: str
    correct: int
    total: int
    run: str

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.correct, self.total)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows_in(result: Mapping[str, Any], where: str, experiment: str = "", part: str = "") -> list[Row]:
    """The rows of what `result.json` holds."""
    try:
        names = {name: result[name] for name in ("model", "task", "training", "seed", "run")}
        return [Row(experiment=experiment, part=part, **names, **count) for count in result["counts"]]
    except (KeyError, TypeError):
        raise LabError(f"{where}: result.json is not the result of a run") from None


def as_jsonl(rows: Iterable[Row]) -> str:
    """The content of `results.jsonl`."""
    return "".join(json.dumps(row.to_json()) + "\n" for row in rows)


def read_rows(path: Path) -> list[Row]:
    """The rows of a `results.jsonl`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _row(line: str, where: str) -> Row:
    try:
        row = Row(**json.loads(line))
    except (ValueError, TypeError):
        raise LabError(f"{where} is not a row of results") from None
    for field in fields(Row):
        kind = int if field.type == "int" else str
        require(type(getattr(row, field.name)) is kind, f"{where}: '{field.name}' is {getattr(row, field.name)!r}")
    require(0 <= row.correct <= row.total and row.total > 0, f"{where}: {row.correct} of {row.total} cannot be right")
    return row


def merge(sources: Mapping[str, Iterable[Row]]) -> list[Row]:
    """The rows of several sources, by name. What two of them hold alike is one; what they count differently is an error.

    >>> row = Row("dat", "table1", "lstm", "recall", "end-to-end", 0, 5, "both", 9, 10, "0123456789ab")
    >>> len(merge({"here": [row], "there": [row]}))
    1
    """
    merged: dict[Row, None] = {}
    counted: dict[tuple[str, int, str], tuple[Row, str]] = {}
    for name, rows in sources.items():
        for row in rows:
            before, where = counted.setdefault((row.run, row.length, row.question), (row, name))
            if (row.correct, row.total) != (before.correct, before.total):
                raise LabError(
                    f"run {row.run}, n={row.length}, {row.question}: {before.correct} of {before.total} are right in {where}, "
                    f"{row.correct} of {row.total} in {name}: the same run has two results, so leave one of the two out"
                )
            merged[row] = None
    return list(merged)
