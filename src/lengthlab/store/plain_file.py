"""What lies in a run folder may be anybody's: before a file of it is read, it is looked at.

A pipe would be waited for, a device read without end, a file of holes is larger than the memory, and a link leads to what is no
part of the run.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lengthlab.errors import require

MOST_JSON = 2**26
"""Bytes of a JSON file of a run: a thousand times what we write."""
MOST_LOG = 2**30
"""Bytes of a log: a billion steps have as many."""
LONGEST_LINE = 2**24
"""Bytes of a line of a log."""


def require_plain(path: str | Path, most: int) -> None:
    """Refuse what is no file of this folder, or larger than can be; one that is not there, or cannot be seen, is no matter.

    >>> require_plain("/dev/zero", most=100)
    Traceback (most recent call last):
    lengthlab.errors.LabError: /dev/zero is no plain file: move it away
    """
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            home = os.path.realpath(os.path.dirname(path) or ".")
            inside = os.path.dirname(os.path.realpath(path)) == home
            require(inside, f"{path} is a link that leads out of its folder: put the file itself there")
            found = os.stat(path)
    except OSError:
        return  # whoever opens it will say why
    require(stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode), f"{path} is no plain file: move it away")
    require(found.st_size <= most, f"{path} has {found.st_size:,} bytes, and no such file of ours has so many: move it away")
