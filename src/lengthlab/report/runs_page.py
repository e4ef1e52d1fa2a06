"""The page of plain runs: which setting is best, all of them in one table, every number, where they come from, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lengthlab.errors import cut
from lengthlab.report.best import RULE, Best, best_of, sentence
from lengthlab.report.curves import Curve
from lengthlab.report.page import Block, Curves, Details, Entry, Heading, Page, Scores, Span, Table, Text, Words
from lengthlab.report.scores import GOOD, Score, samples_told, usual_total
from lengthlab.report.setting import Setting, alike, settings_of
from lengthlab.store.rows import ALL
from lengthlab.store.settings import described

LONGEST = 300
"""Signs of a task with all that it is made with."""


def runs_page(curves: Sequence[Curve], each_seed: bool = False, details: bool = True) -> Page:
    """What is shown of runs; `each_seed` shows every seed beside the range over them. `details`: with what is folded away or
    drawn, which a terminal shows nothing of.
    """
    groups = alike(settings_of(curves))
    blocks: list[Block] = []
    for number, group in enumerate(groups):
        if len(groups) > 1:
            blocks.append(Heading(_kind(group)))
        blocks += _group(group, each_seed)
        if details:
            blocks += _details(group, f"accuracy-{number + 1}" if len(groups) > 1 else "accuracy")
    return Page("Accuracy by length", (*blocks, *(Text(line) for line in provenance(curves))))


def _group(settings: Sequence[Setting], each_seed: bool) -> list[Block]:
    """Settings that can be compared: the answer, the overview. Numbers on other numbers of samples than usual weigh more or
    less, and stand in tables of their own.
    """
    curves = [curve for setting in settings for curve in setting.curves]
    usual = usual_total(row for curve in curves for row in curve.rows)
    blocks = _answer(_on(settings, usual), each_seed)
    for samples in sorted({total for curve in curves for total in curve.samples.values()} - {usual}, reverse=True):
        blocks += [Text(f"On {samples:,} samples, not {usual:,}:"), _scores(_on(settings, samples), each_seed)]
    return blocks


def _details(settings: Sequence[Setting], name: str) -> list[Block]:
    """Every number, the runs they come from, the figure."""
    words = "Every number: range over seeds, Wilson's interval at 95 % over the samples of all seeds"
    origins = Details("Where they come from", (_origins(settings),))
    return [Details(words, (_numbers(settings),)), origins, _figure(settings, name)]


def _on(settings: Sequence[Setting], samples: int) -> list[Setting]:
    return [kept for setting in settings if (kept := setting.on(samples))]


def _answer(settings: Sequence[Setting], each_seed: bool) -> list[Block]:
    best = best_of(settings)
    blocks: list[Block] = [Text(Span(sentence(best), "strong"))]
    if len(settings) > 1:
        blocks += [Text(RULE), _overview(best)]
    return [*blocks, _scores(settings, each_seed)]


def _scores(settings: Sequence[Setting], each_seed: bool) -> Scores:
    lengths = sorted({length for setting in settings for length in setting.lengths})
    return Scores(tuple(map(_entry, settings)), tuple(lengths), settings[0].first.trained, each_seed=each_seed)


def _kind(group: Sequence[Setting]) -> str:
    curve = group[0].first
    return f"{curve.first.task}, trained on n = {curve.trained[0]}…{curve.trained[1]}"


def _overview(best: Best) -> Table:
    """A row a setting, the best first: how far it reaches, and the means over seeds of what counts."""
    lengths = sorted({length for setting in best.ranked for length in setting.lengths})
    rows = []
    for setting in best.ranked:
        name: Words = Span(setting.name, "strong") if setting in best.settings else setting.name
        reach = f"{setting.reach}" if setting.reach else "–"
        rows.append((name, reach, *(_cell(setting.series[0].at(length)) for length in lengths)))
    return Table(("setting", "reach", *(f"n={length}" for length in lengths)), tuple(rows))


def _cell(score: Score) -> Words:
    if score.mean is None:
        return "–"
    return Span(f"{score.mean:.3f}", "good" if score.mean > GOOD else "")


def _numbers(settings: Sequence[Setting]) -> Table:
    """A row for each setting, question and length."""
    several = [setting.first.first.tokens is not None for setting in settings]
    header = ("setting", "question", "n", "mean", "each seed", "range", "interval", "samples", *(["tokens"] * any(several)))
    rows = [
        (setting.name, series.question, str(score.length), *_row(score, any(several)))
        for setting in settings
        for series in setting.series
        for score in series.scores
        if score.rows
    ]
    return Table(header, tuple(rows))


def _row(score: Score, tokens: bool) -> list[str]:
    seeds = ", ".join(f"{seed}: {accuracy:.3f}" for seed, accuracy in sorted(score.by_seed.items()))
    ends = [score.spread, score.interval]
    spread, interval = ["–" if each is None else f"{each[0]:.3f}–{each[1]:.3f}" for each in ends]
    share = ["–" if score.tokens is None else f"{score.tokens:.3f}"] if tokens else []
    return [f"{score.mean or 0.0:.3f}", seeds, spread, interval, f"{score.samples:,}", *share]


def _origins(settings: Sequence[Setting]) -> Table:
    """Which run a seed is, and how it was made."""
    rows: list[tuple[Words, ...]] = []
    for setting in settings:
        for curve in setting.curves:
            made, run = curve.made, Span(curve.first.run, "code")
            told = (
                str(made["commit"] or "–"),
                f"{made['steps']:,}",
                f"{made['seconds']:,.0f}",
                made["precision"],
                made["date"],
            )
            rows.append((setting.name, str(curve.first.seed), run, *told))
    return Table(("setting", "seed", "run", "commit", "steps", "seconds", "precision", "date"), tuple(rows))


def _entry(setting: Setting) -> Entry:
    return Entry((("setting", setting.name),), setting.series)


def _figure(settings: Sequence[Setting], name: str) -> Curves:
    lengths = tuple(sorted({length for setting in settings for length in setting.lengths}))
    curve = settings[0].first
    chance = {
        question: {n: share for n in lengths if (share := curve.chance_at(n, question)) is not None}
        for question in curve.questions
    }
    return Curves(
        tuple(map(_entry, settings)),
        lengths,
        curve.trained,
        name=name,
        title="Accuracy by length",
        chance=chance,
    )


def provenance(curves: Sequence[Curve]) -> list[str]:
    """What a reader must know to trust the numbers."""
    seeds = sorted({curve.first.seed for curve in curves})
    trained = sorted(f"{shortest}…{longest}" for shortest, longest in {curve.trained for curve in curves})
    kinds = {(curve.first.task, str(curve.chance.get(ALL)), *curve.lengths): curve for curve in curves}
    chance = sorted({f"{curve.first.task}: {_chance(curve)}" for curve in kinds.values()})
    made = sorted({f"{curve.made['hardware']}, torch {curve.made['versions']['torch']}" for curve in curves})
    tasks = sorted(
        {cut(described(curve.content["task"]), LONGEST) for curve in curves if isinstance(curve.content.get("task"), Mapping)}
    )
    return [
        *(f"Task: {task}." for task in tasks),
        f"Training lengths n = {', '.join(trained)}. Seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.",
        f"{samples_told(row for curve in curves for row in curve.rows)}.",
        f"Every question right by chance: {', '.join(chance)}.",
        f"Made on {'; '.join(made)}.",
    ]


def _chance(curve: Curve) -> str:
    shares = [share for length in curve.lengths if (share := curve.chance_at(length, ALL)) is not None]
    ends = list(dict.fromkeys(f"{share:.3g}" for share in (max(shares), min(shares)))) if shares else ["not known"]
    return " to ".join(ends)
