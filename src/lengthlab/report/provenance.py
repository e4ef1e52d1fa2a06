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

FILE = "provenance.json"


@dataclass(frozen=True)
class Making:
    """`command` gave these runs: it trained them, or found them in its store. `seconds` are those in which at least one of them
    was in training; `date` is that of the latest of them.
    """

    command: str
    commit: str
    hardware: str
    versions: Mapping[str, str]
    precision: str
    date: str
    seconds: float
    profile: str
    runs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def makings(curves: Sequence[Curve], command: str, profile: str) -> list[Making]:
    """How these curves were made; one entry for each commit, kind of machine and set of library versions."""
    groups: dict[tuple[str, str, str, str], list[Curve]] = {}
    for curve in curves:
        commit = str(curve.made["commit"] or "not recorded")
        versions = json.dumps(curve.made["versions"], sort_keys=True)
        groups.setdefault((commit, curve.made["hardware"], versions, curve.made["precision"]), []).append(curve)
    return [
        Making(
            command=command,
            commit=commit,
            hardware=hardware,
            versions=json.loads(versions),
            precision=precision,
            date=max(str(curve.made["date"]) for curve in group),
            seconds=_busy([curve.made for curve in group]),
            profile=profile,
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


def as_text(made: Iterable[Making]) -> str:
    """The content of `provenance.json`."""
    return json.dumps([making.to_json() for making in made], indent=1) + "\n"


def read_makings(path: Path) -> list[Making]:
    """The entries of a `provenance.json`; none where there is no such file."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return [Making(**entry | {"runs": tuple(entry["runs"])}) for entry in entries]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, OSError):
        names = ", ".join(field.name for field in fields(Making))
        raise LabError(f"{path} is not a provenance: it is a list of entries with {names}") from None


def makers_of(made: Sequence[Making], runs: Iterable[str]) -> str:
    """Links, in Markdown, to the entries that say how these runs were made."""
    wanted = set(runs)
    numbers = [number for number, making in enumerate(made, start=1) if wanted & set(making.runs)]
    return ", ".join(f"[{number}](#made-{number})" for number in numbers) or "–"


def unite(made: Iterable[Making], runs: Iterable[str]) -> list[Making]:
    """Entries that made some of these runs, each once, in the order of their dates."""
    wanted = set(runs)
    unique = {json.dumps(making.to_json(), sort_keys=True): making for making in made if wanted & set(making.runs)}
    return sorted(unique.values(), key=lambda making: making.date)
