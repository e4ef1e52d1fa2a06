"""The page of a study, of anybody's: claims with their verdicts, scores beside a reference, every number, and where each comes
from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lengthlab.experiments.study import Section
from lengthlab.report.bins import bins_told
from lengthlab.report.claims import FAILS, HOLDS, Finding
from lengthlab.report.every_number import ANCHOR, every_number
from lengthlab.report.how_far import how_far, over_tasks
from lengthlab.report.page import (
    Block,
    Details,
    Heading,
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
from lengthlab.report.results import Results
from lengthlab.report.scores import MARGIN, MISSING, Series, samples_told, tally
from lengthlab.report.study_entry import entry_of, known_facts, shared_by
from lengthlab.report.study_figure import figure_of
from lengthlab.report.success import success
from lengthlab.report.traces import LEARNED
from lengthlab.store.ids import SHORT
from lengthlab.store.rows import Row


def study_page(results: Results, name: str = "") -> Page:
    """Everything that a reader is shown of a study; `name` is what the user called it by, `my_study.py:STUDY`."""
    blocks: list[Block] = [*opening(results)]
    if results.claims:
        blocks += [Heading("Claims"), *claims_told(results)]
    for section in results.sections:
        blocks += section_blocks(results, section)
    if results.study.far is not None:
        blocks += over_tasks(results, results.study.far)
    blocks += [Heading("Where the numbers come from"), *_origins(results)]
    other = "" if results.size.name == results.study.sizes[0].name else f" --size {results.size.name}"
    return Page(results.study.title, tuple(blocks), f"lengthlab reproduce {name or results.study.name}{other}")


def opening(results: Results) -> Iterator[Block]:
    """The question, and how the numbers that answer it are read."""
    study, (shortest, longest) = results.study, results.size.trained
    yield Text(prose(study.question))
    if study.reference:
        source = study.reference.source
        name = study.reference.name
        yield Text(
            (f"{name[:1].upper()}{name[1:]}: {source.authors}, ", Span(source.title, "emphasis"), f", {source.address}.")
        )
    samples = samples_told(results.rows, "a length and seed") if results.rows else "no samples a length and seed"
    seeds = ", ".join(map(str, results.seeds)) or "none"
    yield Text(
        f"Size {results.size.name}: trained on n = {shortest}…{longest}, measured to n = {max(results.size.lengths)}. Seeds: "
        f"{seeds}{_wanted(results, results.seeds)}; {samples}. A sample is right if every question of its "
        "task is. Numbers are means over seeds of the share of samples that are right. How much seeds differ is the range over "
        "seeds, from the lowest to the highest. Intervals are another thing: Wilson's at 95 %, over the samples of all seeds "
        "together, which are the same samples for every seed."
    )
    if results.size.bins:
        yield Text(bins_told(results.size))
    yield Text(_meanings(results))
    if results.evidence.traces:
        yield Text(_facts_explained(results))
    if study.note:
        yield Text(prose(study.note))
    if results.left_out:
        yield Text(_left_out(results.left_out))


def _wanted(results: Results, seeds: Sequence[int]) -> str:
    """How many the study asks for, where there are fewer."""
    return f", of the {results.study.seeds} that the study asks for" if len(seeds) < results.study.seeds else ""


def _fewer_seeds(results: Results, firsts: Sequence[Series]) -> Iterator[Text]:
    """The seeds of a section, where the page has more and the study asks for more."""
    seeds = sorted({seed for series in firsts for seed in series.seeds})
    if seeds and len(seeds) < min(results.study.seeds, len(results.seeds)):
        yield Text(f"Seeds here: {', '.join(map(str, seeds))}{_wanted(results, seeds)}.")


def _left_out(rows: Sequence[Row]) -> str:
    lengths = ", ".join(map(str, sorted({row.length for row in rows})))
    totals = " or ".join(f"{total:,}" for total in sorted({row.total for row in rows}))
    return f"Left out, because numbers of samples are not mixed: {len(rows)} rows of {totals} samples, at n = {lengths}."


def _meanings(results: Results) -> Words:
    missing = (Span("Missing", "emphasis"), ": not measured, and nothing is put in its place.")
    if not results.study.reference:
        return missing
    name = results.study.reference.name
    agrees = (Span("Agrees", "emphasis"), f": within {MARGIN:.2f} of {name}. ")
    return (*agrees, Span("Silent", "emphasis"), f": {name} has no number there. ", *missing)


def _facts_explained(results: Results) -> Words:
    timed = results.step_seconds(results.study.arms) is not None
    beside = results.baseline_seconds is not None
    cost = f"; in brackets, how many times that of “{_baseline(results)}” on the same kind of machine" if beside else ""
    return (
        Span("Parameters", "emphasis"),
        ": the numbers that a model learns. ",
        Span("Steps", "emphasis"),
        ": of training, in all. ",
        Span("Opened", "emphasis"),
        ": the step at which everything was on. ",
        Span("Plateau", "emphasis"),
        f": joint steps until the training loss had come below {LEARNED}. ",
        *((Span("Ms a step", "emphasis"), f": with everything on, timed alone{cost}. ") if timed else ()),
        "Means over seeds.",
    )


def _baseline(results: Results) -> str:
    """How a reader knows it; of arms that share the name, by what they share."""
    arm = next(arm for arm in results.study.arms if arm.name == results.study.baseline)
    return ", ".join(text for _, text in arm.about) or str(arm)


def claims_told(results: Results) -> Iterator[Block]:
    """Every claim with its verdict."""
    medians = ", or by their medians where that is said" if _by_medians(results) else ""
    yield Text(f"By the means over seeds{medians}, and what each seed says alone.")
    rows = [_finding(results, finding) for finding in results.findings()]
    yield Table(("claim", "checked as", "verdict", "evidence", "each seed"), tuple(rows))


def _by_medians(results: Results) -> bool:
    """Whether a claim is judged by the median of seeds."""
    return any(claim.by == "median" for claim in results.claims)


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


def section_blocks(results: Results, section: Section) -> Iterator[Block]:
    """A part of a study: its figure, its scores, every number."""
    questions = results.questions(section)
    entries = known_facts([entry_of(results, section, arm, questions) for arm in section.arms])
    firsts = [entry.series[0] for entry in entries]
    reference = results.study.reference.name if results.study.reference else ""
    size = section.at(results.size) or results.size
    yield Heading(section.title)
    if section.text:
        yield Text(prose(section.text))
    if (size.trained, size.lengths) != (results.size.trained, results.size.lengths):
        yield Text(
            f"Trained on n = {size.trained[0]}…{size.trained[1]}, measured to n = {max(size.lengths)}. {bins_told(size)}"
        )
    shared = ", ".join(f"{column} {word}" for column, word in shared_by(section.arms).items())
    if shared:
        yield Text(f"Every arm: {shared}.")
    if reference:
        yield Text(f"{tally(firsts)}.")
    yield from _fewer_seeds(results, firsts)
    scores = Scores(entries, size.shown, size.trained, reference)
    if any(series.seeds for series in firsts) and (section.figure or len(size.shown) > 1):  # one length alone is no curve
        yield figure_of(results, section, scores)
    yield scores
    if results.study.success is not None:
        yield from success(entries, size, results.study.success, reference, medians=_by_medians(results))
    if results.study.far is not None:
        yield from how_far(entries, size, results.study.far)
    yield Details("Every number, with seeds, interval, samples and origin", (every_number(results, entries, reference),))


def _origins(results: Results) -> Iterator[Block]:
    """Where numbers come from, an entry for each command and machine."""
    origins = results.evidence.origins
    if not origins:
        yield Text("No rows, or rows without a provenance.")
        return
    if len({run for origin in origins for run in origin.runs}) < sum(len(origin.runs) for origin in origins):
        yield Text(
            "Some runs are in several entries, and so are their seconds: a command counts the runs that it found in its store. "
            "Where one was trained twice, what both entries publish of a length is the same."
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
