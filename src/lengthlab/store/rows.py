"""Results as counts and rows: one per run, length and question. The field names are an interface that other people's scripts
read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError, require
from lengthlab.store.ids import SHORT
from lengthlab.store.interval import wilson

FILE = "results.jsonl"
"""Where rows are kept, a JSON object a line."""
ALL = "all"
"""The question that is right where every question of the sample is."""
OLD_ALL = "both"
"""What files of version 0.1 call it."""


@dataclass(frozen=True)
class Count:
    """How many samples of a length are right about a question; where it is known, how many tokens of its answers too.

    >>> Count(25, "all", 9, 10).accuracy, Count(25, "sum", 9, 10, right_tokens=39, tokens=40).token_accuracy
    (0.9, 0.975)
    """

    length: int
    question: str
    correct: int
    total: int
    right_tokens: int | None = None
    tokens: int | None = None

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95 %."""
        return wilson(self.correct, self.total)

    @property
    def token_accuracy(self) -> float:
        """The share of right tokens; that of right samples where tokens were not counted."""
        return self.right_tokens / self.tokens if self.tokens and self.right_tokens is not None else self.accuracy

    def to_json(self) -> dict[str, Any]:
        names = ("length", "question", "correct", "total")
        return {name: getattr(self, name) for name in names} | self._tokens()

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Count:
        """The count of such data; what version 0.1 called `both` is `all`."""
        count = Count(**data)
        return replace(count, question=ALL) if count.question == OLD_ALL else count

    def _tokens(self) -> dict[str, int]:
        known = {"right_tokens": self.right_tokens, "tokens": self.tokens}
        return {name: number for name, number in known.items() if number is not None}


TEXTS = ("experiment", "arm", "size", "model", "task", "training", "question", "run")
NUMBERS = ("seed", "length", "correct", "total")
TOKENS = ("right_tokens", "tokens")
NAMES = ("experiment", "arm", "size", "model", "task", "training", "seed", "length", "question", "correct", "total", "run")
"""In the order in which they are written."""


@dataclass(frozen=True)
class Row(Count):
    """A count and what it is of: the arm of an experiment at a size, and the run that was measured."""

    experiment: str = ""
    arm: str = ""
    size: str = ""
    model: str = ""
    task: str = ""
    training: str = ""
    seed: int = 0
    run: str = ""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES} | self._tokens()


def rows_in(result: Mapping[str, Any], where: str, experiment: str = "") -> list[Row]:
    """The rows of what `result.json` holds."""
    try:
        names = {name: result[name] for name in ("model", "task", "training", "seed", "run")}
        counts = [Count.from_json(count) for count in result["counts"]]
        rows = [Row(**vars(count), **names, experiment=experiment) for count in counts]
    except (KeyError, TypeError):
        raise LabError(f"{where}: result.json is not the result of a run") from None
    for row in rows:
        _check(row, f"{where}: result.json")
    return rows


def as_jsonl(rows: Iterable[Row]) -> str:
    """The content of `results.jsonl`."""
    return "".join(json.dumps(row.to_json()) + "\n" for row in rows)


def read_rows(path: Path) -> list[Row]:
    """The rows of a `results.jsonl`. Those of version 0.1 have `part` for `arm`, `both` for `all` and no size."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _row(line: str, where: str) -> Row:
    try:
        data = json.loads(line)
        if "part" in data:
            data = {"arm": data["part"], "size": "", **{name: value for name, value in data.items() if name != "part"}}
        require(set(NAMES) <= set(data) <= {*NAMES, *TOKENS}, "")
        row = Row(**data)
    except (LabError, ValueError, TypeError):
        raise LabError(f"{where} is not a row of results") from None
    _check(row, where)
    return replace(row, question=ALL) if row.question == OLD_ALL else row


def _check(row: Row, where: str) -> None:
    for name in (*TEXTS, *NUMBERS):
        kind = int if name in NUMBERS else str
        require(type(getattr(row, name)) is kind, f"{where}: '{name}' is {getattr(row, name)!r}")
    for name in TOKENS:
        number = getattr(row, name)
        require(number is None or (type(number) is int and number >= 0), f"{where}: '{name}' is {number!r}")
    require(0 <= row.correct <= row.total and row.total > 0, f"{where}: {row.correct} of {row.total} cannot be right")


def merge(sources: Mapping[str, Iterable[Row]]) -> list[Row]:
    """The rows of several sources, by name. What two of them hold alike is one, whether they write the id of a run in 12 digits
    or in more; what they count differently is an error.

    >>> row = Row(5, "all", 9, 10, experiment="dat", arm="table1", run="0123456789ab")
    >>> len(merge({"here": [row], "there": [row]}))
    1
    """
    merged: dict[Row, Row] = {}
    counted: dict[tuple[str, int, str], tuple[Row, str]] = {}
    for name, rows in sources.items():
        for row in rows:
            before, where = counted.setdefault((row.run[:SHORT], row.length, row.question), (row, name))
            if (row.correct, row.total) != (before.correct, before.total):
                raise LabError(
                    f"run {row.run}, n={row.length}, {row.question}: {before.correct} of {before.total} are right in {where}, "
                    f"{row.correct} of {row.total} in {name}: the same run has two results, so leave one of the two out"
                )
            merged.setdefault(replace(row, run=row.run[:SHORT]), row)
    return list(merged.values())
