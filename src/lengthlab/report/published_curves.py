"""Published rows as curves, without the folders of their runs: what was measured, on which machine, by which command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError
from lengthlab.experiments import find_study
from lengthlab.experiments.size import Size
from lengthlab.report.curves import Curve
from lengthlab.report.evidence import Evidence, files_of
from lengthlab.report.provenance import Origin
from lengthlab.store import Folder
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import ALL, FILE, Row, read_rows
from lengthlab.store.settings import called

NOT_RECORDED = "not recorded"


def rows_in(place: Path) -> list[Path]:
    """The folders of rows that a place is or has."""
    return [folder for folder in (place, *sorted(place.glob("*/"))) if (folder / FILE).is_file()]


def published_curves(folders: Sequence[Path]) -> tuple[list[Curve], list[str]]:
    """A curve for each run, whatever arms it serves, and a line for each study whose training lengths nobody knows here."""
    served: dict[str, list[tuple[Row, Size, Evidence]]] = {}
    problems = []
    for folder in folders:
        for experiment in dict.fromkeys(row.experiment for row in read_rows(folder / FILE)):
            found = files_of(folder, experiment)
            try:
                sizes = {size.name: size for size in find_study(experiment).sizes}
                for row in found.rows:
                    served.setdefault(row.run[:SHORT], []).append((row, sizes[row.size], found))
            except (LabError, KeyError):
                problems.append(f"{folder}: the study '{experiment}' or its size is not known here, nor what it trains on")
    return [_curve(rows) for rows in served.values()], problems


def _curve(served: Sequence[tuple[Row, Size, Evidence]]) -> Curve:
    """Of one run; a row that several arms have is one."""
    rows = {(row.length, row.question): row for row, _, _ in served}
    (first, size, evidence), arms = served[0], dict.fromkeys(_arm(row) for row, _, _ in served)
    asked = [question for question in dict.fromkeys(row.question for row in rows.values()) if question != ALL]
    chance: dict[str, float | dict[int, float]] = {question: size.chance.get(question, {}) for question in (*asked, ALL)}
    content = {"experiment": first.experiment, "size": first.size, "arm": first.arm, "label": " + ".join(arms)}
    return Curve(
        tuple(replace(row, arm=first.arm) for row in rows.values()),
        size.trained,
        chance,
        _made(first, evidence) | {"settings": f"{first.experiment} {first.size} {' + '.join(arms)} {first.task}"},
        Folder(Path(first.run)),
        called(content | {"seed": first.seed}, first.task, first.model, first.training),
    )


def _arm(row: Row) -> str:
    return ", ".join(filter(None, (f"{row.experiment} {row.arm}", row.model, row.training, row.size)))


def _made(row: Row, evidence: Evidence) -> dict[str, Any]:
    origin = next((each for each in evidence.origins if row.run[:SHORT] in each.short_runs), None)
    steps = next((trace.steps for trace in evidence.traces if trace.run[:SHORT] == row.run[:SHORT]), 0)
    told: Mapping[str, Any] = vars(origin) if origin else {}
    return {
        **{name: told.get(name, NOT_RECORDED) for name in ("command", "commit", "hardware", "precision", "date")},
        "versions": {"torch": NOT_RECORDED} | dict(told.get("versions", {})),
        "seconds": _seconds(origin),
        "steps": steps,
        "batch": 0,
        "ends": None,
    }


def _seconds(origin: Origin | None) -> float:
    """What is known is how long all its runs took."""
    return origin.seconds / max(1, len(origin.runs)) if origin else 0.0
