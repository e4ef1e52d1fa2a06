"""Where published rows come from: `provenance.json`, a list with an entry for each command and machine that made some."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import lengthlab
from lengthlab.errors import LabError
from lengthlab.report.curves import Curve

FILE = "provenance.json"
COMMIT = "LENGTHLAB_COMMIT"
"""Names the commit where the source came without its history: into a container, onto a cluster."""


@dataclass(frozen=True)
class Making:
    """`seconds` are of training, summed over the runs; `date` is that of the latest of them."""

    command: str
    commit: str
    hardware: str
    versions: Mapping[str, str]
    date: str
    seconds: float
    profile: str
    runs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def makings(curves: Sequence[Curve], command: str, profile: str) -> list[Making]:
    """How these curves were made; one entry for each kind of machine and set of library versions."""
    groups: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.made["hardware"], json.dumps(curve.made["versions"], sort_keys=True)), []).append(curve)
    commit = commit_of_package()
    return [
        Making(
            command=command,
            commit=commit,
            hardware=hardware,
            versions=json.loads(versions),
            date=max(str(curve.made["date"]) for curve in group),
            seconds=round(sum(float(curve.made["seconds"]) for curve in group), 1),
            profile=profile,
            runs=tuple(sorted({curve.first.run for curve in group})),
        )
        for (hardware, versions), group in groups.items()
    ]


def commit_of_package() -> str:
    """The commit of the checkout that the package is in; else the one that the environment names; else its version."""
    here = Path(lengthlab.__file__).parent
    try:
        _git(here, "ls-files", "--error-unmatch", "__init__.py")  # a package installed below somebody's checkout is not of it
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        return f"{commit} with changes" if _git(here, "status", "--porcelain", "--", ".") else commit
    except (OSError, subprocess.SubprocessError):
        return os.environ.get(COMMIT) or f"version {lengthlab.__version__}"


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


def unite(made: Iterable[Making], runs: Iterable[str]) -> list[Making]:
    """Entries that made some of these runs, each once, in the order of their dates."""
    wanted = set(runs)
    unique = {json.dumps(making.to_json(), sort_keys=True): making for making in made if wanted & set(making.runs)}
    return sorted(unique.values(), key=lambda making: making.date)
