"""The section "Why" of report.html: of every run that `lengthlab why` has looked into, the paragraph, and its tables folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lengthlab.errors import LabError, explain
from lengthlab.report.compared import Compared
from lengthlab.report.curves import Curve
from lengthlab.report.html import html
from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.page import Block, Details, Heading, Text
from lengthlab.report.why_page import foretold_table, why_blocks
from lengthlab.store.diagnosis import Diagnosis, read_diagnosis

FULL = 50
"""Runs whose tables are shown: those of the best settings first. Of the others there is what a line of a table has, so that a
page of many stays small."""

Diagnoses = Mapping[str, Diagnosis]
"""By run."""


def read_diagnoses(curves: Sequence[Curve]) -> tuple[dict[str, Diagnosis], list[str]]:
    """What is kept beside runs, and a line for each file that is none."""
    found: dict[str, Diagnosis] = {}
    problems = []
    for curve in curves:
        try:
            kept = read_diagnosis(curve.folder)
        except (LabError, OSError) as error:
            problems.append(explain(error))
            continue
        if kept is not None:
            found[curve.first.run] = kept
    return found, problems


def why_section(groups: Sequence[Compared], diagnoses: Diagnoses) -> Markup:
    """Nothing where no run was looked into."""
    named = list(_named(groups, diagnoses))
    if not named:
        return Markup("")
    table = [html(block) for block in foretold_table(named)] if any(found.breakings for _, found in named) else []
    shown = [_run(name, found) for name, found in named[:FULL]]
    more = len(named) - len(shown)
    rest = [html(Text(f"Of {more:,} more runs: lengthlab why RUN shows what is kept beside them."))] if more > 0 else []
    return joined([*shown, *rest, *table])


def _named(groups: Sequence[Compared], diagnoses: Diagnoses) -> Iterator[tuple[str, Diagnosis]]:
    for group in groups:
        for setting in group.settings:
            for curve in setting.curves:
                if curve.first.run in diagnoses:
                    yield f"{setting.name}, seed {curve.first.seed}", diagnoses[curve.first.run]


def _run(name: str, found: Diagnosis) -> Markup:
    words, *rest = why_blocks(found)
    folded = tag("details", tag("summary", f"{name}: every number"), *map(_block, rest))
    return tag("div", tag("h3", name), html(words), folded, class_="diagnosis")


def _block(block: Block) -> Markup:
    """Headings lie one deeper here."""
    if isinstance(block, Heading):
        return tag("h4", block.text)
    if isinstance(block, Details):
        return tag("details", tag("summary", block.summary), *map(_block, block.blocks))
    return html(block)
