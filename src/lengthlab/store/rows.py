"""Results as counts and rows: one per run, length and question. The field names are an interface that other people's scripts
read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from types import NoneType
from typing import Any

from lengthlab.errors import LabError, cut, require
from lengthlab.store.ids import SHORT
from lengthlab.store.interval import wilson
from lengthlab.text_file import read_text

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
        """The count of such data; what version 0.1 called `both` is `all`. `LabError` where it can be none."""
        count = Count(**data)
        if not _counted(count):
            _check(count)
        return replace(count, question=ALL) if count.question == OLD_ALL else count

    def _tokens(self) -> dict[str, int]:
        known = {"right_tokens": self.right_tokens, "tokens": self.tokens}
        return {name: number for name, number in known.items() if number is not None}


TEXTS = ("experiment", "arm", "size", "model", "task", "training", "question", "run")
NUMBERS = ("seed", "length", "correct", "total")
TOKENS = ("right_tokens", "tokens")
NAMES = ("experiment", "arm", "size", "model", "task", "training", "seed", "length", "question", "correct", "total", "run")
"""In the order in which they are written."""
NEEDED = {"length", "question", "correct", "total"}
COUNTED = {*NEEDED, *TOKENS}
ID = re.compile(f"[0-9a-f]{{{SHORT},}}")
LARGEST = 2**63
"""Nobody counts so far."""
NO_RESULT = "not the result of a run: put back the file that was written, or move the folder away and train the run again"


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


def rows_in(result: Mapping[str, Any], where: str) -> list[Row]:
    """The rows of what `result.json` holds."""
    try:
        names = {name: result[name] for name in ("model", "task", "training", "seed", "run")} | {"experiment": ""}
        rows = [_row_of(count, names) for count in result["counts"]]
        for row in rows[:1]:  # the names are those of every row, and the counts are checked
            if not _named(row):
                _check(row)
            require(ID.fullmatch(row.run) is not None, f"'run' is {row.run!r}")
    except (KeyError, TypeError):
        raise LabError(f"{where} is {NO_RESULT}") from None
    except LabError as error:
        raise LabError(f"{where}: {error}; it is {NO_RESULT}") from None
    return rows


def _row_of(count: Mapping[str, Any], names: Mapping[str, Any]) -> Row:
    """A count and what it is of; TypeError where it says more than a count does, or less."""
    if not isinstance(count, dict) or not (count.keys() == NEEDED or NEEDED <= count.keys() <= COUNTED):
        raise TypeError
    row = object.__new__(Row)  # a store has a hundred thousand: `Row(...)` takes three times as long
    object.__setattr__(row, "__dict__", {**count, **names})
    if not _counted(row):
        _check(row)
    return row if row.question != OLD_ALL else replace(row, question=ALL)


def as_jsonl(rows: Iterable[Row]) -> str:
    """The content of `results.jsonl`."""
    return "".join(json.dumps(row.to_json()) + "\n" for row in rows)


def read_rows(path: Path) -> list[Row]:
    """The rows of a `results.jsonl`. Those of version 0.1 have `part` for `arm`, `both` for `all` and no size."""
    lines = read_text(path).splitlines()
    return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _row(line: str, where: str) -> Row:
    try:
        data = json.loads(line)
        require(isinstance(data, dict), "")
        if "part" in data:
            data = {"arm": data["part"], "size": "", **{name: value for name, value in data.items() if name != "part"}}
        require(set(NAMES) <= set(data) <= {*NAMES, *TOKENS}, "")
        row = Row(**data)
        _check(row)
    except LabError as error:
        raise LabError(f"{where} is not a row of results{f': {error}' if str(error) else ''}") from None
    except (ValueError, TypeError, RecursionError):
        raise LabError(f"{where} is not a row of results") from None
    return replace(row, question=ALL) if row.question == OLD_ALL else row


def _counted(count: Count) -> bool:
    """Whether a count is plainly one; written for speed, `_check` finds the words for one that is not."""
    return (
        type(count.length) is type(count.correct) is type(count.total) is int
        and type(count.question) is str
        and count.right_tokens is count.tokens is None
        and 0 < count.length < LARGEST
        and 0 <= count.correct <= count.total
        and 0 < count.total < LARGEST
    )


def _named(row: Row) -> bool:
    """The same of what a row is of."""
    return (
        type(row.model) is type(row.task) is type(row.training) is type(row.run) is type(row.experiment) is str
        and type(row.seed) is int
        and row.seed >= 0
    )


def _check(count: Count) -> None:
    """Refuse what cannot have been counted."""
    for name, value in vars(count).items():
        kinds = (str,) if name in TEXTS else (int, NoneType) if name in TOKENS else (int,)
        least = 1 if name in ("length", "total") else 0
        most = inf if name == "seed" else LARGEST
        if type(value) not in kinds or (isinstance(value, int) and not least <= value < most):
            raise LabError(f"'{name}' is {cut(repr(value))}")  # not `require`: a store has many rows, and few that need words
    require(count.correct <= count.total, f"{count.correct} of {count.total} cannot be right")
    tokens = count.right_tokens or 0, count.tokens or 0
    require(tokens[0] <= tokens[1], f"{tokens[0]} of {tokens[1]} tokens cannot be right")


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
