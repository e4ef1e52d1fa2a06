"""The page of the survey of delayed attention, and what it says of a type, read again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lengthlab.report.page import Block, Heading, Page, Span, Table, Text, Words

VERDICTS = ("right", "refused", "wrong", "cannot be built")
RIGHT = re.compile(r"^Right: (.*)$", re.MULTILINE)
TITLES = {"causal": "Causal language models", "masked": "Masked language models", "vision": "Vision models"}


class SurveyRow(Protocol):
    """What was found of one type of model."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def why(self) -> str: ...


def survey_page(rows: Sequence[SurveyRow], software: str) -> Page:
    """Counts first; then, by kind, who is not right and why, and who is."""
    counted = tuple(_counted(title, [row for row in rows if row.kind == kind]) for kind, title in TITLES.items())
    blocks: list[Block] = [
        Text(
            "Every causal-LM, masked-LM and vision type of the installed transformers, built small from its configuration "
            "class alone, and its attention delayed with no argument. Right is what a judge says by numbers alone: closed, the "
            "model heeds its input and gives what it gives with attention weights at zero; parameters of attention, and no "
            "others, stand still under AdamW; opened, it is the model that it was. A type without attention is right if that "
            "is said."
        ),
        Table(
            ("", "built", *VERDICTS, "right of those built"), tuple(row for row in counted if row[1] != "0" or len(rows) == 0)
        ),
        Text(f"With {software}."),
    ]
    for kind, title in TITLES.items():
        of_kind = [row for row in rows if row.kind == kind]
        blocks += _of_kind(title, of_kind) if of_kind else []
    return Page("A survey of delayed attention", tuple(blocks), command="lengthlab delay --survey --page docs/survey.md")


def right_in(text: str) -> dict[str, list[str]]:
    """By kind, the types that a written page calls right, those without attention left out.

    >>> right_in("## Masked language models\\n\\nRight: `albert`, `bert`.\\n")
    {'masked': ['albert', 'bert']}
    """
    found = {}
    for kind, title in TITLES.items():
        part = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        if names := RIGHT.search(part):
            found[kind] = re.findall("`([^`]+)`", names[1])
    return found


def _counted(title: str, rows: Sequence[SurveyRow]) -> tuple[Words, ...]:
    number: Mapping[str, int] = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
    built = len(rows) - number["cannot be built"]
    share = f"{number['right'] / built:.1%}" if built else ""
    return (title, str(built), *(str(number[verdict]) for verdict in VERDICTS), share)


def _of_kind(title: str, rows: Sequence[SurveyRow]) -> list[Block]:
    others = tuple((Span(row.name, "code"), row.verdict, row.why) for row in rows if row.verdict != "right")
    plain = [row.name for row in rows if row.verdict == "right" and not row.why]
    table: list[Block] = [Table(("type", "verdict", "why"), others)] if others else []
    blocks = [Heading(title), *table]
    if plain:
        blocks.append(Text(("Right: ", *_listed(plain))))
    for why in dict.fromkeys(row.why for row in rows if row.verdict == "right" and row.why):
        blocks.append(Text((f"Right, {why}: ", *_listed(row.name for row in rows if row.why == why))))
    return blocks


def _listed(names: Iterable[str]) -> list[str | Span]:
    words = [word for name in names for word in (Span(name, "code"), ", ")]
    return [*words[:-1], "."]
