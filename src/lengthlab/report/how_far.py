"""How far an accuracy lasts: the one at the longest length that was measured, and the longest length that has so much; of a
part of a study, and in the mean over parts that ask the same of several tasks, as work on rule following reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm
from lengthlab.report.page import Block, Entry, Heading, Table, Text
from lengthlab.report.results import Results
from lengthlab.report.scores import ROUNDING, Series


@dataclass(frozen=True)
class Far:
    """The accuracy at the longest length, and the longest length at which it is large enough, 0 where it is at none."""

    accuracy: float
    length: float


def far_of(series: Series, size: Size, least: float) -> Far | None:
    """By means over seeds; None where the longest length was not measured."""
    last = series.at(size.shown[-1]).mean
    reached = [score.length for score in series.scores if score.mean is not None and score.mean >= least - ROUNDING]
    return None if last is None else Far(last, max(reached, default=0))


def how_far(entries: Sequence[Entry], size: Size, least: float) -> Iterator[Block]:
    """A row an arm, by the first question of the part."""
    found = [(entry, far) for entry in entries if (far := far_of(entry.series[0], size, least))]
    if found:
        names, question = [name for name, _ in entries[0].names], entries[0].series[0].question
        yield Text(f"How far “{question}” lasts, by means over seeds: {_told(size, least)}")
        rows = [(*(name for _, name in entry.names), *_cells(far)) for entry, far in found]
        yield Table((*names, *_columns(size, least)), tuple(rows))


def over_tasks(results: Results, least: float) -> Iterator[Block]:
    """Arms that several parts share but for their task, where these are measured at the same lengths."""
    size = results.size
    found: dict[tuple[tuple[str, str], ...], list[Far]] = {}
    for section in results.sections:
        if section.at(size) == size:
            question = results.questions(section)[0]
            for arm in section.arms:
                if far := far_of(results.series(arm, question, section), size, least):
                    found.setdefault(_apart_from_task(arm), []).append(far)
    several = {about: fars for about, fars in found.items() if len(fars) > 1}
    if several:
        columns = [column for column, _ in next(iter(several))]
        yield Heading("In the mean over tasks")
        yield Text(f"Of what was measured on several tasks: {_told(size, least)}")
        rows = [(*(word for _, word in about), str(len(fars)), *_cells(_mean(fars))) for about, fars in several.items()]
        yield Table((*columns, "tasks", *_columns(size, least)), tuple(rows))


def _apart_from_task(arm: Arm) -> tuple[tuple[str, str], ...]:
    return (*arm.about, ("training", arm.training))


def _mean(fars: Sequence[Far]) -> Far:
    return Far(fmean(far.accuracy for far in fars), fmean(far.length for far in fars))


def _told(size: Size, least: float) -> str:
    lengths = ", ".join(map(str, size.shown))
    return (
        f"at n = {size.shown[-1]}, and the longest of n = {lengths} at which it is at least {least:.2f}, 0 where it is at none."
    )


def _columns(size: Size, least: float) -> tuple[str, str]:
    return f"n={size.shown[-1]}", f"longest with {least:.2f}"


def _cells(far: Far) -> tuple[str, str]:
    return f"{far.accuracy:.3f}", f"{round(far.length, 2):g}"
