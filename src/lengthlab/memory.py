"""How much memory there is, and what is refused because it would need more: before anything is allocated."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from lengthlab.errors import require

FLOAT_BYTES = 4
TOKEN_BYTES = 8
UNKNOWN = 2**42
"""Bytes, where a system does not say how many it has: more than any that does not say so."""
UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""What a container may have, by the kernel's new and old custom."""


@lru_cache(maxsize=8)
def memory_of(device: str = "cpu") -> int:
    """Bytes that a device has in all; a GPU that shares the machine's has that.

    >>> memory_of("cpu") > 2**20
    True
    """
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    found = [UNKNOWN]
    with suppress(AttributeError, OSError, ValueError):  # Windows knows no sysconf
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in LIMITS:
        with suppress(OSError, ValueError):  # "max" says that there is none
            found.append(int(Path(path).read_text()))
    return min(found)


def require_memory(needed: int, what: str, device: str = "cpu") -> None:
    """Refuse what needs more memory than there is; `what` it is, as the subject of a sentence.

    >>> require_memory(10**21, "a batch of so many sequences")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lengthlab.errors.LabError: a batch of so many sequences would need at least 1,000 EB of memory, and ...
    """
    there = memory_of(device)
    require(needed <= there, f"{what} would need at least {in_bytes(needed)} of memory, and {device} has {in_bytes(there)}")


def in_bytes(number: int) -> str:
    """
    >>> in_bytes(24_500_000_000), in_bytes(8 * 10**15), in_bytes(10**24)
    ('24.5 GB', '8 PB', '1,000,000 EB')
    """
    power = min(len(UNITS), (len(str(number)) + 2) // 3) - 1
    return f"{number / 1000**power:,.1f}".removesuffix(".0") + f" {UNITS[power]}"
