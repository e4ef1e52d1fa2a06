"""How many seeds succeed, and the mean over these alone beside the mean over all: what is left out of a mean is shown. Beside
them the median, where claims are judged by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lengthlab.experiments.size import Size
from lengthlab.report.page import Block, Entry, Table, Text
from lengthlab.report.scores import MISSING, Series


def success(
    entries: Sequence[Entry], size: Size, least: float, reference: str = "", medians: bool = False
) -> tuple[Block, ...]:
    """A seed succeeds whose accuracy in the training range, at the longest shown length of it, is at least `least`."""
    names = [name for name, _ in entries[0].names]
    columns = [f"n={length}, {seeds}" for length in size.shown for seeds in ("all", "successful", "median")[: 2 + medians]]
    told = " “Median” is that of every seed." if medians else ""
    beside = f" [ ] {reference}'s number." if reference else ""
    return (
        Text(
            f"Seeds succeed that are right in at least {least:g} of the samples at n = {_inside(size)}, the training range. "
            f"“All” is the mean over every seed, “successful” that over those that succeed, where there is one.{told}{beside}"
        ),
        Table((*names, "succeed", *columns), tuple(_row(entry, size, least, medians) for entry in entries)),
    )


def successful(series: Series, size: Size, least: float) -> set[int]:
    """The seeds that succeed."""
    return {seed for seed, accuracy in series.at(_inside(size)).by_seed.items() if accuracy >= least}


def _inside(size: Size) -> int:
    """The longest shown length of the training range."""
    return max((length for length in size.shown if length <= size.trained[1]), default=size.shown[0])


def _row(entry: Entry, size: Size, least: float, medians: bool) -> tuple[str, ...]:
    series = entry.series[0]
    chosen = successful(series, size, least)
    cells: list[str] = []
    for length in size.shown:
        score = series.at(length)
        alone = replace(score, rows=tuple(row for row in score.rows if row.seed in chosen))
        cells += [_told(score.mean), _told(alone.mean) + ("" if score.reference is None else f" [{score.reference:.2f}]")]
        cells += [_told(score.median)] * medians
    seeds = series.at(_inside(size)).by_seed
    return (*(name for _, name in entry.names), f"{len(chosen)} of {len(seeds)}" if seeds else MISSING, *cells)


def _told(accuracy: float | None) -> str:
    return "–" if accuracy is None else f"{accuracy:.3f}"
