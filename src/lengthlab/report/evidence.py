"""What is known of a study: rows, where they come from and how training went; read from published files or run folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import lengthlab
from lengthlab.errors import LabError, require
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Section, Study
from lengthlab.report import provenance
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.provenance import Origin, origins_of, read_origins
from lengthlab.report.traces import TrainingTrace, read_traces, trace_of
from lengthlab.store import Store
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import FILE, Row, merge, read_rows

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

PUBLISHED = "published"


@dataclass(frozen=True)
class Evidence:
    """Rows, each with its size, the entries that say how they were made, and traces of the runs."""

    rows: tuple[Row, ...] = ()
    origins: tuple[Origin, ...] = ()
    traces: tuple[TrainingTrace, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is looked for: sections of a study at one size, all if none is named. `command` is what the user typed."""

    study: Study
    size: Size
    sections: tuple[Section, ...] = ()
    command: str = ""

    def runs(self, seeds: Iterable[int]) -> list[tuple[Arm, Run]]:
        """Asked for only where something is trained or looked up in a store: published rows are shown without torch."""
        return self.study.runs(self.size.name, seeds, self.sections)


def place_of(name: str, experiment: str) -> Path:
    """The folder of that name; for `published`, where none here has something of the experiment, the one that comes with the
    package.
    """
    path, package = Path(name), Path(lengthlab.__file__).parent
    if name.rstrip("/") == PUBLISHED and not _file_in(path, experiment) and not any(path.glob("*/run.json")):
        for folder in (package / PUBLISHED, package.parents[1] / PUBLISHED):
            if folder.is_dir():
                return folder
    if path.is_dir():
        return path
    raise LabError(f"there is no folder '{name}'")


def read_evidence(names: Sequence[str], wanted: Wanted, seeds: int | None = None) -> Evidence:
    """What all these folders have of a study at the size that is wanted, and at no other: perhaps nothing."""
    found = together({name: _must_read(name, wanted) for name in dict.fromkeys(names)})
    return replace(found, rows=tuple(row for row in found.rows if seeds is None or row.seed < seeds))


def _must_read(name: str, wanted: Wanted) -> Evidence:
    found = _read(name, wanted)
    if found is None:
        raise LabError(f"'{name}' holds neither {wanted.study.name}/{FILE} nor {FILE} nor run folders")
    return found


def _read(name: str, wanted: Wanted) -> Evidence | None:
    """What a folder has; None if that is neither rows nor runs."""
    path = place_of(name, wanted.study.name)
    files = _files(path, wanted.study.name)
    if files.rows:
        size = wanted.size.name
        told = all(row.size for row in files.rows) or len(wanted.study.sizes) == 1
        require(told, f"'{name}' has rows without a size, and no {provenance.FILE} that tells it: give them a size")
        return replace(files, rows=tuple(replace(row, size=size) for row in files.rows if row.size in ("", size)))
    if _file_in(path, wanted.study.name):
        return Evidence()
    if not any(path.glob("*/run.json")):
        return None
    curves, _ = read_curves(Store(path).folders())  # a store may hold many other runs
    return evidence_of(curves, wanted, sorted({curve.first.seed for curve in curves}))


def _file_in(path: Path, experiment: str) -> Path | None:
    return next((folder for folder in (path / experiment, path) if (folder / FILE).exists()), None)


def _files(path: Path, experiment: str) -> Evidence:
    """The rows of an experiment in a folder of files."""
    folder = _file_in(path, experiment)
    if folder is None:
        return Evidence()
    found = read_files(folder)
    return replace(found, rows=tuple(row for row in found.rows if row.experiment == experiment))


def read_files(folder: Path) -> Evidence:
    """All that the files of a folder tell. A row without a size has that of the entry that made its run."""
    origins = read_origins(folder / provenance.FILE)
    size_of = {run: origin.size for origin in origins for run in origin.short_runs}
    rows = read_rows(folder / FILE)
    sized = [row if row.size else replace(row, size=size_of.get(row.run[:SHORT], "")) for row in rows]
    return Evidence(tuple(sized), tuple(origins), tuple(read_traces(folder)))


def together(found: Mapping[str, Evidence]) -> Evidence:
    """What several sources, by name, have. What two of them hold alike is one; what they count differently is an error."""
    rows = merge({name: each.rows for name, each in found.items()})
    origins = [origin for each in found.values() for origin in each.origins]
    traces = sorted((trace for each in found.values() for trace in each.traces), key=lambda trace: trace.step_seconds or 0)
    by_run = {trace.run[:SHORT]: trace for trace in traces}  # of two, the one that was timed
    return Evidence(tuple(rows), tuple(origins), tuple(by_run.values()))


def what_there_is(names: Sequence[str], wanted: Wanted) -> Evidence:
    """What these folders have of a study; those that are of something else add nothing."""
    return together({name: _read(name, wanted) or Evidence() for name in dict.fromkeys(names)})


def rows_at_hand(names: Sequence[str], wanted: Wanted, seeds: Sequence[int]) -> Evidence:
    """What these folders have of the runs of these seeds: the rows of runs that are there with every length, under the labels
    of all arms that they serve. A folder may have nothing of them.
    """
    runs = wanted.runs(seeds)
    found = what_there_is(names, wanted)
    by_run: dict[str, dict[tuple[int, str], Row]] = {}
    for row in found.rows:
        by_run.setdefault(row.run[:SHORT], {})[row.length, row.question] = row
    asked = {run.id[:SHORT]: set(run.evaluate) for _, run in runs}
    whole = {run: rows for run, rows in by_run.items() if asked.get(run, set()) <= {length for length, _ in rows}}
    return replace(found, rows=_in_arms(runs, {run: list(rows.values()) for run, rows in whole.items()}, wanted))


def evidence_of(curves: Iterable[Curve], wanted: Wanted, seeds: Sequence[int]) -> Evidence:
    """The rows that these curves give to the arms they were trained for, under the labels of the arms."""
    runs = wanted.runs(seeds)
    ids = {run.id[:SHORT] for _, run in runs}
    by_run = {curve.first.run[:SHORT]: curve for curve in curves if curve.first.run[:SHORT] in ids}
    rows = _in_arms(runs, {run: curve.rows for run, curve in by_run.items()}, wanted)
    traces = [_trace(by_run[run.id[:SHORT]], run) for _, run in runs if run.id[:SHORT] in by_run]
    origins = origins_of(list(by_run.values()), wanted.command, wanted.size.name)
    return Evidence(rows, tuple(origins), tuple(dict.fromkeys(trace for trace in traces if trace)))


def _in_arms(runs: Sequence[tuple[Arm, Run]], by_run: Mapping[str, Sequence[Row]], wanted: Wanted) -> tuple[Row, ...]:
    """The rows of runs under the labels of the arms that they serve."""
    names = {"experiment": wanted.study.name, "size": wanted.size.name}
    return tuple(
        replace(row, **names, arm=arm.name, model=arm.model, task=arm.task, training=arm.training)  # type: ignore[arg-type]
        for arm, run in runs
        for row in by_run.get(run.id[:SHORT], ())
        if row.length in run.evaluate
    )


def _trace(curve: Curve, run: Run) -> TrainingTrace | None:
    from lengthlab.inspection.subject import count_parameters

    try:
        log = curve.folder.read_log()
    except LabError:  # a foreign log spoils no result
        log = []
    ends = curve.made.get("ends") or run.ends
    last_off = max((number for number, phase in enumerate(run.schedule.phases, start=1) if phase.off), default=0)
    if not log:
        return None
    return replace(trace_of(curve.first.run, log, ends, last_off), parameters=count_parameters(run.blueprint))
