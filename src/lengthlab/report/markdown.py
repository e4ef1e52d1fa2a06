"""A page as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import quote

from lengthlab.report.page import (
    Block,
    Details,
    Entry,
    Figure,
    Heading,
    Numbered,
    Page,
    Scores,
    Span,
    Table,
    Text,
    Words,
    spans,
    visible,
)
from lengthlab.report.scores import DIFFERS, GOOD, MARGIN, MISSING, Score, Series
from lengthlab.store.rows import ALL

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$])")
BEGINS = re.compile(r"[#+=-]|\d+[.)]")
"""What makes a heading or a list of a line that begins so."""
ENTITY = re.compile(r"&(?=#?\w+;)")


def markdown(page: Page, folder: str = "", figures: Collection[str] | None = None) -> str:
    """The whole page; `folder` is the way from the page to its figures, with a slash at its end, and `figures` are the files
    that were drawn, all if it is not given.
    """
    lines = [f"# {escape(page.title)}"]
    if page.command:
        lines += ["", f"Written by {code(page.command)}; what is changed here by hand is lost with the next time."]
    for block in page.blocks:
        if figures is None or not isinstance(block, Figure) or f"{block.name}.svg" in figures:
            lines += ["", *_lines(block, folder)]
    return "\n".join(lines) + "\n"


def _lines(block: Block, folder: str) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"## {escape(text)}"
        case Text(words):
            yield begin(inline(words))
        case Table(header, rows):
            yield from table([escape(name) for name in header], [[inline(cell) for cell in row] for row in rows])
        case Numbered(items, anchor):
            for number, item in enumerate(items, start=1):
                yield f'{number}. <a id="{anchor}-{number}"></a>{inline(item)}'
        case Figure():
            yield f"![{escape(block.alt or block.title)}]({quote(folder + block.name)}.svg)"
        case Scores():
            yield from _scores(block)
        case Details(summary, blocks):
            yield f"<details><summary>{html.escape(visible(summary))}</summary>"
            for inner in blocks:
                yield ""
                yield from _lines(inner, folder)
            yield from ("", "</details>")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Of cells that are Markdown already.

    >>> list(table(["n", "right"], [["5", "0.99"]]))
    ['| n | right |', '| --- | --- |', '| 5 | 0.99 |']
    """
    for cells in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(cells)} |"


def _scores(block: Scores) -> Iterator[str]:
    """A line for each entry: the first of its questions at every length."""
    names = [escape(name) for name, _ in block.entries[0].names] if block.entries else []
    facts = [escape(name) for name, _ in block.entries[0].facts] if block.entries else []
    times = [f" ({times})" for times in block.times] or [""] * len(block.lengths)
    lengths = [f"n={length}{more}" for length, more in zip(block.lengths, times, strict=True)]
    digits = 2 if block.reference else 3
    rows = [_entry(entry, block.lengths, digits) for entry in block.entries]
    yield from (_legend(block), "")
    yield from table([*names, *facts, *lengths, "seeds"], rows)


def _legend(block: Scores) -> str:
    firsts = [entry.series[0] for entry in block.entries]
    compared = any(score.reference is not None for series in firsts for score in series.scores)
    several = any(score.spread for series in firsts for score in series.scores)
    ours = "the mean over seeds, and in brackets the lowest and the highest seed where they differ" if several else "one seed"
    name = escape(block.reference)
    beside = f"; [ ] {name}'s number, and ≠ where ours is more than {MARGIN:.2f} from it" if compared else ""
    asked = {series.question for series in firsts} - {ALL}
    what = f"Of {' and '.join(map(code, sorted(asked)))}" if asked else "Every question right"
    return f"{what}: {ours}{beside}. Bold: above {GOOD:.2f}. Intervals over samples: in the folded table."


def _entry(entry: Entry, lengths: Sequence[int], digits: int) -> list[str]:
    known = [escape(text) for _, text in (*entry.names, *entry.facts)]
    first = entry.series[0]
    return [*known, *(_score(first.at(length), digits) for length in lengths), _seeds(first)]


def _score(score: Score, digits: int) -> str:
    if score.mean is None:
        return MISSING
    number = f"{score.mean:.{digits}f}"
    ends = [f"{end:.{digits}f}" for end in score.spread or ()]
    spread = f" ({'–'.join(ends)})" if len(set(ends)) > 1 else ""
    beside = "" if score.reference is None else f" [{score.reference:.2f}]"
    return f"{f'**{number}**' if score.mean > GOOD else number}{spread}{beside}{' ≠' if score.verdict == DIFFERS else ''}"


def _seeds(series: Series) -> str:
    there, missing = (", ".join(map(str, seeds)) for seeds in (series.seeds, series.missing))
    return f"{there}; {missing} {MISSING}" if missing else there or "–"


def inline(words: Words) -> str:
    """Words within a line, whatever is in them."""
    return "".join(map(_span, spans(words)))


def _span(span: Span) -> str:
    text = code(span.text) if span.style == "code" else escape(span.text)
    mark = {"strong": "**", "good": "**", "bad": "**", "emphasis": "*"}.get(span.style, "")
    text = f"{mark}{text}{mark}" if text.strip() == text and text else text
    return f"[{text}]({span.target})" if span.target else text


def escape(text: str) -> str:
    r"""A text of anybody's as nothing but text.

    >>> escape("a|b *c* <d>")
    'a\\|b \\*c\\* \\<d\\>'
    """
    return ENTITY.sub("&amp;", SPECIAL.sub(r"\\\1", visible(text)))


def begin(line: str) -> str:
    r"""A line that is a paragraph, whatever it begins with.

    >>> begin("# not a heading"), begin("1. no list")
    ('\\# not a heading', '1\\. no list')
    """
    line = line.lstrip()  # four spaces would make code of it
    found = BEGINS.match(line)
    return line if not found else line[: found.end() - 1] + "\\" + line[found.end() - 1 :]


def code(text: str) -> str:
    """A text of anybody's in the type of code; a fence longer than any row of backticks in it, and no bar that ends a cell.

    >>> code("a`b")
    '``a`b``'
    """
    shown = visible(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    gap = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{gap}{shown}{gap}{fence}"
