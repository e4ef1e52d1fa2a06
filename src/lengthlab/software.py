"""Which code is running."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import torch

import lengthlab

COMMIT = "LENGTHLAB_COMMIT"
"""Names the commit where the source came without its history, or with an older one: into a container, onto a cluster."""


def versions() -> dict[str, str]:
    """Of the package, of PyTorch and of Python; of flash-linear-attention, too, where its kernels may have been used.

    >>> {"lengthlab", "python", "torch"} <= set(versions())
    True
    """
    known = {"lengthlab": lengthlab.__version__, "torch": torch.__version__, "python": platform.python_version()}
    if torch.cuda.is_available() and (found := find_spec("fla")) and found.origin:  # without one, a folder of that name
        known["fla-core"] = _version_of("fla-core")
    return known


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "from a folder"


@cache
def commit_of_package() -> str:
    """The commit that the environment names; else that of the checkout that the package is in; else the package's version.

    A copy of a checkout on another machine may have an older history, or none: there the environment knows better. What is
    loaded stays loaded, so a process looks once: the checkout may move on while it trains.
    """
    if named := os.environ.get(COMMIT):
        return named[:12]
    here = Path(lengthlab.__file__).parent
    try:
        _git(here, "ls-files", "--error-unmatch", "__init__.py")  # a package installed below somebody's checkout is not of it
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        return f"{commit} with changes" if _git(here, "status", "--porcelain", "--", ".") else commit
    except (OSError, subprocess.SubprocessError):
        return f"version {lengthlab.__version__}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
