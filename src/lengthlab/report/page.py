"""A page as data: a title and blocks. Terminal, Markdown and figures render the same blocks, and know all that is theirs alone:
how a cell is aligned, a text escaped, an accuracy rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lengthlab.report.scores import Series
from lengthlab.store.rows import ALL
from lengthlab.store.status import visible as visible


@dataclass(frozen=True)
class Span:
    """Some words that are set off from those around them; `target` makes them a link, to a place on the page (`#made-3`) or
    elsewhere.
    """

    text: str
    style: Literal["", "strong", "emphasis", "code", "good", "bad"] = ""
    target: str = ""


Words = str | Span | tuple[str | Span, ...]


def spans(words: Words) -> tuple[Span, ...]:
    """
    >>> spans(("made by ", Span("demo", "code")))
    (Span(text='made by ', style='', target=''), Span(text='demo', style='code', target=''))
    """
    several = words if isinstance(words, tuple) else (words,)
    return tuple(word if isinstance(word, Span) else Span(word) for word in several)


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: Words


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]


@dataclass(frozen=True)
class Numbered:
    """A list from 1 on; what links to `#ANCHOR-3` means its third item."""

    items: tuple[Words, ...]
    anchor: str


@dataclass(frozen=True)
class Entry:
    """One that is compared: what it is called, by column, what else is known of it, and its scores, a series a question.

    Entries of a `group` stand together in a figure.
    """

    names: tuple[tuple[str, str], ...]
    series: tuple[Series, ...]
    facts: tuple[tuple[str, str], ...] = ()
    group: str = ""

    @property
    def title(self) -> str:
        """Its names in one line.

        >>> Entry((("model", "lstm"), ("training", "delayed")), ()).title
        'lstm, delayed'
        """
        return ", ".join(name for _, name in self.names if name)


@dataclass(frozen=True)
class Scores:
    """Accuracies of entries by length. `reference`: how the one whose numbers stand beside ours is called. `each_seed`: whether
    a terminal shows every seed, or their range alone.
    """

    entries: tuple[Entry, ...]
    lengths: tuple[int, ...]
    trained: tuple[int, int]
    reference: str = ""
    each_seed: bool = field(default=True, kw_only=True)

    @property
    def times(self) -> list[str]:
        """Lengths in multiples of the longest training length; none where one of them is not a multiple.

        >>> Scores((), (25, 1000), (1, 25)).times, Scores((), (5, 25), (1, 25)).times
        (['1×', '40×'], [])
        """
        longest = self.trained[1]
        whole = all(length % longest == 0 for length in self.lengths)
        return [f"{length // longest}×" for length in self.lengths] if whole else []


Chance = Mapping[str, Mapping[int, float]]
"""How often a guess is right, by question and length, as far as that is known."""


@dataclass(frozen=True)
class Figure(Scores):
    """Scores as a picture. `name`: of its file. `width`: inches, for a paper, whose own words say what it shows: letters are
    smaller, and there is no title and no caption; 0: as wide as it is best read.
    """

    name: str = "figure"
    title: str = ""
    alt: str = ""
    width: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Heatmap(Figure):
    """Entries down, lengths across, a panel for each question."""


@dataclass(frozen=True)
class Curves(Figure):
    """Accuracy over length, a panel for each question."""

    chance: Chance = field(default_factory=dict)


@dataclass(frozen=True)
class Grids(Figure):
    """Entries by two of their names, `down` and `across`: a grid for each question, group and length of `at`. What is below
    `learned` at the longest training length is marked.
    """

    down: str = ""
    across: str = ""
    at: tuple[int, ...] = ()
    learned: float = 0.0


@dataclass(frozen=True)
class Strips(Figure):
    """Entries down, with a dot for each seed at each length of `at`; a panel for each question."""

    at: tuple[int, ...] = ()
    chance: Chance = field(default_factory=dict)


@dataclass(frozen=True)
class Details:
    """What is folded away until somebody asks for it."""

    summary: str
    blocks: tuple[Block, ...]


Block = Heading | Text | Table | Numbered | Scores | Details


@dataclass(frozen=True)
class Page:
    """`command`: what writes it again; empty where nobody keeps it."""

    title: str
    blocks: tuple[Block, ...]
    command: str = ""

    @property
    def figures(self) -> list[Figure]:
        return [block for block in self.blocks if isinstance(block, Figure)]


def prose(text: str) -> Words:
    """A text of several lines as a paragraph; what stands between backticks is code.

    >>> prose("see `far`")
    ('see ', Span(text='far', style='code', target=''))
    """
    pieces = " ".join(text.split()).split("`")
    if len(pieces) % 2 == 0:  # a backtick that is not closed is no more than that
        return " ".join(text.split())
    return tuple(Span(piece, "code") if number % 2 else piece for number, piece in enumerate(pieces) if piece)


def title_of(question: str) -> str:
    """A question as a figure names it."""
    return "all questions right" if question == ALL else visible(question)


def plain(words: Words) -> str:
    """Words without what sets them off."""
    return "".join(visible(span.text) for span in spans(words))
