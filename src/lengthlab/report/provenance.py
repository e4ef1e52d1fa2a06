"""Where published rows come from: `provenance.json`, a list with an entry for each command and machine that made some."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import lengthlab
from lengthlab.errors import LabError
from lengthlab.report.curves import Curve

FILE = "provenance.json"
COMMIT = "LENGTHLAB_COMMIT"
"""Names the commit where the source came without its history, or with an older one: into a container, onto a cluster."""


@dataclass(frozen=True)
class Making:
    """`seconds` are those in which at least one of the runs was in training; `date` is that of the latest of them."""

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
    """How these curves were made; one entry for each kind of machine and set of library versions."""
    groups: dict[tuple[str, str, str], list[Curve]] = {}
    for curve in curves:
        versions = json.dumps(curve.made["versions"], sort_keys=True)
        groups.setdefault((curve.made["hardware"], versions, curve.made["precision"]), []).append(curve)
    commit = commit_of_package()
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
        for (hardware, versions, precision), group in groups.items()
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


def commit_of_package() -> str:
    """The commit that the environment names; else that of the checkout that the package is in; else the package's version.

    A copy of a checkout on another machine may have an older history, or none: there the environment knows better.
    """
    if named := os.environ.get(COMMIT):
        return named[:12]
    here = Path(lengthlab.__file__).parent
    try:
        _git(here, "ls-files", "--error-unmatch", "__init__.py")  # a package installed below somebody's checkout is not of it
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        return f"{commit} with changes" if _git(here, "status", "--porcelain", "--", ".") else commit
    except (OSError, subprocess.SubprocessError):
        return f"version {lengthlab.__version__}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


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
