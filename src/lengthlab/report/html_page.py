"""A report as one HTML file that opens from disk: no server, no network, nothing beside it. What it says stands in it without
its script; the script sorts, filters, picks and draws anew. Served live it is the same page, with script and style beside it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from lengthlab.report.compared import compared
from lengthlab.report.course import course_of, points_each
from lengthlab.report.html_data import page_data
from lengthlab.report.html_sections import Report, Section, sections, without_numbers
from lengthlab.report.markup import Markup, embedded, joined, tag
from lengthlab.report.sources import Sources
from lengthlab.report.why_section import read_diagnoses

SCRIPTS = ("elements.js", "chart.js", "heatmap.js", "lines.js", "page.js")
"""In the order in which they are run, as one."""
LIVE_SCRIPTS = (*SCRIPTS, "live.js")
STYLES = ("page.css", "figures.css")
TITLE = "How far it goes: accuracy by length"


def report_html(found: Sources, command: str = "") -> bytes:
    """The file; `command` is what writes it again. The same runs give the same bytes."""
    report = report_of(found, command)
    return in_one_file(TITLE, _facts(report), sections(report), page_data(report.groups, report.courses))


def report_of(found: Sources, command: str = "") -> Report:
    """All that its sections are made of."""
    points = points_each(len(found.curves))
    courses = {curve.first.run: course for curve in found.curves if (course := course_of(curve, points)).loss}
    diagnoses, unread = read_diagnoses(found.curves)
    return Report(tuple(compared(found.curves)), courses, found.statuses, (*found.problems, *unread), command, diagnoses)


def in_one_file(title: str, lead: Markup, parts: Sequence[Section], data: Mapping[str, Any]) -> bytes:
    """A page with its script, its style, and the policy that lets these run and nothing else."""
    policy = tag("meta", http_equiv="Content-Security-Policy", content=policy_of(script_of(), style_of()))
    looks = [policy, tag("style", Markup(style_of()))]
    return _page(title, lead, parts, looks, joined([_data(data), tag("script", Markup(script_of()))]))


def live_html(report: Report, version: str) -> bytes:
    """The same page where it is served: `version` is what it shows, and on top is a place for the runs that are under way. The
    script, the style and the policy about them come from the server.
    """
    runs = Section("now", "Runs under way", tag("p", "This is filled in by the page's script.", class_="faint"))
    parts = [runs, *(sections(report) if report.groups else without_numbers(report))]
    looks = [tag("link", rel="stylesheet", href="page.css"), tag("meta", name="version", content=version)]
    script = tag("script", src="page.js", defer=True)
    return _page(TITLE, _facts(report), parts, looks, joined([_data(page_data(report.groups, report.courses)), script]))


def _data(data: Mapping[str, Any]) -> Markup:
    return tag("script", embedded(data), type="application/json", id="data")


def _page(title: str, lead: Markup, parts: Sequence[Section], looks: Sequence[Markup], scripts: Markup) -> bytes:
    head = [
        tag("meta", charset="utf-8"),
        *looks[:1],
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        *looks[1:],
    ]
    body = [
        tag("a", f"Skip to the {parts[0].title.lower()}", href=f"#{parts[0].anchor}", class_="skip"),
        tag("header", tag("h1", title), lead, _contents(parts)),
        tag("main", *map(_section, parts)),
        scripts,
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body), lang='en')}\n".encode()


def _facts(report: Report) -> Markup:
    """How much there is, and how much is missing."""
    settings = sum(len(group.settings) for group in report.groups)
    said = [f"{counted(len(report.curves), 'run')} of {counted(settings, 'setting')}"]
    tasks = sorted({curve.first.task for curve in report.curves})
    if tasks:
        said.append(f"on {', '.join(tasks)}" if len(tasks) <= 3 else f"on {len(tasks)} tasks")
    missing = len(report.statuses) + len(report.problems)
    link = tag("a", f"{counted(missing, 'run')} without a result", href="#provenance") if missing else ""
    return tag("p", " ".join(said), "; " if link else ".", link, "." if link else "")


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def _contents(parts: Sequence[Section]) -> Markup:
    links = [tag("li", tag("a", part.title, href=f"#{part.anchor}")) for part in parts]
    return tag("nav", tag("ul", *links), aria_label="Sections")


def _section(part: Section) -> Markup:
    heading = tag("h2", part.title, id=f"{part.anchor}-title")
    return tag("section", heading, part.content, id=part.anchor, aria_labelledby=f"{part.anchor}-title")


def policy_of(script: str, style: str) -> str:
    """Nothing is loaded, and nothing runs but our own script: not even what somebody would write into a name."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def script_of(live: bool = False) -> str:
    """The script of a page, as one."""
    return '"use strict";\n(() => {\n' + joined(map(_asset, LIVE_SCRIPTS if live else SCRIPTS)) + "})();\n"


@cache
def style_of() -> str:
    """Its style sheet."""
    return joined(map(_asset, STYLES))


def _asset(name: str) -> Markup:
    return Markup((files("lengthlab.report") / "assets" / name).read_text(encoding="utf-8"))
