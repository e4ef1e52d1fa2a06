"""Accuracies over length, each with its seeds, its interval and what a reference says: a pure function of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from lengthlab.errors import LabError
from lengthlab.store.ids import same_run
from lengthlab.store.interval import wilson
from lengthlab.store.rows import ALL, Row

AGREES, DIFFERS, SILENT, MISSING = "agrees", "differs", "silent", "missing"
VERDICTS = (AGREES, DIFFERS, SILENT, MISSING)
MARGIN = 0.05
"""How far apart two accuracies may be and still agree."""
ROUNDING = 1e-9
"""0.95 and 1.00 are 0.05 apart, whatever binary fractions say."""
GOOD = 0.90
"""Accuracies above this are set off: bold, or green."""


@dataclass(frozen=True)
class Score:
    """An accuracy at one length: a row of ours for each seed, and the value of a reference.

    `interval` is Wilson's over the samples of all seeds together. Every seed answers the same samples, and how much seeds
    differ is not in it: that is `spread`.
    """

    length: int
    rows: tuple[Row, ...] = ()
    reference: float | None = None

    @cached_property
    def by_seed(self) -> dict[int, float]:
        return {row.seed: row.accuracy for row in self.rows}

    @cached_property
    def mean(self) -> float | None:
        """Over seeds."""
        return sum(row.accuracy for row in self.rows) / len(self.rows) if self.rows else None

    @property
    def median(self) -> float | None:
        """Over seeds."""
        return median(row.accuracy for row in self.rows) if self.rows else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and the highest seed; None where there are not several."""
        accuracies = self.by_seed.values()
        return (min(accuracies), max(accuracies)) if len(accuracies) > 1 else None

    @property
    def tokens(self) -> float | None:
        """The share of right tokens, the mean over seeds; none where answers are one token, which says nothing more."""
        known = [row.token_accuracy for row in self.rows if row.tokens is not None]
        return sum(known) / len(known) if known else None

    @property
    def samples(self) -> int:
        return sum(row.total for row in self.rows)

    @cached_property
    def interval(self) -> tuple[float, float]:
        return wilson(sum(row.correct for row in self.rows), self.samples)

    @property
    def verdict(self) -> str:
        return verdict(self.reference, self.mean)


def verdict(reference: float | None, ours: float | None) -> str:
    """
    >>> verdict(1.0, 0.95), verdict(1.0, 0.949), verdict(None, 0.5), verdict(1.0, None)
    ('agrees', 'differs', 'silent', 'missing')
    """
    if ours is None:
        return MISSING
    if reference is None:
        return SILENT
    return AGREES if abs(ours - reference) <= MARGIN + ROUNDING else DIFFERS


@dataclass(frozen=True)
class Series:
    """The scores of one question, by length. `missing`: seeds that others beside it have."""

    question: str
    scores: tuple[Score, ...]
    missing: tuple[int, ...] = ()

    @property
    def seeds(self) -> list[int]:
        return sorted({seed for score in self.scores for seed in score.by_seed})

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(score.verdict for score in self.scores)

    def at(self, length: int) -> Score:
        """The score at a length; an empty one where nothing was asked there."""
        return next((score for score in self.scores if score.length == length), Score(length))

    def of_seed(self, seed: int) -> list[Row]:
        return [row for score in self.scores for row in score.rows if row.seed == seed]


def one_a_seed(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of an arm, a question and a length by seed; two runs of a seed cannot be one number. Of seeds that were measured
    on different numbers of samples, those with the usual one: they are not mixed in a mean.
    """
    by_seed: dict[int, Row] = {}
    found = list(rows)
    usual = usual_total(found)
    for row in found:
        other = by_seed.setdefault(row.seed, row) if row.total == usual else row
        if other is not row and not same_run(other.run, row.run):
            what = f"{row.arm} {row.model} {row.training}, seed {row.seed}"
            raise LabError(f"two runs claim {what}: {other.run} and {row.run}; leave the rows of one of them out")
    return tuple(by_seed[seed] for seed in sorted(by_seed))


def usual_total(rows: Iterable[Row]) -> int:
    """The number of samples that most rows have, the larger of two; of all questions together, where there are such rows.

    >>> usual_total([Row(5, "all", 9, 10), Row(10, "all", 90, 100), Row(5, "result", 9, 10)])
    100
    """
    found = list(rows)
    totals = Counter([row.total for row in found if row.question == ALL] or [row.total for row in found])
    return max(totals, key=lambda total: (totals[total], total), default=0)


def usual_totals(rows: Iterable[Row]) -> dict[tuple[int, str], int]:
    """The same by length and question: of very long sequences, and of what a model says in its own words, fewer are measured.

    >>> usual_totals([Row(5, "all", 90, 100), Row(5, "result", 4, 5), Row(70_000, "all", 9, 10)])
    {(5, 'all'): 100, (5, 'result'): 5, (70000, 'all'): 10}
    """
    found: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.length, row.question), []).append(row)
    return {key: usual_total(own) for key, own in found.items()}


def samples_told(rows: Iterable[Row], each: str = "a cell") -> str:
    """On how many samples each number is, with the lengths and the questions of which that is not so.

    >>> samples_told([Row(5, "all", 90, 100), Row(10, "all", 90, 100), Row(20, "all", 9, 10)])
    '100 samples a cell, but 10 at n = 20'
    >>> samples_told([Row(5, "all", 90, 100), Row(10, "all", 90, 100), Row(2000, "all", 9, 20), Row(9000, "all", 9, 10)])
    '100 samples a cell, but 20 at n = 2,000 and 10 at n = 9,000'
    >>> samples_told([Row(5, "all", 90, 100), Row(5, "answer", 90, 100), Row(5, "result", 9, 10)])
    '100 samples a cell, 10 of result'
    """
    found = list(rows)
    usual = usual_total(found)
    by_total: dict[int, set[int]] = {}
    for row in [row for row in found if row.question == ALL] or found:
        by_total.setdefault(row.total, set()).add(row.length)
    others = sorted((total for total in by_total if total != usual), key=lambda total: min(by_total[total]))
    told = [f"{total:,} at n = {', '.join(f'{length:,}' for length in sorted(by_total[total]))}" for total in others]
    exceptions = " and ".join(filter(None, ("; ".join(told[:-1]), *told[-1:])))
    mixed = any(by_total[total] & by_total[usual] for total in others)
    apart = "; where runs of one setting differ in that, the mean is of those with the usual number" if mixed else ""
    return f"{usual:,} samples {each}{_fewer_told(found)}" + (f", but {exceptions}{apart}" if others else "")


def _fewer_told(rows: Sequence[Row]) -> str:
    """Questions that are counted on other samples than all questions together."""
    whole = {(row.run, row.length, row.total) for row in rows if row.question == ALL}
    by_total: dict[int, dict[str, None]] = {}
    for row in rows:
        if whole and (row.run, row.length, row.total) not in whole:
            by_total.setdefault(row.total, {})[row.question] = None
    return "".join(f", {total:,} of {' and '.join(by_total[total])}" for total in sorted(by_total))


def tally(series: Sequence[Series]) -> str:
    """How many values come to which verdict.

    >>> tally([Series("all", (Score(5), Score(10)))])
    '2 values: 2 missing'
    """
    counts = sum((each.verdicts for each in series), Counter[str]())
    words = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"{counts.total()} value{'s' if counts.total() != 1 else ''}: {', '.join(words)}"
