"""Whether a report of many runs is there already: the same runs give the same bytes, so nothing is drawn again.

`.made.json` beside the files of a report says of which runs they are and which files were written. It is derived: without it,
or where it is anybody's, the report is written as ever. Reports of few runs have none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from lengthlab.errors import LabError
from lengthlab.report.sources import Sources
from lengthlab.store import Folder, replace_file
from lengthlab.store.garbage_collection import uncollected
from lengthlab.store.index import FEWEST
from lengthlab.store.log import identity

FILE = ".made.json"
READ = ("run.json", "result.json", "log.jsonl", "why.json")
"""What a report reads of a run."""
WRITES = (".py", ".js", ".css")
"""What writes a report: another version of it writes another."""


@uncollected()
def key_of(found: Sources, command: str) -> str:
    """Of all that a report is made of; empty where there are too few runs to keep it in mind."""
    if len(found.curves) < FEWEST:
        return ""
    files = [(str(curve.folder.path), *(identity(f"{curve.folder.path}/{name}") for name in READ)) for curve in found.curves]
    code = [(path.name, identity(path)) for path in sorted(Path(__file__).parent.rglob("*")) if path.suffix in WRITES]
    told = (code, command, found.statuses, found.problems, files)
    return sha256(repr(told).encode("utf-8", "backslashreplace")).hexdigest()


def made_before(folder: Path, key: str) -> list[Path]:
    """The files of this very report, if they lie there as they were written; else none."""
    try:
        kept = Folder(folder).read_json(FILE) if key else {}
        files = {folder / name: there for name, there in kept["files"].items()} if kept.get("key") == key != "" else {}
        return list(files) if all(list(identity(path) or ()) == there for path, there in files.items()) else []
    except (LabError, OSError, LookupError, AttributeError, TypeError, ValueError):
        return []


def remember(folder: Path, key: str, paths: Sequence[Path]) -> None:
    """That these files are the report of this key."""
    if key:
        files = {path.relative_to(folder).as_posix(): identity(path) for path in paths}
        with suppress(OSError):
            replace_file(folder / FILE, json.dumps({"key": key, "files": files}).encode())
