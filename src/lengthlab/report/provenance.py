"""Where published rows come from: `provenance.json`, a list with an entry for each command and machine that made some."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve
from lengthlab.store.ids import SHORT
from lengthlab.text_file import Missing, read_text

FILE = "provenance.json"


@dataclass(frozen=True)
class Origin:
    """`command` gave these runs of a size: it trained them, or found them in its store. `seconds` are those in which at least
    one of them was in training; `date` is that of the latest of them.
    """

    command: str
    commit: str
    hardware: str
    versions: Mapping[str, str]
    precision: str
    date: str
    seconds: float
    size: str
    runs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def short_runs(self) -> set[str]:
        """Its runs by the first 12 digits of their ids: all that rows of version 0.1 know of them."""
        return {run[:SHORT] for run in self.runs}


def origins_of(curves: Sequence[Curve], command: str, size: str) -> list[Origin]:
    """How these curves were made; one entry for each commit, kind of machine and set of library versions."""
    groups: dict[tuple[str, str, str, str], list[Curve]] = {}
    for curve in curves:
        commit = str(curve.made["commit"] or "not recorded")
        versions = json.dumps(curve.made["versions"], sort_keys=True)
        groups.setdefault((commit, curve.made["hardware"], versions, curve.made["precision"]), []).append(curve)
    return [
        Origin(
            command=command,
            commit=commit,
            hardware=hardware,
            versions=json.loads(versions),
            precision=precision,
            date=max(str(curve.made["date"]) for curve in group),
            seconds=_busy([curve.made for curve in group]),
            size=size,
            runs=tuple(sorted({curve.first.run for curve in group})),
        )
        for (commit, hardware, versions, precision), group in groups.items()
    ]


def _busy(made: Sequence[Mapping[str, Any]]) -> float:
    """Seconds in which somebody trained: runs side by side take the time of one."""
    ends = [datetime.fromisoformat(each["date"]).timestamp() for each in made]
    times = sorted((end - float(each["seconds"]), end) for end, each in zip(ends, made, strict=True))
    total, until = 0.0, float("-inf")
    for start, end in times:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return round(total, 1)


def as_text(origins: Iterable[Origin]) -> str:
    """The content of `provenance.json`."""
    return json.dumps([origin.to_json() for origin in origins], indent=1) + "\n"


def read_origins(path: Path) -> list[Origin]:
    """The entries of a `provenance.json`, where version 0.1 calls the size `profile`; none where there is no such file."""
    try:
        return [_origin(entry) for entry in json.loads(read_text(path))]
    except Missing:
        return []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        names = ", ".join(field.name for field in fields(Origin))
        raise LabError(f"{path} is not a provenance: it is a list of entries with {names}") from None


def _origin(entry: dict[str, Any]) -> Origin:
    renamed = {("size" if name == "profile" else name): value for name, value in entry.items()}
    return Origin(**renamed | {"runs": tuple(entry["runs"])})


def unite(origins: Iterable[Origin], runs: Iterable[str]) -> list[Origin]:
    """Entries that made some of these runs, each once, in the order of their dates."""
    wanted = {run[:SHORT] for run in runs}
    made = [origin for origin in origins if wanted & origin.short_runs]
    unique = {json.dumps(origin.to_json(), sort_keys=True): origin for origin in made}
    return sorted(unique.values(), key=lambda origin: origin.date)
