"""The reproduction as a Markdown page: claims, tables beside the paper's, every number, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from lengthlab.paper.cells import GREEN, LENGTHS, NOTATION, TITLES, TRAINED
from lengthlab.paper.values import SOURCE
from lengthlab.report.comparison import DIFFERS, MARGIN, MISSING, Entry, Line, summary
from lengthlab.report.markdown import accuracy_mark, table_row
from lengthlab.report.provenance import Making, makers_of
from lengthlab.report.readings import readings_markdown
from lengthlab.report.results import Results


def page(results: Results, pictures: str = "") -> str:
    """The whole page; `pictures` is the way from the page to the folder of the figures, with a slash at its end."""
    lines = [*_opening()]
    if results.tables:
        lines += _claims(results)
    for part in results.tables:
        lines += _part(results, part, pictures)
    if "readings" in results.parts:
        lines += _readings(results)
    return "\n".join([*lines, *made_lines(results.made, {row.run for row in results.rows})]) + "\n"


def _opening() -> Iterator[str]:
    yield "# The paper, reproduced"
    yield ""
    yield "Written by `lengthlab reproduce dat`; what is changed here by hand is lost with the next time."
    yield ""
    yield f"Paper: {SOURCE}."
    yield ""
    yield (
        f"Every architecture is trained on n = {TRAINED[0]}…{TRAINED[1]} pairs and measured to n = {LENGTHS[-1]}. A sample is "
        "right if every question of its task is. *Ours* is the mean over seeds. The interval is Wilson's at 95 %, over the "
        "samples of all seeds together; every seed answers the same samples, and how much seeds differ is not in it, so each "
        f"seed is shown. *Agrees*: within {MARGIN:.2f} of the paper. *Paper silent*: its text has no number there. *Missing*: "
        "not measured, and nothing is put in its place."
    )


def _claims(results: Results) -> Iterator[str]:
    yield from ("", "## Claims", "", "By the means over seeds, and what each seed says alone.", "")
    yield table_row("the paper", "checked as", "verdict", "evidence", "each seed")
    yield table_row(*["---"] * 5)
    for finding in results.findings:
        claim = finding.claim
        seeds = ", ".join(f"{seed}: {verdict}" for seed, verdict in results.verdicts_by_seed(claim).items()) or "–"
        words = f"{TITLES[claim.part]}: “{claim.words}”"
        yield table_row(words, claim.checked, f"**{finding.verdict}**", finding.evidence, seeds)


def _part(results: Results, part: str, pictures: str) -> Iterator[str]:
    lines = results.lines(part)
    yield from ("", f"## {TITLES[part]}: {lines[0].cell.task}", "", f"{summary(lines)}.", "")
    if any(line.seeds for line in lines):
        yield from (f"![{TITLES[part]}, ours: accuracy by architecture and length]({pictures}{part}.svg)", "")
    yield from _overview(lines)
    yield from ("", "<details><summary>Every number, with seeds, interval, samples and origin</summary>", "")
    yield from _details(results, lines)
    yield from ("", "</details>")


def _overview(lines: Sequence[Line]) -> Iterator[str]:
    """A line for each cell: ours, and the paper's in brackets."""
    silent = all(entry.paper is None for line in lines for entry in line.entries)
    marks = "" if silent else f", the paper's in brackets; ≠ where they are more than {MARGIN:.2f} apart"
    yield from (f"Ours{marks}. Bold: above {GREEN:.2f}.", "")
    yield table_row("model", "training", *(f"n={length}" for length in LENGTHS), "seeds")
    yield table_row(*["---"] * (3 + len(LENGTHS)))
    for line in lines:
        name = f"{line.cell.model} ({NOTATION[line.cell.model]})"
        yield table_row(name, line.cell.training, *(_brief(entry) for entry in line.entries), _seeds(line))


def _seeds(line: Line) -> str:
    there, missing = (", ".join(map(str, seeds)) for seeds in (line.seeds, line.missing))
    return f"{there}; {missing} {MISSING}" if missing else there or "–"


def _brief(entry: Entry) -> str:
    if entry.ours is None:
        return "missing"
    paper = "" if entry.paper is None else f" ({entry.paper:.2f})"
    return f"{accuracy_mark(entry.ours, 2)}{paper}{' ≠' if entry.verdict == DIFFERS else ''}"


def _details(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    yield table_row("model", "training", "n", "paper", "ours", "each seed", "interval", "samples", "verdict", "made by")
    yield table_row(*["---"] * 10)
    for line in lines:
        for entry in line.entries:
            numbers = _numbers(results, entry, line.missing)
            yield table_row(line.cell.model, line.cell.training, str(entry.length), *numbers)


def _numbers(results: Results, entry: Entry, missing: Sequence[int]) -> list[str]:
    paper = "–" if entry.paper is None else f"{entry.paper:.2f}"
    if entry.ours is None:
        return [paper, "–", "–", "–", "–", entry.verdict, "–"]
    said = {seed: f"{accuracy:.3f}" for seed, accuracy in entry.by_seed.items()} | dict.fromkeys(missing, MISSING)
    seeds = ", ".join(f"{seed}: {said[seed]}" for seed in sorted(said))
    interval = f"{entry.interval[0]:.3f}–{entry.interval[1]:.3f}"
    totals = sorted({row.total for row in entry.rows})
    samples = f"{len(entry.rows)} × {totals[0]}" if len(totals) == 1 else str(entry.samples)
    makers = makers_of(results.made, (row.run for row in entry.rows))
    return [paper, f"{entry.ours:.3f}", seeds, interval, samples, entry.verdict, makers]


def _readings(results: Results) -> Iterator[str]:
    yield from ("", "## Readings", "")
    yield (
        "What the paper leaves open, read in several ways: how many LSTMs the hybrid block has, what is off while attention is "
        "delayed, what the recurrence is asked then. Delayed, modulo-recall; both right with the interval, then modulo and "
        f"recall alone. Bold: above {GREEN:.2f}. In profile short the first line of each model is the reading of Figure 1; "
        "here all are trained by one recipe, the plainest, so that nothing but the reading differs."
    )
    yield ""
    yield from readings_markdown(results)


def made_lines(made: Sequence[Making], shown: Set[str]) -> Iterator[str]:
    """Where numbers come from, an entry for each command and machine; `shown`: the runs whose numbers they are."""
    yield from ("", "## Where the numbers come from", "")
    if not made:
        yield "No rows, or rows without a provenance."
    if len({run for making in made for run in making.runs}) < sum(len(making.runs) for making in made):
        yield from (
            "Some runs are in several entries, and so are their seconds: a command counts the runs that it found in its store, "
            "and what was trained twice came to the same rows.",
            "",
        )
    for number, making in enumerate(made, start=1):
        versions = ", ".join(f"{name} {version}" for name, version in sorted(making.versions.items()))
        yield (
            f'{number}. <a id="made-{number}"></a>`{making.command}`, commit `{making.commit}`, profile {making.profile}, '
            f"{_runs(making, shown)}, {making.seconds:,.0f} seconds of training in all, "
            f"steps in {making.precision}, "
            f"on {making.hardware}; {versions}; {making.date}."
        )


def _runs(making: Making, shown: Set[str]) -> str:
    every, here = len(making.runs), len(shown & set(making.runs))
    return f"{every} run{'s' if every != 1 else ''}" + (f" ({here} of them on this page)" if here < every else "")
