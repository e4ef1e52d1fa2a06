"""The page of plain runs: their table, where they come from, and curves; the rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from lengthlab.report.curves import Curve
from lengthlab.report.page import Block, Curves, Entry, Page, Span, Table, Text, Words
from lengthlab.report.scores import GOOD, Score, Series, one_a_seed, samples_told
from lengthlab.store.rows import ALL, NAMES, Row

BAD = 0.6
"""Red below this."""


def runs_page(curves: Sequence[Curve], intervals: bool = False) -> Page:
    """What is shown of runs; with `intervals`, a Wilson interval in every cell of the table, and the ids of the runs."""
    blocks: list[Block] = [_table(curves, intervals), *(Text(line) for line in provenance(curves)), *_figures(curves)]
    return Page("Accuracy by length", tuple(blocks))


def names_of(curves: Sequence[Curve]) -> list[str]:
    """The columns that tell runs apart: the task where there are several, the id where nothing else does."""
    names = ["model", "training", "seed"]
    if len({curve.first.task for curve in curves}) > 1:
        names.insert(0, "task")
    told = {tuple(getattr(curve.first, name) for name in names) for curve in curves}
    return names if len(told) == len(curves) else [*names, "run"]


def _table(curves: Sequence[Curve], intervals: bool) -> Table:
    """A row for each run and question; what a row says again is left out."""
    lengths = sorted({length for curve in curves for length in curve.lengths})
    named = [name for name in names_of(curves) if not (intervals and name == "run")]
    rows = []
    for curve in curves:
        for place, question in enumerate(curve.questions):
            names = [str(getattr(curve.first, name)) if intervals or place == 0 else "" for name in named]
            found = [curve.row(length, question) for length in lengths]
            run = (Span(curve.first.run, "code"),) if intervals else ()
            rows.append((*names, question, *(_cell(row, intervals) for row in found), *run))
            if any(row and row.tokens is not None for row in found):
                again = names if intervals else [""] * len(names)
                rows.append((*again, f"{question}, tokens", *map(_tokens, found), *run))
    header = (*named, "right", *(f"n={length}" for length in lengths), *(("run",) if intervals else ()))
    return Table(header, tuple(rows))


def _cell(row: Row | None, interval: bool) -> Words:
    if row is None:
        return "–"
    if interval:
        return f"{row.accuracy:.3f} ({row.interval[0]:.3f}–{row.interval[1]:.3f})"
    return Span(f"{row.accuracy:.3f}", "good" if row.accuracy > GOOD else "bad" if row.accuracy < BAD else "")


def _tokens(row: Row | None) -> str:
    return "–" if row is None or row.tokens is None else f"{row.token_accuracy:.3f}"


def provenance(curves: Sequence[Curve]) -> list[str]:
    """What a reader must know to trust the table."""
    seeds = sorted({curve.first.seed for curve in curves})
    trained = sorted({f"{curve.trained[0]}…{curve.trained[1]}" for curve in curves})
    chance = sorted({f"{curve.first.task}: {_chance(curve)}" for curve in curves})
    made = sorted({f"{curve.made['hardware']}, torch {curve.made['versions']['torch']}" for curve in curves})
    return [
        f"Training lengths n = {', '.join(trained)}. Seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.",
        f"{samples_told(row for curve in curves for row in curve.rows)}. Intervals are Wilson's at 95 %, over the samples of a "
        "cell; how much seeds differ is in their own rows.",
        f"Every question right by chance: {', '.join(chance)}.",
        f"Made on {'; '.join(made)}.",
    ]


def _chance(curve: Curve) -> str:
    shares = [share for length in curve.lengths if (share := curve.chance_at(length, ALL)) is not None]
    ends = list(dict.fromkeys(f"{share:.3g}" for share in (max(shares), min(shares)))) if shares else ["not known"]
    return " to ".join(ends)


def _figures(curves: Sequence[Curve]) -> list[Curves]:
    """Curves; a figure for each task, chance and training range where there are several."""
    kinds: dict[str, list[Curve]] = {}
    for curve in curves:
        kinds.setdefault(
            f"-{curve.first.task}-{_chance(curve).replace(' ', '-')}-{curve.trained[0]}-{curve.trained[1]}", []
        ).append(curve)
    figures: dict[str, Curves] = {}
    for kind, group in kinds.items():
        name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in kind) if len(kinds) > 1 else ""
        taken = sum(other == name or other.startswith(f"{name}~") for other in figures)
        name += f"~{taken + 1}" if taken else ""
        figures[name] = _figure(group, f"accuracy{name}")
    return list(figures.values())


def _figure(curves: Sequence[Curve], name: str) -> Curves:
    lengths = tuple(sorted({length for curve in curves for length in curve.lengths}))
    chance = {
        question: {n: share for n in lengths if (share := curves[0].chance_at(n, question)) is not None}
        for question in curves[0].questions
    }
    entries = tuple(_entries(curves))
    return Curves(entries, lengths, curves[0].trained, name=name, title="Accuracy by length", chance=chance)


def _entries(curves: Sequence[Curve]) -> list[Entry]:
    """Runs that differ in their seed alone are one entry; where names do not tell two apart, their settings do."""
    groups: dict[tuple[str, str, str], list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: (curve.first.training, curve.first.model)):
        groups.setdefault((curve.first.model, curve.first.training, str(curve.made["settings"])), []).append(curve)
    named = [key[:2] for key in groups]
    entries = []
    for (model, training, settings), group in groups.items():
        more = (("settings", settings[:6]),) if named.count((model, training)) > 1 else ()
        series = [_series(group, question) for question in curves[0].questions]
        entries.append(Entry((("model", model), ("training", training), *more), tuple(series)))
    return entries


def _series(group: Sequence[Curve], question: str) -> Series:
    lengths = sorted({length for curve in group for length in curve.lengths})
    scores = [Score(n, one_a_seed(row for curve in group if (row := curve.row(n, question)))) for n in lengths]
    return Series(question, tuple(scores))


def as_csv(curves: Sequence[Curve]) -> str:
    """One line for each run, length and question, with the field names of published rows, the interval and, where answers
    have several tokens, the share of those that are right.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*NAMES, "accuracy", "low", "high", "token_accuracy"])
    for curve in curves:
        for row in curve.rows:
            numbers = [f"{number:.4f}" for number in (row.accuracy, *row.interval)]
            tokens = "" if row.tokens is None else f"{row.token_accuracy:.4f}"
            writer.writerow([*(getattr(row, name) for name in NAMES), *numbers, tokens])
    return text.getvalue()
