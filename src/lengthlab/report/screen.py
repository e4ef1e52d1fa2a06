"""A terminal as far as a page has to know it: how wide it is, and which letters it has."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text as Line

from lengthlab.report.encoding import spelled
from lengthlab.report.page import Words, spans, visible

STYLES = {"strong": "bold", "emphasis": "italic", "code": "", "good": "green", "bad": "bold red"}


@dataclass(frozen=True)
class Screen:
    """How wide a terminal is, and which letters it has."""

    width: int
    encoding: str = "utf-8"

    def text(self, text: str) -> str:
        """A text of anybody's, in letters that are there."""
        return spelled(visible(text), self.encoding)

    def line(self, words: Words) -> Line:
        """Words as one paragraph."""
        return Line.assemble(*((self.text(span.text), STYLES.get(span.style, "")) for span in spans(words)))

    @property
    def plain(self) -> bool:
        """Whether it has no letters to draw rules with."""
        return not self.encoding.lower().startswith("utf")
