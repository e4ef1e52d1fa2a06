"""Accuracy over length, as read from run folders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lengthlab.errors import LabError, explain
from lengthlab.store import Folder
from lengthlab.store.rows import ALL, OLD_ALL, Row, rows_in


@dataclass(frozen=True)
class Curve:
    """One run: its rows, and what is needed to read them."""

    rows: tuple[Row, ...]
    trained: tuple[int, int]
    chance: dict[str, float | dict[int, float]]
    """By question; where it depends on the length, by that too."""
    made: dict[str, Any]
    """Commit, hardware, versions, precision, seconds, date, and a hash of all settings but the seed."""
    folder: Folder

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def lengths(self) -> list[int]:
        return sorted({row.length for row in self.rows})

    @property
    def questions(self) -> list[str]:
        """`all` first, then the questions of the task; a single question speaks for itself."""
        asked = [question for question in self.chance if question != ALL]
        return [ALL, *asked] if len(asked) > 1 else asked

    def chance_at(self, length: int, question: str) -> float | None:
        """How often a guess is right; None where that is not known."""
        known = self.chance.get(question)
        return known.get(length) if isinstance(known, dict) else known

    def at(self, lengths: Collection[int]) -> Curve:
        """The same run at these lengths alone."""
        return replace(self, rows=tuple(row for row in self.rows if row.length in lengths))

    def row(self, length: int, question: str) -> Row | None:
        return next((row for row in self.rows if (row.length, row.question) == (length, question)), None)


def read_curves(folders: Sequence[Folder], experiment: str = "") -> tuple[list[Curve], list[str]]:
    """The curves of the finished runs, each once, and a line for every folder that gives none."""
    curves: dict[str, Curve] = {}
    problems = []
    for folder in folders:
        if not folder.finished:
            problems.append(f"run {folder.id} is not finished")
            continue
        try:
            curve = _curve(folder, experiment)
        except (LabError, OSError) as error:
            problems.append(explain(error))
            continue
        if curves.setdefault(curve.first.run, curve) is not curve:
            problems.append(f"{folder.path}: the same run is in {curves[curve.first.run].folder.path}")
    return list(curves.values()), problems


def _curve(folder: Folder, experiment: str) -> Curve:
    result = folder.read_json("result.json")
    rows = rows_in(result, str(folder.path), experiment)
    try:
        names = ("hardware", "versions", "precision", "seconds", "date", "steps", "batch", "settings")
        made = {name: result[name] for name in names} | {name: result.get(name) for name in ("commit", "ends")}
        shortest, longest = map(int, result["lengths"])
        texts = (made["hardware"], made["versions"]["torch"], made["precision"], made["settings"], made["date"])
        if not rows or not all(isinstance(text, str) for text in texts) or float(made["seconds"]) < 0:
            raise ValueError
        return Curve(tuple(rows), (shortest, longest), _chance(result["chance"]), made, folder)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LabError(f"{folder.path}: result.json is not the result of a run") from None


def _chance(data: dict[str, Any]) -> dict[str, float | dict[int, float]]:
    """A number a question, or numbers by length; what version 0.1 called `both` is `all`."""
    by_name = {(ALL if question == OLD_ALL else question): known for question, known in data.items()}
    return {
        question: {int(length): float(share) for length, share in known.items()} if isinstance(known, dict) else float(known)
        for question, known in by_name.items()
    }
