"""A file of anybody's as text, or a line that says why it is none."""

from __future__ import annotations

from pathlib import Path

from lengthlab.errors import LabError, explain, require

MOST = 2**28
"""Bytes: a file of holes may be larger than the memory."""


class Missing(LabError):
    """There is no such file."""


def read_text(path: Path) -> str:
    """What a file says. It is UTF-8, and the mark that some editors put before that is no part of it.

    >>> read_text(Path("nowhere.toml"))
    Traceback (most recent call last):
    lengthlab.text_file.Missing: nowhere.toml: No such file or directory
    """
    try:
        size = path.stat().st_size
        require(size <= MOST, f"{path} has {size:,} bytes, which is more than anybody wrote: name another")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise Missing(explain(error)) from None
    except OSError as error:
        raise LabError(explain(error)) from None
    except ValueError:
        raise LabError(f"{path} is not text: save it as UTF-8") from None
