"""Code of others with an end: a task's answer to a sequence that it would never draw may go round in circles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class OutOfPatience(BaseException):
    """It has run more lines than it was given. No `except Exception` of the code itself holds it up."""


def counted(call: Callable[[], T], most: float = float("inf")) -> tuple[T, int]:
    """What a call gives, and how many lines of Python it ran; `OutOfPatience` where they are more than `most`.

    >>> counted(lambda: sum(range(3)))[0]
    3
    >>> def turn() -> None:
    ...     while True:
    ...         pass
    >>> try:
    ...     counted(turn, most=100)
    ... except OutOfPatience:
    ...     print("enough")
    enough
    """
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += 1
        if lines > most:
            raise OutOfPatience
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call(), lines
    finally:
        sys.settrace(before)
