"""Runs of a plan that need nothing more: what they came to is read, and nobody has to train, to measure or to wait for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lengthlab.errors import LabError
from lengthlab.report.curves import Curve, read_curves
from lengthlab.store import Folder, Store
from lengthlab.store.garbage_collection import uncollected
from lengthlab.store.ids import NOT_CONTENT
from lengthlab.store.index import Indexes

if TYPE_CHECKING:
    from lengthlab.spec.run import Run


@uncollected()
def kept_curves(runs: Sequence[Run], store: str | os.PathLike[str]) -> dict[str, Curve]:
    """By id. Of all others there is something to do, or to say."""
    place = Store(store)
    folders = {run.id: place.folder(run.id) for run in runs}
    indexes, enough = Indexes(folders.values()), dict[tuple[int, int], int]()
    found = {curve.first.run: curve for curve in read_curves(list(folders.values()), indexes=indexes)[0]}
    return {
        run.id: curve
        for run in runs
        if (curve := found.get(run.id))
        and curve.folder is folders[run.id]
        and _is_measured(run, curve, enough)
        and _holds(curve.folder, run, indexes)
    }


def _is_measured(run: Run, curve: Curve, enough: dict[tuple[int, int], int]) -> bool:
    """Wherever it asks, on as many samples as usual. `enough`: how many that are, by task and length."""
    from lengthlab.evaluation.samples import USUAL

    totals = {row.length: row.total for row in curve.rows}
    for length in run.measured_at:
        key = id(run.task), length
        if totals.get(length, 0) < (enough.get(key) or enough.setdefault(key, USUAL.at(run.task, length))):
            return False
    return True


def _holds(folder: Folder, run: Run, indexes: Indexes) -> bool:
    """Whether the folder is that of this run; and called so, where the run has a name."""
    try:
        content, own = indexes.read_json(folder, "run.json"), run.as_data
    except (LabError, OSError):
        return False
    if run.label or content == own:
        return content == own
    return all(content.get(key) == own.get(key) for key in own.keys() | content.keys() if key not in NOT_CONTENT)
