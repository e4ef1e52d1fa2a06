"""The results of runs as a table: a row for each run, length and question, with the settings that differ as columns."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.setting import Setting, settings_of
from lengthlab.store import named_folders
from lengthlab.store.rows import Row

if TYPE_CHECKING:
    import pandas

FIRST = ("setting", "task", "model", "training")
LAST = ("seed", "trained_to", "length", "question", "correct", "total", "accuracy", "low", "high", "chance")
SHARES = ("accuracy", "low", "high", "chance", "token_accuracy")
TOKENS = ("right_tokens", "tokens", "token_accuracy")


@dataclass(frozen=True)
class ResultTable:
    """`low` and `high` are the ends of Wilson's interval at 95 % over the samples of that row; how much seeds differ is in
    their rows. `trained_to` is the longest training length, `chance` the accuracy of a guess.
    """

    curves: tuple[Curve, ...]

    @property
    def columns(self) -> list[str]:
        """Settings that differ stand between the names and the numbers."""
        differ = [_column(name) for name, _ in self._settings[0].values if name not in FIRST] if self.curves else []
        tokens = TOKENS if any(row.tokens is not None for curve in self.curves for row in curve.rows) else ()
        return [*FIRST, *differ, *LAST, *tokens, "run"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        tokens = "tokens" in self.columns
        return [
            {**first, **_numbers(curve, row), **(_tokens(row) if tokens else {}), "run": row.run}
            for setting in self._settings
            for values in [_values(setting)]
            for curve in setting.curves
            for first in [_names(setting.name, values, curve)]
            for row in curve.rows
        ]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return sum(len(curve.rows) for curve in self.curves)

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame."""
        try:
            import pandas
        except ImportError:
            raise LabError(
                "pandas is not installed: pip install 'lengthlab[pandas]', or take .rows, .to_csv() or .to_json()"
            ) from None
        return pandas.DataFrame(self.rows, columns=self.columns)

    def to_csv(self) -> str:
        """As the text of a CSV file; shares with four digits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.columns
        writer.writerow(columns)
        for row in self.rows:
            writer.writerow([_written(column, row[column]) for column in columns])
        return text.getvalue()

    def to_json(self) -> str:
        """As the text of a JSON file: a list of objects, one a line."""
        return "[\n" + ",\n".join(map(json.JSONEncoder().encode, self.rows)) + "\n]"

    def __repr__(self) -> str:
        """What `lengthlab report` says of them."""
        from lengthlab.report.runs_page import runs_page
        from lengthlab.report.terminal import as_text

        return as_text(runs_page(self.curves, details=False)) if self.curves else "no results"

    @cached_property
    def _settings(self) -> list[Setting]:
        return settings_of(self.curves)


def results(*runs: str | os.PathLike[str]) -> ResultTable:
    """What finished runs came to; `runs` are stores or run folders, the store `runs` if none is named.

    `results("runs").to_pandas()` is a data frame; printed, it is the table of `lengthlab report runs`. A folder that cannot be
    read is an error, one whose run is not finished is left out.
    """
    named = [str(run) for run in runs] or ["runs"]
    finished = [folder for folder in named_folders(named) if folder.finished]
    curves, problems = read_curves(finished)
    if problems:
        raise LabError("; ".join(problems))
    if not curves:
        raise LabError(f"no finished run in {', '.join(named)}")
    return ResultTable(tuple(curves))


def _column(name: str) -> str:
    """Of a setting: a word that numbers have already is told apart."""
    return f"{name} (setting)" if name in (*LAST, *TOKENS, "run") else name


def _values(setting: Setting) -> dict[str, Any]:
    """The settings that differ, by column."""
    told = [(name, value) for name, value in setting.values if name not in FIRST]
    return {_column(name): list(value) if isinstance(value, tuple) else value for name, value in told}


def _names(name: str, values: Mapping[str, Any], curve: Curve) -> dict[str, Any]:
    """What all rows of a run say, in the order of columns."""
    row = curve.first
    told = {"setting": name, "task": row.task, "model": row.model, "training": row.training}
    return {**told, **values, "seed": row.seed, "trained_to": curve.trained[1]}


def _numbers(curve: Curve, row: Row) -> dict[str, Any]:
    """What a row says."""
    low, high = row.interval
    return {
        "length": row.length,
        "question": row.question,
        "correct": row.correct,
        "total": row.total,
        "accuracy": row.accuracy,
        "low": low,
        "high": high,
        "chance": curve.chance_at(row.length, row.question),
    }


def _tokens(row: Row) -> dict[str, Any]:
    share = None if row.tokens is None else row.token_accuracy
    return {"right_tokens": row.right_tokens, "tokens": row.tokens, "token_accuracy": share}


def _written(column: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if column in SHARES else str(value)
