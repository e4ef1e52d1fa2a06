"""What was started: the script that is running, as it was when it imported this package. Python keeps no other trace of it."""

from __future__ import annotations

import sys
from pathlib import Path


def _read() -> tuple[str, str] | None:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return (file, Path(file).read_text(encoding="utf-8-sig")) if file else None
    except (OSError, ValueError):
        return None


SCRIPT = _read()
"""Its file and text; None in a notebook or a shell."""
