"""Where the rows of an experiment are read from: published files, or run folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lengthlab.errors import LabError, require
from lengthlab.paper.cells import EVERY_PART, LENGTHS, PARTS
from lengthlab.report import courses, provenance
from lengthlab.report.courses import Course, course_of, read_courses
from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.provenance import Making, makings, read_makings
from lengthlab.report.results import Results, gather
from lengthlab.rows import FILE, Row, merge, read_rows
from lengthlab.store import Store

if TYPE_CHECKING:
    from lengthlab.experiments.trial import Trial
    from lengthlab.run import Run


@dataclass(frozen=True)
class Wanted:
    """What is looked for: an experiment in one of its profiles. `trials` are asked for by seeds, and only where they are
    needed: showing published rows of the paper takes no torch.
    """

    experiment: str
    profile: str
    lengths: tuple[int, ...]
    trials: Callable[[Sequence[int]], Sequence[Trial]]


@dataclass(frozen=True)
class Found:
    """Rows, how they were made, and how the training of each run went."""

    rows: tuple[Row, ...]
    made: tuple[Making, ...]
    courses: tuple[Course, ...] = ()


def wanted_of_paper(profile: str, parts: Sequence[str] = EVERY_PART) -> Wanted:
    """Parts of the paper."""

    def trials_of(seeds: Sequence[int]) -> Sequence[Trial]:
        from lengthlab.experiments.dat import PROFILES, trials

        return trials(parts, seeds, PROFILES[profile])

    return Wanted("dat", profile, LENGTHS, trials_of)


def read_results(
    names: Sequence[str], parts: Sequence[str] = (), seeds: int | None = None, profile: str = "short", command: str = ""
) -> Results:
    """What others have trained of the paper. The study of readings is shown where there is something of it."""
    found = read_sources(names, wanted_of_paper(profile), command, seeds)
    studied = ["readings"] if any(row.part == "readings" for row in found.rows) else []
    return gather(found.rows, found.made, parts or (*PARTS, *studied), found.courses)


def read_sources(names: Sequence[str], wanted: Wanted, command: str, seeds: int | None = None) -> Found:
    """The rows of all these folders together, as far as they were made with the profile."""
    found = together({name: _must_read(name, wanted, command) for name in dict.fromkeys(names)})
    others = {run for making in found.made if making.profile != wanted.profile for run in making.runs}
    own = {run for making in found.made if making.profile == wanted.profile for run in making.runs}
    kept = [row for row in found.rows if row.run in own or row.run not in others]
    what = f"experiment '{wanted.experiment}', profile '{wanted.profile}'"
    require(len(kept) > 0, f"no rows of {what}, in {', '.join(names)}")
    return replace(found, rows=tuple(row for row in kept if seeds is None or row.seed < seeds))


def _must_read(name: str, wanted: Wanted, command: str) -> Found:
    found = _read(name, wanted, command)
    if found is None:
        raise LabError(f"'{name}' holds neither {wanted.experiment}/{FILE} nor {FILE} nor run folders")
    return found


def together(found: Mapping[str, Found]) -> Found:
    """What several sources, by name, have. What two of them hold alike is one; what they count differently is an error."""
    rows = merge({name: each.rows for name, each in found.items()})
    made = [making for each in found.values() for making in each.made]
    went = sorted((course for each in found.values() for course in each.courses), key=lambda course: course.step_seconds or 0)
    by_run = {course.run: course for course in went}  # of two, the one that was timed
    return Found(tuple(rows), tuple(made), tuple(by_run.values()))


def rows_at_hand(names: Sequence[str], wanted: Wanted, seeds: Sequence[int], command: str) -> Found:
    """What these folders have of the trials of these seeds: the rows of runs that are there with every length, under the names
    of all cells that they serve. A folder may have nothing of them.
    """
    trials = wanted.trials(seeds)
    found = together({name: _read(name, wanted, command) or Found((), ()) for name in dict.fromkeys(names)})
    by_run: dict[str, dict[tuple[int, str], Row]] = {}
    for row in found.rows:
        by_run.setdefault(row.run, {})[row.length, row.question] = row
    lengths = {trial.run.id: set(trial.run.measured_at) & set(wanted.lengths) for trial in trials}
    whole = [run for run, rows in by_run.items() if lengths.get(run, {0}) <= {length for length, _ in rows}]
    return replace(found, rows=_in_cells(trials, {run: list(by_run[run].values()) for run in whole}, wanted))


def _read(name: str, wanted: Wanted, command: str) -> Found | None:
    """What a folder has; None if that is neither rows nor runs."""
    path = Path(name)
    require(path.is_dir(), f"there is no folder '{name}'")
    for folder in (path / wanted.experiment, path):
        if (folder / FILE).exists():
            rows = [row for row in read_rows(folder / FILE) if row.experiment == wanted.experiment]
            made = read_makings(folder / provenance.FILE)
            return Found(tuple(rows), tuple(made), tuple(read_courses(folder / courses.FILE)))
    if not any(path.glob("*/run.json")):
        return None
    curves, _ = read_curves(Store(path).folders())  # a store may hold many other runs
    return found_in(curves, wanted, sorted({curve.first.seed for curve in curves}), command)


def found_in(curves: Iterable[Curve], wanted: Wanted, seeds: Sequence[int], command: str) -> Found:
    """The rows that these curves give to the cells they were trained for, under the names of the cells."""
    trials = wanted.trials(seeds)
    ids = {trial.run.id for trial in trials}
    by_run = {curve.first.run: curve for curve in curves if curve.first.run in ids}
    rows = _in_cells(trials, {run: curve.rows for run, curve in by_run.items()}, wanted)
    went = [_course(by_run[trial.run.id], trial.run) for trial in trials if trial.run.id in by_run]
    made = makings(list(by_run.values()), command, wanted.profile)
    return Found(rows, tuple(made), tuple(dict.fromkeys(course for course in went if course)))


def _in_cells(trials: Sequence[Trial], by_run: Mapping[str, Sequence[Row]], wanted: Wanted) -> tuple[Row, ...]:
    """The rows of runs under the names of the cells that they serve."""
    return tuple(
        replace(row, experiment=wanted.experiment, part=cell.part, model=cell.model, training=cell.training)
        for cell, run in ((trial.cell, trial.run.id) for trial in trials)
        for row in by_run.get(run, ())
        if row.length in wanted.lengths
    )


def _course(curve: Curve, run: Run) -> Course | None:
    try:
        log = curve.folder.read_log() if curve.folder else []
    except LabError:  # a foreign log spoils no result
        log = []
    ends = curve.made.get("ends") or run.ends
    return course_of(run.id, log, ends, sum(bool(phase.off) for phase in run.schedule.phases)) if log else None
