"""The page of a study, of anybody's: claims with their verdicts, scores beside a reference, every number, and where each comes
from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lengthlab.experiments.study import Arm, Section
from lengthlab.report.claims import FAILS, HOLDS, Finding
from lengthlab.report.every_number import ANCHOR, every_number
from lengthlab.report.page import (
    Block,
    Curves,
    Details,
    Entry,
    Heading,
    Heatmap,
    Numbered,
    Page,
    Scores,
    Span,
    Table,
    Text,
    Words,
    prose,
)
from lengthlab.report.provenance import Origin
from lengthlab.report.results import Results, arm_of
from lengthlab.report.scores import MARGIN, MISSING, Score, Series, one_a_seed, tally
from lengthlab.report.traces import LEARNED
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import Row

FEW = 6
"""So many arms can be told apart as curves; more are drawn as a heat map, and so is what stands beside a reference."""
GROUPS = 3
"""Arms stand in groups by their training where there are no more trainings than this."""
FACTS = ("steps", "opened", "plateau", "ms a step")


def study_page(results: Results, name: str = "") -> Page:
    """Everything that a reader is shown of a study; `name` is what the user called it by, `my_study.py:STUDY`."""
    blocks: list[Block] = [*_opening(results)]
    if results.claims:
        blocks += [Heading("Claims"), *_claims(results)]
    for section in results.sections:
        blocks += _section(results, section)
    blocks += [Heading("Where the numbers come from"), *_origins(results)]
    return Page(results.study.title, tuple(blocks), f"lengthlab reproduce {name or results.study.name}")


def _opening(results: Results) -> Iterator[Block]:
    study, (shortest, longest) = results.study, results.size.trained
    yield Text(prose(study.question))
    if study.reference:
        source = study.reference.source
        name = study.reference.name
        yield Text(
            (f"{name[:1].upper()}{name[1:]}: {source.authors}, ", Span(source.title, "emphasis"), f", {source.address}.")
        )
    totals = sorted({row.total for row in results.rows})
    samples = " or ".join(f"{total:,}" for total in totals) or "no"
    seeds = ", ".join(map(str, results.seeds)) or "none"
    yield Text(
        f"Size {results.size.name}: trained on n = {shortest}…{longest}, measured to n = {max(results.size.lengths)}. Seeds: "
        f"{seeds}; {samples} samples a length and seed. A sample is right if every question of its task is. Numbers are means "
        "over seeds of the share of samples that are right; intervals are Wilson's at 95 %, over the samples of all seeds "
        "together: every seed answers the same samples, and how much seeds differ is not in them, so each seed is shown."
    )
    yield Text(_meanings(results))
    if results.evidence.traces:
        yield Text(_facts_explained(results))
    if study.note:
        yield Text(prose(study.note))
    if study.beside and results.beside:
        yield Text(prose(study.beside.note))


def _meanings(results: Results) -> Words:
    missing = (Span("Missing", "emphasis"), ": not measured, and nothing is put in its place.")
    if not results.study.reference:
        return missing
    name = results.study.reference.name
    agrees = (Span("Agrees", "emphasis"), f": within {MARGIN:.2f} of {name}. ")
    return (*agrees, Span("Silent", "emphasis"), f": {name} has no number there. ", *missing)


def _facts_explained(results: Results) -> Words:
    cost = f"; in brackets, how many times that of “{results.study.baseline}”" if results.baseline_seconds else ""
    return (
        Span("Steps", "emphasis"),
        ": of training, in all. ",
        Span("Opened", "emphasis"),
        ": the step at which everything was on. ",
        Span("Plateau", "emphasis"),
        f": joint steps until the training loss had come below {LEARNED}. ",
        Span("Ms a step", "emphasis"),
        f": with everything on, timed alone{cost}. Means over seeds.",
    )


def _claims(results: Results) -> Iterator[Block]:
    yield Text("By the means over seeds, and what each seed says alone.")
    rows = [_finding(results, finding) for finding in results.findings()]
    yield Table(("claim", "checked as", "verdict", "evidence", "each seed"), tuple(rows))


def _finding(results: Results, finding: Finding) -> tuple[Words, ...]:
    by_seed = results.verdicts_by_seed(finding.claim)
    seeds = ", ".join(f"{seed}: {verdict}" for seed, verdict in by_seed.items()) or "–"
    mark = {HOLDS: "good", FAILS: "bad"}.get(finding.verdict, "strong")
    verdict = Span(finding.verdict, mark)  # type: ignore[arg-type]
    return finding.claim.words, finding.claim.checked, verdict, finding.evidence, seeds


def verdict_line(results: Results) -> str:
    """What became of the claims, in one line."""
    verdicts = [finding.verdict for finding in results.findings()]
    counts = {verdict: verdicts.count(verdict) for verdict in (HOLDS, FAILS, MISSING)}
    return ", ".join(f"{counts[verdict]} × {verdict}" for verdict in counts if counts[verdict])


def _section(results: Results, section: Section) -> Iterator[Block]:
    questions = results.questions(section)
    entries = tuple(_entry(results, section, arm, questions) for arm in section.arms)
    firsts = [entry.series[0] for entry in entries]
    reference = results.study.reference.name if results.study.reference else ""
    yield Heading(section.title)
    if section.text:
        yield Text(prose(section.text))
    if reference:
        yield Text(f"{tally(firsts)}.")
    shared = (entries, results.size.lengths, results.size.trained, reference)
    if any(series.seeds for series in firsts):
        yield _figure(results, section, shared)
    yield Scores(*shared)
    yield Details("Every number, with seeds, interval, samples and origin", (every_number(results, entries, reference),))


def _entry(results: Results, section: Section, arm: Arm, questions: Sequence[str]) -> Entry:
    """What tells an arm from the others of its section, how its training went, and its scores."""
    arms, own = section.arms, {"arm": arm.name, "task": arm.task, "model": arm.model}
    if all(other.name == section.name for other in arms):
        own.pop("arm")
    if len({other.task for other in arms}) == 1:
        own.pop("task")
    trainings = {other.training for other in arms}
    about = dict.fromkeys((column for other in arms for column, _ in other.about), "")  # every arm has every column
    names = (*own.items(), *(about | dict(arm.about)).items(), ("training", arm.training))
    series = tuple(results.series(arm, question, section) for question in questions)
    traced = any(results.traces(other) for other in arms)
    facts = tuple(zip(FACTS, _facts(results, arm), strict=True)) if traced else ()
    return Entry(names, series, facts, arm.training if len(trainings) <= GROUPS else "")


def _facts(results: Results, arm: Arm) -> list[str]:
    """Steps, when all was on, and how long its loss stayed up; a seed that never learned is counted apart."""
    traces = results.traces(arm)
    if not traces:
        return ["–"] * len(FACTS)
    plateaus = [trace.plateau_steps for trace in traces if trace.plateau_steps is not None]
    rest = len(traces) - len(plateaus)
    never = f"{rest} of {len(traces)} to the end" if rest else ""
    steps, opened = _mean([trace.steps for trace in traces]), _mean([trace.opened for trace in traces])
    return [steps, opened, "; ".join(filter(None, (_mean(plateaus), never))), _cost(results, arm)]


def _mean(numbers: Sequence[int]) -> str:
    return f"{sum(numbers) / len(numbers):,.0f}" if numbers else ""


def _cost(results: Results, arm: Arm) -> str:
    own, baseline = results.step_seconds([arm]), results.baseline_seconds
    if own is None:
        return "–"
    return f"{1000 * own:.2f}" + (f" (×{own / baseline:.2f})" if baseline else "")


def _figure(
    results: Results, section: Section, shared: tuple[tuple[Entry, ...], tuple[int, ...], tuple[int, int], str]
) -> Block:
    title = section.title if len(results.study.sections) > 1 else results.study.title
    alt = f"{title}: accuracy by arm and length"
    if len(section.arms) > FEW or shared[-1]:
        return Heatmap(*shared, name=section.name, title=title, alt=alt)
    return Curves(*shared, name=section.name, title=title, alt=alt, beside=_beside(results))


def _beside(results: Results) -> tuple[Entry, ...]:
    """Each arm of the study beside this one that has rows, under the name of its kind."""
    beside = results.study.beside
    found = []
    for arm in beside.arms if beside else ():
        rows = [row for row in results.beside if arm_of(row) == arm]
        questions = dict.fromkeys(row.question for row in rows)
        series = [Series(question, _scores_of(row for row in rows if row.question == question)) for question in questions]
        if beside and series:
            names = (("beside", beside.label), ("training", arm.training.replace("-", " ")))
            found.append(Entry(names, tuple(series), group=arm.training))
    return tuple(found)


def _scores_of(rows: Iterable[Row]) -> tuple[Score, ...]:
    by_length: dict[int, list[Row]] = {}
    for row in rows:
        by_length.setdefault(row.length, []).append(row)
    return tuple(Score(length, one_a_seed(by_length[length])) for length in sorted(by_length))


def _origins(results: Results) -> Iterator[Block]:
    """Where numbers come from, an entry for each command and machine."""
    origins = results.evidence.origins
    if not origins:
        yield Text("No rows, or rows without a provenance.")
        return
    if len({run for origin in origins for run in origin.runs}) < sum(len(origin.runs) for origin in origins):
        yield Text(
            "Some runs are in several entries, and so are their seconds: a command counts the runs that it found in its store, "
            "and what was trained twice came to the same rows."
        )
    shown = {row.run[:SHORT] for row in results.rows}
    yield Numbered(tuple(_origin(origin, shown) for origin in origins), ANCHOR)


def _origin(origin: Origin, shown: set[str]) -> Words:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(origin.versions.items()))
    every, here = len(origin.runs), len(shown & origin.short_runs)
    runs = f"{every} run{'s' if every != 1 else ''}" + (f" ({here} of them on this page)" if here < every else "")
    return (
        Span(origin.command, "code"),
        ", commit ",
        Span(origin.commit, "code"),
        f", size {origin.size}, {runs}, {origin.seconds:,.0f} seconds of training in all, steps in {origin.precision}, on "
        f"{origin.hardware}; {versions}; {origin.date}.",
    )
