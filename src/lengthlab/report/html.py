"""Blocks of a page as HTML: the third renderer, beside terminal and Markdown. Nothing here needs a script to be read."""

from __future__ import annotations

import re

from lengthlab.report.html_curves import accuracy_chart
from lengthlab.report.html_heatmap import heat_table
from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.page import (
    Block,
    Curves,
    Details,
    Heading,
    Numbered,
    Scores,
    Span,
    Table,
    Text,
    Words,
    plain,
    spans,
    title_of,
)

NUMBER = re.compile(r"[+−–-]?[\d,.]*(?:–[\d.]+)?")
"""A column of nothing else stands on the right of its cells."""
ELEMENTS = {"strong": "strong", "emphasis": "em", "code": "code", "good": "strong", "bad": "strong"}


def html(block: Block) -> Markup:
    """
    >>> html(Text(("made by ", Span("demo & co", "code"))))
    '<p>made by <code>demo &amp; co</code></p>'
    """
    match block:
        case Heading(text):
            return tag("h3", text)
        case Text(words):
            return tag("p", inline(words))
        case Table():
            return table(block)
        case Numbered(items, anchor):
            numbered = [tag("li", inline(item), id=f"{anchor}-{place}") for place, item in enumerate(items, start=1)]
            return tag("ol", *numbered)
        case Curves():
            questions = list(dict.fromkeys(series.question for entry in block.entries for series in entry.series))
            return joined(figure(accuracy_chart(block, question), title_of(question)) for question in questions)
        case Scores():
            return heat_table(block)
        case Details(summary, blocks):
            return tag("details", tag("summary", summary), *map(html, blocks))


def figure(picture: Markup, caption: str) -> Markup:
    return tag("figure", tag("figcaption", caption), tag("div", picture, class_="picture"))


def table(block: Table) -> Markup:
    """It scrolls within itself where it is wider than the page; a keyboard reaches it."""
    numbers = [all(NUMBER.fullmatch(plain(words)) for words in column) for column in zip(*block.rows, strict=True)]
    looks = ["number" if number else None for number in numbers] or [None] * len(block.header)
    head = tag("tr", *(tag("th", name, scope="col", class_=look) for name, look in zip(block.header, looks, strict=True)))
    rows = [
        tag("tr", *(tag("td", inline(words), class_=look) for words, look in zip(row, looks, strict=True)))
        for row in block.rows
    ]
    return scrolled(tag("table", tag("thead", head), tag("tbody", *rows)), f"table: {', '.join(block.header)}")


def scrolled(content: Markup, label: str) -> Markup:
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def inline(words: Words) -> Markup:
    """Words within a line, whatever is in them."""
    return joined(map(_span, spans(words)))


def _span(span: Span) -> Markup:
    look = span.style if span.style in ("good", "bad") else None
    text = tag(ELEMENTS[span.style], span.text, class_=look) if span.style else joined([span.text])
    inside = span.target.startswith("#")  # a page that opens from disk leads nowhere else
    return tag("a", text, href=span.target) if inside else text
