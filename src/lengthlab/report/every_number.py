"""Every number of a section: each seed, interval, samples, verdict, and which command made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.report.page import Entry, Span, Table, Words
from lengthlab.report.results import Results
from lengthlab.report.scores import MISSING, Score
from lengthlab.store.ids import SHORT

ANCHOR = "made"
"""What made a number is linked to as `#made-3`, the third entry of where numbers come from."""


def every_number(results: Results, entries: Sequence[Entry], reference: str) -> Table:
    """A row for each question, entry and length."""
    return Table(_header(entries, reference), tuple(_rows(results, entries, reference)))


def _header(entries: Sequence[Entry], reference: str) -> tuple[str, ...]:
    names = [name for name, _ in entries[0].names]
    beside = [reference.removeprefix("the ")] if reference else []
    return (
        *names,
        "n",
        "question",
        *beside,
        "mean",
        "each seed",
        "interval over samples",
        "samples",
        *(["tokens"] if _have_tokens(entries) else []),
        *(["verdict"] if reference else []),
        "made by",
    )


def _have_tokens(entries: Sequence[Entry]) -> bool:
    return any(score.tokens is not None for entry in entries for series in entry.series for score in series.scores)


def _rows(results: Results, entries: Sequence[Entry], reference: str) -> Iterator[tuple[Words, ...]]:
    for number in range(len(entries[0].series)):
        for entry in entries:
            series = entry.series[number]
            for score in series.scores:
                names = [name for _, name in entry.names]
                numbers = _numbers(results, score, series.missing, bool(reference), _have_tokens(entries))
                yield (*names, str(score.length), series.question, *numbers)


def _numbers(results: Results, score: Score, missing: Sequence[int], compared: bool, tokens: bool) -> list[Words]:
    beside: list[Words] = ["–" if score.reference is None else f"{score.reference:.2f}"] if compared else []
    verdict: list[Words] = [score.verdict] if compared else []
    share: list[Words] = ["–" if score.tokens is None else f"{score.tokens:.3f}"] if tokens else []
    if score.mean is None:
        return [*beside, MISSING, "–", "–", "–", *share, *verdict, "–"]
    known = {seed: f"{accuracy:.3f}" for seed, accuracy in score.by_seed.items()} | dict.fromkeys(missing, MISSING)
    seeds = ", ".join(f"{seed}: {known[seed]}" for seed in sorted(known))
    interval = f"{score.interval[0]:.3f}–{score.interval[1]:.3f}"
    totals = sorted({row.total for row in score.rows})
    samples = f"{len(score.rows)} × {totals[0]}" if len(totals) == 1 else str(score.samples)
    return [*beside, f"{score.mean:.3f}", seeds, interval, samples, *share, *verdict, _made_by(results, score)]


def _made_by(results: Results, score: Score) -> Words:
    """Links to the entries that say how the runs of a score were made."""
    runs = {row.run[:SHORT] for row in score.rows}
    numbers = [number for number, origin in enumerate(results.evidence.origins, start=1) if runs & origin.short_runs]
    links: list[str | Span] = []
    for number in numbers:
        links += [", "] if links else []
        links.append(Span(str(number), target=f"#{ANCHOR}-{number}"))
    return tuple(links) or "–"
