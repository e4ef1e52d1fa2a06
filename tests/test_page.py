"""Pages as data: whatever is in a text of a user's, every renderer shows it as text."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lengthlab.report.figure import pictures
from lengthlab.report.markdown import markdown
from lengthlab.report.page import Curves, Details, Entry, Heading, Heatmap, Numbered, Page, Scores, Span, Table, Text, visible
from lengthlab.report.publication import texts
from lengthlab.report.scores import Score, Series
from lengthlab.report.terminal import console_for, show
from lengthlab.store.rows import Row

NASTY = (
    "a|b", "`code`", "``", "<script>alert(1)</script>", "[red]bold[/red]", "[link](http://x)", "![x](y)", "*a* _b_ ~c~",
    "# heading", "- item", "1. one", "&lt;", "line\nbreak", "\x1b[31mred\x1b[0m", "\u202eright to left", "$x^2$", "\\", "\\|",
    "back\\`slash", ":smile:", "\ud800", "|", "", "<!-- -->", "\u2028", "= x", "https://a.b",
)  # fmt: skip
anything = st.text(max_size=20) | st.sampled_from(NASTY)
nasty = pytest.mark.parametrize("text", NASTY)
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def spoken(text: str) -> str:
    """What somebody reads of a rendered text; Markdown and terminals make nothing of spaces around it."""
    return " ".join(visible(text).split())


def words_in(source: str) -> list[str]:
    """The texts of a Markdown page, as a reader sees them, one for each paragraph, heading and cell."""
    inlines = [token for token in PARSER.parse(source) if token.type == "inline"]
    kinds = ("text", "code_inline", "text_special")
    return [" ".join("".join(t.content for t in token.children or () if t.type in kinds).split()) for token in inlines]


@given(anything)
def test_nothing_of_a_visible_text_acts_on_its_reader(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069\n\r\x1b]", shown)


@given(anything, anything)
@example("`a", "b`")
def test_a_cell_of_a_markdown_table_says_its_text_and_no_more(first: str, second: str) -> None:
    block = Table(("one", "two"), ((first, (second, Span(first, "code"))), (Span(first, "strong"), second)))
    tokens = PARSER.parse(markdown(Page("title", (block,))))
    assert [token.type for token in tokens].count("td_open") == 4
    assert not any(token.type.startswith("html") for token in tokens)
    cells = words_in(markdown(Page("title", (block,))))[3:]
    assert cells[0] == spoken(first)
    assert cells[3] == spoken(second)
    assert cells[2] == spoken(first)


@given(anything)
def test_paragraphs_headings_and_lists_of_markdown_say_their_text_and_no_more(text: str) -> None:
    blocks = (Heading("x" + text), Text(("x", text)), Text(text if text.strip() else "x"), Numbered((("x", text),), "made"))
    source = markdown(Page("x" + text, blocks, command="x" + text))
    tokens = PARSER.parse(source)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2"]
    assert len([token for token in tokens if token.type == "list_item_open"]) == 1
    assert not any(token.type == "html_block" for token in tokens)
    words = words_in(source)
    assert words[0] == words[2] == words[3] == words[5] == spoken("x" + text)
    assert words[4] == spoken(text if text.strip() else "x")


@given(anything)
def test_a_terminal_shows_a_text_as_it_is(text: str) -> None:
    console = console_for(400)
    console.file = io.StringIO()
    blocks = (Heading(text), Text(text), Table(("a",), ((text,),)), Numbered((text,), "made"), scores(text))
    show(Page(text, blocks), console)
    shown = console.file.getvalue()
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert " ".join(shown.split()).count(spoken(text)) >= 6


def scores(text: str, kind: type[Scores] = Scores) -> Scores:
    rows = [Row(n, "all", 9, 10, seed=0, run="0123456789ab") for n in (5, 10)]
    series = Series("all", tuple(Score(row.length, (row,)) for row in rows))
    more = {"name": "figure", "title": text} if kind is not Scores else {}
    return kind((Entry((("arm", text), ("model", text)), (series,), ((text, text),), text),), (5, 10), (1, 5), text, **more)


@nasty
@pytest.mark.parametrize("kind", [Heatmap, Curves])
def test_a_figure_shows_a_text_as_it_is(text: str, kind: type[Scores]) -> None:
    drawn = pictures(Page("title", (scores(text, kind),)))
    said = texts(drawn["figure.svg"])
    assert said  # it is XML
    assert any(spoken(text) in " ".join(each.split()) for each in said)


@nasty
def test_scores_in_markdown_are_a_table_whatever_they_are_called(text: str) -> None:
    source = markdown(Page("title", (scores(text), Details(text, (Text("inside"),)))))
    tokens = PARSER.parse(source)
    assert [token.type for token in tokens].count("th_open") == 2 + 1 + 2 + 1
    assert [token.type for token in tokens].count("td_open") == 2 + 1 + 2 + 1
    assert "<script" not in source.replace("\\<", "")


def test_a_table_that_does_not_fit_is_shown_row_by_row_with_nothing_cut() -> None:
    console = console_for(40)
    console.file = io.StringIO()
    show(Page("title", (Table(("claim", "evidence"), (("word " * 20, "other " * 20),)),)), console)
    shown = console.file.getvalue()
    assert shown.split().count("word") == shown.split().count("other") == 20
    assert max(map(len, shown.splitlines())) <= 40
