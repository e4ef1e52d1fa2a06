"""Published studies as pages that lead to each other: an index with every claim and its verdict, and a page for each study,
with its tables beside the numbers of others, and all that a report shows of its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lengthlab.errors import LabError
from lengthlab.experiments import studies
from lengthlab.experiments.study import Section as Part
from lengthlab.report.html import html
from lengthlab.report.html_data import page_data
from lengthlab.report.html_heatmap import heat_tables
from lengthlab.report.html_page import counted, in_one_file, report_of
from lengthlab.report.html_sections import Section, sections
from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.page import Block, Details, Entry, Figure, Heading, Page, Scores, Span, Table, Text, Words, prose
from lengthlab.report.publication import read_results
from lengthlab.report.published_curves import published_curves
from lengthlab.report.results import Results
from lengthlab.report.sources import Sources
from lengthlab.report.study_page import claims_told, opening, section_blocks, verdict_line
from lengthlab.store.rows import FILE, read_rows

INDEX = "report.html"
TITLE = "Published studies"


@dataclass(frozen=True)
class Published:
    """A study with its rows: `results` at the size that its claims are judged at, `found` its runs at every size."""

    results: Results
    found: Sources

    @property
    def name(self) -> str:
        return self.results.study.name

    @property
    def title(self) -> str:
        return self.results.study.title

    @property
    def file(self) -> str:
        """Of its page, beside the index."""
        return f"study-{self.name}.html"

    @property
    def seeds(self) -> str:
        return ", ".join(map(str, self.results.seeds)) or "none"

    @property
    def hardware(self) -> str:
        return "; ".join(dict.fromkeys(str(curve.made["hardware"]) for curve in self.found.curves))

    @property
    def verdicts(self) -> str:
        return verdict_line(self.results) or "none"


@dataclass(frozen=True)
class Site:
    """`problems`: what could not be shown, a line each."""

    studies: tuple[Published, ...]
    problems: tuple[str, ...] = ()


def read_site(folders: Sequence[Path]) -> Site:
    """The studies that these folders have rows of, in the order in which they are registered."""
    places: dict[str, list[Path]] = {}
    for folder in folders:
        for name in dict.fromkeys(row.experiment for row in read_rows(folder / FILE)):
            places.setdefault(name, []).append(folder)
    found, problems = [], [f"no study is called '{name}' here" for name in places if name not in studies()]
    for name, study in studies().items():
        if name not in places:
            continue
        curves, unknown = published_curves(places[name], name)
        problems += unknown
        try:
            results = read_results(study, tuple(map(str, places[name])))
            found.append(Published(results, Sources(tuple(sorted(curves, key=lambda curve: curve.first.seed)))))
        except LabError as error:
            problems.append(f"{name}: {error}")
    return Site(tuple(found), tuple(problems))


def site_files(site: Site, command: str = "") -> dict[str, bytes]:
    """Every page of it, by the name of its file; the same rows give the same bytes."""
    return {INDEX: _index(site), **{study.file: _study(study, command) for study in site.studies}}


def index_page(site: Site) -> Page:
    """The index as blocks, for a terminal."""
    blocks: list[Block] = [_overview(site)]
    for study in site.studies:
        blocks += [Heading(study.title), *_entry(study)]
    return Page(TITLE, (*blocks, *map(Text, site.problems)))


def _overview(site: Site, linked: bool = False) -> Table:
    rows: list[tuple[Words, ...]] = []
    for study in site.studies:
        name = Span(study.name, target=f"#{study.name}" if linked else "")
        runs = f"{len(study.found.curves):,}"
        rows.append((name, study.title, study.verdicts, runs, study.seeds, study.hardware))
    return Table(("study", "title", "claims", "runs", "seeds", "hardware"), tuple(rows))


def _entry(study: Published) -> Iterator[Block]:
    """What is asked, what became of each claim, and on what that rests."""
    results = study.results
    yield Text(prose(results.study.question))
    if results.claims:
        rows = [(row[0], row[2], row[4]) for block in claims_told(results) if isinstance(block, Table) for row in block.rows]
        yield Table(("claim", "verdict", "each seed"), tuple(rows))
    size = results.size
    yield Text(
        (
            f"Trained on n = {size.trained[0]}…{size.trained[1]}, measured to n = {max(size.lengths):,}; "
            f"{counted(len(study.found.curves), 'run')}, seeds {study.seeds}; on {study.hardware}. Again: ",
            Span(f"lengthlab reproduce {study.name}", "code"),
        )
    )


def _index(site: Site) -> bytes:
    runs = sum(len(study.found.curves) for study in site.studies)
    lead = tag("p", f"{len(site.studies)} {'studies' if len(site.studies) != 1 else 'study'} of {counted(runs, 'run')}.")
    parts = [Section("studies", "Studies", joined([html(_overview(site, linked=True)), *map(_problem, site.problems)]))]
    for study in site.studies:
        link = tag("a", "Tables, curves and every run", href=study.file)
        parts.append(Section(study.name, study.title, joined([*map(html, _entry(study)), tag("p", link)])))
    return in_one_file(TITLE, lead, parts, page_data((), {}))


def _problem(text: str) -> Markup:
    return tag("p", text, class_="faint")


def _study(study: Published, command: str) -> bytes:
    report = report_of(study.found, command)
    lead = tag("p", tag("a", TITLE, href=INDEX), f" › {study.name}: {counted(len(report.curves), 'run')}, seeds {study.seeds}.")
    asked = joined(map(html, [*opening(study.results), *claims_told(study.results)]))
    tables = joined(part for section in study.results.sections for part in _tables(study.results, section))
    parts = [Section("claims", "Question and claims", asked), Section("tables", "Tables of the study", tables)]
    return in_one_file(study.title, lead, [*parts, *sections(report)], page_data(report.groups, report.courses))


def _tables(results: Results, section: Part) -> Iterator[Markup]:
    """Its arms in their own order, beside the reference. What is drawn of them can be drawn anew below; every seed is in the
    title of a cell, and every row in the CSV.
    """
    for block in section_blocks(results, section):
        if isinstance(block, (Figure, Details)):
            continue
        if isinstance(block, Scores):
            yield heat_tables(block, results.questions(section))
            yield from _facts(block.entries)
        else:
            yield html(block)


def _facts(entries: Sequence[Entry]) -> Iterator[Markup]:
    """How the training of each arm went, where that is known."""
    if any(entry.facts for entry in entries):
        header = [name for name, _ in (*entries[0].names, *entries[0].facts)]
        rows = [tuple(text for _, text in (*entry.names, *entry.facts)) for entry in entries]
        yield html(Details("How training went", (Table(tuple(header), tuple(rows)),)))
