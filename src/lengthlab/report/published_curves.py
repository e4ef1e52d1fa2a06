"""Published rows as curves, without the folders of their runs: what was measured, on which machine, by which command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lengthlab.experiments import studies
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm
from lengthlab.report.curves import Curve
from lengthlab.report.evidence import Evidence, read_files
from lengthlab.report.provenance import Origin
from lengthlab.store import Folder
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import ALL, FILE, Row
from lengthlab.store.settings import called

NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Served:
    """A row, its size, what a page calls its study, and the files that it stands in."""

    row: Row
    size: Size
    study: str
    evidence: Evidence

    @property
    def arm(self) -> str:
        return ", ".join(filter(None, (self.row.arm, self.row.model, self.row.training)))


def rows_in(place: Path) -> list[Path]:
    """The folders of rows that a place is or has."""
    return [folder for folder in (place, *sorted(place.glob("*/"))) if (folder / FILE).is_file()]


def published_curves(folders: Sequence[Path], study: str = "") -> tuple[list[Curve], list[str]]:
    """A curve for each run, whatever arms it serves, and a line for each size of a study that nobody knows here; of one study
    alone where it is named.
    """
    served: dict[str, list[Served]] = {}
    unknown: dict[str, None] = {}
    for folder in folders:
        read = read_files(folder)
        found = replace(read, rows=tuple(row for row in read.rows if study in ("", row.experiment)))
        sizes: dict[tuple[str, ...], Size | None] = {}
        told = {(row.experiment, row.size) for row in found.rows}
        for row in found.rows:
            key = (row.experiment, row.size, row.arm, row.model, row.task, row.training)
            if key not in sizes:
                sizes[key] = _size_of(row)
            size = sizes[key]
            several = len([name for name, _ in told if name == row.experiment]) > 1
            title = f"{row.experiment}, {row.size}" if several else row.experiment
            if size:
                served.setdefault(row.run[:SHORT], []).append(Served(row, size, title, found))
            else:
                unknown[f"{folder}: what size '{row.size}' of study '{row.experiment}' is trained on is not known here"] = None
    return [_curve(rows) for rows in served.values()], list(unknown)


def _size_of(row: Row) -> Size | None:
    """That of the section its arm is in, which may have lengths of its own. Of studies that are registered alone: a row may
    name a file, and to read rows runs no file.
    """
    study = studies().get(row.experiment)
    size = next((each for each in study.sizes if each.name == row.size), None) if study else None
    if study is None or size is None:
        return None
    return study.size_of(Arm(row.arm, row.model, row.task, row.training), size) or size


def _curve(served: Sequence[Served]) -> Curve:
    """Of one run; a row that several arms have is one."""
    rows = {(each.row.length, each.row.question): each.row for each in served}
    first, size, study = served[0].row, served[0].size, served[0].study
    label = " + ".join(dict.fromkeys(each.arm for each in served))
    asked = [question for question in dict.fromkeys(row.question for row in rows.values()) if question != ALL]
    chance: dict[str, float | dict[int, float]] = {question: size.chance.get(question, {}) for question in (*asked, ALL)}
    content = {"task": {"study": study}, "arm": first.arm, "label": label, "seed": first.seed}
    return Curve(
        tuple(rows.values()),
        size.trained,
        chance,
        _made(first, served[0].evidence) | {"settings": f"{study} {label} {first.task}"},
        Folder(Path(first.run)),
        called(content, first.task, first.model, first.training),
    )


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
