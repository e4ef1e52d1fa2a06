"""Where the rows of a reproduction are read from: published files, or run folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lengthlab.errors import LabError, require
from lengthlab.paper.cells import LENGTHS, PARTS
from lengthlab.report import provenance
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.provenance import Making, makings, read_makings
from lengthlab.report.results import Results, gather
from lengthlab.rows import FILE, Row, merge, read_rows
from lengthlab.store import Store

if TYPE_CHECKING:
    from lengthlab.experiments.dat import Trial

EXPERIMENT = "dat"


@dataclass(frozen=True)
class Found:
    """Rows, and how they were made."""

    rows: tuple[Row, ...]
    made: tuple[Making, ...]


def read_results(
    names: Sequence[str], part: str | None = None, seeds: int | None = None, profile: str = "short", command: str = ""
) -> Results:
    """What others have trained. The study of readings is shown where there is something of it."""
    found = read_sources(names, profile, command)
    rows = [row for row in found.rows if seeds is None or row.seed < seeds]
    studied = ["readings"] if any(row.part == "readings" for row in rows) else []
    return gather(rows, found.made, [part] if part else [*PARTS, *studied])


def read_sources(names: Sequence[str], profile: str, command: str) -> Found:
    """The rows of all these folders together, as far as they were made with the profile. Only run folders need torch."""
    found = {name: _read(name, profile, command) for name in dict.fromkeys(names)}
    made = [making for each in found.values() for making in each.made]
    others = {run for making in made if making.profile != profile for run in making.runs}
    own = {run for making in made if making.profile == profile for run in making.runs}
    rows = merge({name: each.rows for name, each in found.items()})
    kept = [row for row in rows if row.run in own or row.run not in others]
    require(len(kept) > 0, f"no rows of experiment '{EXPERIMENT}', profile '{profile}', in {', '.join(names)}")
    return Found(tuple(kept), tuple(made))


def _read(name: str, profile: str, command: str) -> Found:
    path = Path(name)
    require(path.is_dir(), f"there is no folder '{name}'")
    for folder in (path / EXPERIMENT, path):
        if (folder / FILE).exists():
            rows = [row for row in read_rows(folder / FILE) if row.experiment == EXPERIMENT]
            return Found(tuple(rows), tuple(read_makings(folder / provenance.FILE)))
    if not any(path.glob("*/run.json")):
        raise LabError(f"'{name}' holds neither {EXPERIMENT}/{FILE} nor {FILE} nor run folders")
    return _read_store(path, profile, command)


def _read_store(path: Path, profile: str, command: str) -> Found:
    """The finished runs of a store that are those of the profile; a store may hold many others."""
    from lengthlab.experiments.dat import PROFILES, trials

    curves, _ = read_curves(Store(path).folders())
    seeds = sorted({curve.first.seed for curve in curves})
    return found_in(curves, trials((*PARTS, "readings"), seeds, PROFILES[profile]), profile, command)


def found_in(curves: Iterable[Curve], wanted: Sequence[Trial], profile: str, command: str) -> Found:
    """The rows that these curves give to the cells they were trained for, under the names of the cells."""
    ids = {trial.run.id for trial in wanted}
    by_run = {curve.first.run: curve for curve in curves if curve.first.run in ids}
    rows = [
        replace(row, experiment=EXPERIMENT, part=trial.cell.part, model=trial.cell.model, training=trial.cell.training)
        for trial in wanted
        if trial.run.id in by_run
        for row in by_run[trial.run.id].rows
        if row.length in LENGTHS
    ]
    return Found(tuple(rows), tuple(makings(list(by_run.values()), command, profile)))
