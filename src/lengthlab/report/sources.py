"""What a report is made of: finished runs, those without a result, and published rows, wherever a user names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lengthlab.report.curves import Curve, read_curves
from lengthlab.report.evidence import PUBLISHED, place_of
from lengthlab.report.published_curves import published_curves, rows_in
from lengthlab.store import Folder, Status, Watch, named_folders
from lengthlab.store.garbage_collection import uncollected


@dataclass(frozen=True)
class Sources:
    """`statuses`: of runs without a result. `problems`: what could not be read, a line each."""

    curves: tuple[Curve, ...]
    statuses: tuple[Status, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def left_out(self) -> list[str]:
        """A line for everything that gave no numbers."""
        return [*(f"run {status.run} is not finished" for status in self.statuses), *self.problems]


@uncollected()
def read_sources(names: Sequence[str]) -> Sources:
    """Run folders, stores, and folders of published rows; `published` is what comes with the package, where none is here."""
    places = {name: rows for name in names if (rows := published_folders(name))}
    stores = [name for name in names if name not in places]
    folders: list[Folder] = named_folders(stores) if stores else []
    unfinished = [folder for folder in folders if not folder.finished]
    finished, problems = read_curves([folder for folder in folders if folder.finished])
    published, unknown = published_curves([folder for rows in places.values() for folder in rows])
    runs = {curve.first.run for curve in finished}
    curves = [*finished, *(curve for curve in published if curve.first.run not in runs)]
    statuses = Watch(unfinished).look().statuses if unfinished else ()
    return Sources(tuple(sorted(curves, key=lambda curve: curve.first.seed)), statuses, (*problems, *unknown))


def only_published(names: Sequence[str]) -> list[Path]:
    """Their folders of rows, where there is nothing else in these names; none where a store or a run is among them."""
    found = [published_folders(name) for name in names]
    return list(dict.fromkeys(folder for each in found for folder in each)) if all(found) else []


def published_folders(name: str) -> list[Path]:
    """The folders of rows of this name; none where it is a store, or nothing."""
    path = Path(name)
    if not name or any(path.glob("*/run.json")) or (path / "run.json").exists():
        return []
    found = rows_in(path)
    return found or (rows_in(place_of(name, "")) if name.rstrip("/") == PUBLISHED else [])
