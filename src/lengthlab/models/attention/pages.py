"""What a stream remembers lies in pages: it adds to the last until that is full, and the oldest go to the host where the device
has no room for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, TypeVar


class Page(Protocol):
    """Things that follow one another, `number` of them. Nothing in a page changes."""

    @property
    def number(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Of what can be on the host."""

    def then(self, other: Self, /) -> Self:
        """This one and what follows it, where this one is."""

    def part(self, start: int, end: int) -> Self:
        """Some of it, without the memory of the rest."""

    def on_host(self) -> Self:
        """Itself, where it is there already: this is asked of every page with every piece."""


P = TypeVar("P", bound=Page)


def extended(pages: tuple[P, ...], new: P, size: int, room: int) -> tuple[P, ...]:
    """And this after them, in pages of `size`; those that have no room, in bytes, are on the host, the oldest first."""
    if pages and pages[-1].number < size:
        new, pages = pages[-1].then(new), pages[:-1]
    return _on_host((*pages, *(new.part(start, start + size) for start in range(0, new.number, size))), room)


def placed(pages: tuple[P, ...]) -> Iterator[tuple[int, P]]:
    """Each with how much there is before it."""
    start = 0
    for page in pages:
        yield start, page
        start += page.number


def _on_host(pages: tuple[P, ...], room: int) -> tuple[P, ...]:
    """Not the last, which is still added to."""
    kept: list[P] = []
    for page in reversed(pages):
        room -= page.nbytes
        kept.append(page if room >= 0 or not kept else page.on_host())
    return tuple(reversed(kept))
