"""Ctrl-C between two steps, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupt:
    """Set by the first Ctrl-C (or a polite kill)."""

    asked = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """While inside, a signal only sets a flag, for the loop to see after its step; a second Ctrl-C interrupts at once."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def on_signal(number: int, frame: object) -> None:
        if interrupt.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        interrupt.asked = True

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
