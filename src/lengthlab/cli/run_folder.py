"""RUN on the command line: a run folder, or the start of an id in the store."""

from __future__ import annotations

from pathlib import Path

from lengthlab.errors import require
from lengthlab.store import Folder, Store


def run_folder(name: str, store: str) -> Folder:
    """The folder that a user means."""
    path = Path(name)
    if name and (path / "run.json").exists():
        return Folder(path)
    require(not path.parent.name, f"'{name}' is no run folder: it has no run.json")
    return Store(store).find(name)


def finished_folder(name: str, store: str) -> Folder:
    """The same, where nothing can be said of a run before it is trained."""
    folder = run_folder(name, store)
    require(folder.finished, f"run {folder.id} is not finished: train it first")
    return folder
