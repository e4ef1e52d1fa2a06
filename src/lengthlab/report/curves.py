"""Accuracy over length, as read from run folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import inf
from typing import Any

from lengthlab.errors import LabError, explain
from lengthlab.store import Folder
from lengthlab.store.garbage_collection import uncollected
from lengthlab.store.index import Indexes
from lengthlab.store.rows import ALL, NO_RESULT, OLD_ALL, Count, Row, rows_in
from lengthlab.store.settings import called


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
    content: Mapping[str, Any] = field(default_factory=dict)
    """What the run is made of, as its folder has it."""
    portrait: Mapping[str, Any] = field(default_factory=dict)
    """What it is about, as training wrote it down: a sample of its task, the parts of its model, what theory promises."""

    @property
    def first(self) -> Row:
        return self.rows[0]

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({row.length for row in self.rows})

    @property
    def questions(self) -> list[str]:
        """`all` first, then the questions of the task, and what its answers come to; a single question speaks for itself."""
        asked = [
            question for question in dict.fromkeys([*self.chance, *(row.question for row in self.rows)]) if question != ALL
        ]
        return asked if len(asked) == 1 else [ALL, *asked]

    @cached_property
    def samples(self) -> dict[int, int]:
        """On how many samples each length was measured: of all questions together, where there are such rows."""
        return {row.length: row.total for row in sorted(self.rows, key=lambda row: row.question == ALL)}

    def chance_at(self, length: int, question: str) -> float | None:
        """How often a guess is right; None where that is not known."""
        known = self.chance.get(question)
        return known.get(length) if isinstance(known, dict) else known

    def at(self, lengths: Collection[int]) -> Curve:
        """The same run at these lengths alone."""
        rows = tuple([row for row in self.rows if row.length in lengths])
        return self if len(rows) == len(self.rows) else replace(self, rows=rows)

    def row(self, length: int, question: str) -> Row | None:
        return self._by_place.get((length, question))

    @cached_property
    def _by_place(self) -> dict[tuple[int, str], Row]:
        """The first, where there are two."""
        return {(row.length, row.question): row for row in reversed(self.rows)}


def curve_elsewhere(curve: Curve, told: str, counts: Sequence[Count], chance: Mapping[str, Any]) -> Curve:
    """The same run on another task, which is told after its own."""
    names = {name: getattr(curve.first, name) for name in ("model", "training", "seed", "run")}
    task = f"{curve.first.task}, {told}"
    rows = tuple(Row(**vars(count), **names, task=task) for count in counts)
    content = {**curve.content, "task": {"name": task}}
    return replace(curve, rows=rows, chance=_chance(dict(chance)), content=content, portrait={})


@uncollected()
def read_curves(folders: Sequence[Folder], indexes: Indexes | None = None) -> tuple[list[Curve], list[str]]:
    """The curves of the finished runs, each once, and a line for every folder that gives none. `indexes`: theirs, where the
    caller has them.
    """
    curves: dict[str, Curve] = {}
    problems = []
    indexes = indexes or Indexes(folders)
    for folder in folders:
        if not folder.finished:
            problems.append(f"run {folder.id} is not finished")
            continue
        try:
            curve = _curve(folder, indexes)
        except (LabError, OSError) as error:
            problems.append(explain(error))
            continue
        if curves.setdefault(curve.first.run, curve) is not curve:
            problems.append(f"{folder.path}: the same run is in {curves[curve.first.run].folder.path}")
    indexes.save()
    return list(curves.values()), problems


def _curve(folder: Folder, indexes: Indexes) -> Curve:
    result = indexes.read_json(folder, "result.json")
    path = f"{folder.path}/result.json"
    rows = rows_in(result, path)
    try:
        names = ("hardware", "versions", "precision", "seconds", "date", "steps", "batch", "settings")
        made = {name: result[name] for name in names} | {name: result.get(name) for name in ("commit", "ends")}
        shortest, longest = map(int, result["lengths"])
        texts = (made["hardware"], made["versions"]["torch"], made["precision"], made["settings"], made["date"])
        chance = _chance(result["chance"])
        if not rows or not chance or not all(isinstance(text, str) for text in texts) or not 1 <= shortest <= longest:
            raise ValueError
        _check_made(made)
        portrait = result.get("portrait")
        known = portrait if isinstance(portrait, dict) else {}
        return Curve(tuple(rows), (shortest, longest), chance, made, folder, _content(folder, result, indexes), known)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise LabError(f"{path} is {NO_RESULT}") from None


def _check_made(made: Mapping[str, Any]) -> None:
    """ValueError or TypeError where a number or a date of what is told beside the counts cannot be one."""
    datetime.fromisoformat(made["date"])
    whole = [made["steps"], made["batch"], *(made["ends"] or ())]
    if not 0 <= float(made["seconds"]) < inf or not all(type(number) is int and number >= 0 for number in whole):
        raise ValueError


def _content(folder: Folder, result: Mapping[str, Any], indexes: Indexes) -> dict[str, Any]:
    """`run.json`, called by the names that tables have; those alone where it cannot be read."""
    try:
        content = indexes.read_json(folder, "run.json")
    except (LabError, OSError):
        content = {"seed": result["seed"], "lengths": result["lengths"], "batch": result["batch"]}
    return called(content, result["task"], result["model"], result["training"])


def _chance(data: dict[str, Any]) -> dict[str, float | dict[int, float]]:
    """A number a question, or numbers by length; what version 0.1 called `both` is `all`."""
    by_name = {(ALL if question == OLD_ALL else question): known for question, known in data.items()}
    return {
        question: {int(length): float(share) for length, share in known.items()} if isinstance(known, dict) else float(known)
        for question, known in by_name.items()
    }
