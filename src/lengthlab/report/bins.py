"""Rows of several lengths as one: the samples of a bin together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lengthlab.experiments.size import Size
from lengthlab.store.rows import Row


def in_bins(rows: Iterable[Row], size: Size) -> list[Row]:
    """Where a size has bins, their counts by run and question, under the longest length of the bin; a bin of which a length is
    missing is left out. Else the rows as they are.

    >>> size = Size("gpu", trained=(5, 50), lengths=(25, 50, 75, 100), bins=(50, 100))
    >>> [row.accuracy for row in in_bins([Row(25, "all", 10, 10), Row(50, "all", 9, 10), Row(75, "all", 0, 10)], size)]
    [0.95]
    """
    if not size.bins:
        return list(rows)
    bin_of = {length: end for end in size.bins for length in size.in_bin(end)}
    found: dict[Row, list[Row]] = {}
    for row in rows:
        alike = replace(row, length=bin_of[row.length], correct=0, total=0, right_tokens=None, tokens=None)
        found.setdefault(alike, []).append(row)
    return [_sum(alike, own) for alike, own in found.items() if {row.length for row in own} == set(size.in_bin(alike.length))]


def _sum(alike: Row, rows: Sequence[Row]) -> Row:
    """What rows that are `alike` but for their counts come to."""
    total = {name: sum(getattr(row, name) for row in rows) for name in ("correct", "total")}
    known = all(row.tokens is not None for row in rows)
    tokens = {name: sum(getattr(row, name) for row in rows) for name in ("right_tokens", "tokens") if known}
    return replace(alike, **total, **tokens)


def bins_told(size: Size) -> str:
    """Which lengths a shown one stands for, in one sentence; nothing where that is itself.

    >>> bins_told(Size("gpu", trained=(5, 50), lengths=(25, 50, 75, 100), bins=(50, 100)))
    'n = 50 stands for all samples of the lengths measured in 1…50 (25, 50), n = 100 for those in 51…100 (75, 100).'
    """
    told = [f"n = {end} for those in {size.starts(end)}…{end} ({_list(size.in_bin(end))})" for end in size.bins]
    first = "stands for all samples of the lengths measured in"
    return f"{', '.join(told)}.".replace("for those in", first, 1) if told else ""


def _list(lengths: Sequence[int]) -> str:
    return ", ".join(map(str, lengths))
