"""Runs that differ in their seed alone, as one: named by what differs between them and the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lengthlab.report.curves import Curve
from lengthlab.report.scores import GOOD, Score, Series, one_a_seed
from lengthlab.store.rows import Row
from lengthlab.store.settings import Value, name_runs


@dataclass(frozen=True)
class Setting:
    """`values`: the settings that differ, by their names."""

    name: str
    values: tuple[tuple[str, Value], ...]
    curves: tuple[Curve, ...]

    @property
    def first(self) -> Curve:
        return self.curves[0]

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({length for curve in self.curves for length in curve.lengths})

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """A series a question, the one that counts first."""
        return tuple(self._series(question) for question in self.first.questions)

    @property
    def reach(self) -> int:
        """That of the question that counts."""
        return reach_of(self.series[0])

    def on(self, samples: int) -> Setting | None:
        """With the lengths that were measured on so many samples a seed; None where none was."""
        kept = [(curve, [length for length, total in curve.samples.items() if total == samples]) for curve in self.curves]
        curves = tuple(curve.at(lengths) for curve, lengths in kept if lengths)
        return replace(self, curves=curves) if curves else None

    def _series(self, question: str) -> Series:
        rows = self._by_place
        return Series(question, tuple(Score(length, one_a_seed(rows.get((length, question), ()))) for length in self.lengths))

    @cached_property
    def _by_place(self) -> dict[tuple[int, str], list[Row]]:
        """The rows of all seeds, by length and question."""
        found: dict[tuple[int, str], list[Row]] = {}
        for curve in self.curves:
            for row in curve.rows:
                found.setdefault((row.length, row.question), []).append(row)
        return found


def reach_of(series: Series) -> int:
    """The greatest length to which the mean over all seeds is above 0.90 wherever it was measured; 0 if nowhere."""
    reached, seeds = 0, len(series.seeds)
    for score in series.scores:
        if (score.mean or 0.0) <= GOOD or len(score.rows) < seeds:
            break
        reached = score.length
    return reached


def settings_of(curves: Sequence[Curve]) -> list[Setting]:
    """In the order in which their first runs come."""
    groups: dict[str, list[Curve]] = {}
    labels: dict[tuple[str, Any], Curve] = {}  # runs that differ in their seed alone are named once
    for curve in curves:
        groups.setdefault(str(curve.made["settings"]), []).append(curve)
        labels.setdefault((str(curve.made["settings"]), curve.content.get("label")), curve)
    told = name_runs({curve.first.run: curve.content for curve in labels.values()})
    settings: list[Setting] = []
    times = Counter[str]()
    for group in groups.values():
        run = group[0].first.run
        times[told.names[run]] += 1
        again = times[told.names[run]]
        name = f"{told.names[run]} ({again})" if again > 1 else told.names[run]  # what differs is in files that nobody can read
        settings.append(Setting(name, tuple(zip(told.columns, told.values[run], strict=True)), tuple(group)))
    return settings


def _text_of_task(curve: Curve) -> str:
    """Of a user's own task, the text of its file: what another text asks is another task."""
    kind, files = str(curve.content["task"].get("kind", "")), curve.content.get("files")
    return str(files.get(kind.partition(":")[0], "")) if isinstance(files, dict) else ""


def alike(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Those that can be compared together: of one task, asked the same, trained on the same lengths."""
    groups: dict[str, list[Setting]] = {}
    for setting in settings:
        curve = setting.first
        chance = {question: known for question, known in curve.chance.items() if isinstance(known, float)}
        key = f"{curve.content['task']} {_text_of_task(curve)} {curve.questions} {curve.trained} {chance}"
        groups.setdefault(key, []).append(setting)
    return list(groups.values())
