"""Python's collector of garbage, kept still while many objects are made that stay: it would look through all of them, again and
again, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While inside, nothing is collected that references alone do not free.

    >>> with uncollected():
    ...     inside = gc.isenabled()
    >>> inside, gc.isenabled()
    (False, True)
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def count_as_old() -> None:
    """What was made so far is looked through when all else is, and not as soon as collecting begins again: for the end of a
    command, after which nobody would have anything of it.

    >>> count_as_old() or gc.get_count()[1:]
    (0, 0)
    """
    gc.freeze()
    gc.unfreeze()  # into the oldest generation


@contextmanager
def collected() -> Iterator[None]:
    """While inside, garbage is collected as ever, whatever is around: this takes long.

    >>> with uncollected(), collected():
    ...     gc.isenabled()
    True
    """
    enabled = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not enabled:
            gc.disable()
