"""Accuracies by setting and length as a table in colours: how far each goes as a bar, mean and interval in the cell, every seed
in its title. Lightness tells the accuracy and bold numbers what is good, so that it reads without colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from lengthlab.report.markup import Markup, joined, tag
from lengthlab.report.page import Entry, Scores, title_of
from lengthlab.report.scores import DIFFERS, GOOD, Score, Series
from lengthlab.report.setting import reach_of

SHADES = 20
"""Steps of lightness between 0 and 1."""


def heat_tables(block: Scores, questions: Sequence[str]) -> Markup:
    """Of the question that counts, the others folded."""
    first, *others = questions
    folded = [tag("details", tag("summary", title_of(each)), heat_table(block, each), class_="other") for each in others]
    return joined([tag("div", heat_table(block, first), class_="heat-map"), *folded])


def heat_table(block: Scores, question: str | None = None) -> Markup:
    """Of one question; of the first, if none is named. Entries stand in their order."""
    asked = question or block.entries[0].series[0].question
    inside = sum(length <= block.trained[1] for length in block.lengths)
    names = [name for name, _ in block.entries[0].names]
    caption = f"{title_of(asked)}: accuracy by length"
    body = [_row(entry, asked, block, inside) for entry in block.entries]
    table = tag(
        "table", tag("caption", caption), tag("thead", *_head(block, names, inside)), tag("tbody", *body), class_="heat"
    )
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _head(block: Scores, names: Sequence[str], inside: int) -> Iterator[Markup]:
    beyond = len(block.lengths) - inside
    spans = [
        tag("th", f"trained on n ≤ {block.trained[1]}", colspan=inside, class_="range", scope="colgroup") if inside else "",
        tag("th", "beyond", colspan=beyond, class_="range edge", scope="colgroup") if beyond else "",
    ]
    yield tag("tr", tag("td", colspan=len(names) + 1), *spans)
    lengths = [
        tag("th", f"n={length}", scope="col", class_="length edge" if place == inside else "length")
        for place, length in enumerate(block.lengths)
    ]
    yield tag("tr", *(tag("th", name, scope="col") for name in names), tag("th", "reach", scope="col"), *lengths)


def _row(entry: Entry, question: str, block: Scores, inside: int) -> Markup:
    lengths, beside = block.lengths, block.reference.removeprefix("the ")
    series = next((each for each in entry.series if each.question == question), Series(question, ()))
    names = [tag("th", name, scope="row") for _, name in entry.names]
    cells = [cell(series.at(length), place == inside, beside) for place, length in enumerate(lengths)]
    return tag("tr", *names, tag("td", reach_bar(reach_of(series), lengths), class_="reach"), *cells)


def reach_bar(reach: int, lengths: Sequence[int]) -> Markup:
    """How far above 0.90, as a bar on the lengths that were measured, and as a number."""
    wide = share(reach, lengths) * 100
    bar = tag("svg", tag("rect", width=wide, height=10), viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")
    return joined([bar, tag("span", str(reach) if reach else "–")])


def share(reach: int, lengths: Sequence[int]) -> float:
    """Where a length lies between nothing and the longest: lengths grow by factors, so do bars.

    >>> share(0, [10, 1000]), share(10, [10, 1000]), round(share(100, [10, 1000]), 1), share(1000, [10, 1000])
    (0.0, 0.15, 0.6, 1.0)
    """
    if reach <= 0:
        return 0.0
    first, last = log(min(lengths)), log(max(lengths))
    return 0.15 + 0.85 * ((log(reach) - first) / (last - first) if last > first else 1.0)


def cell(score: Score, edge: bool, beside: str = "") -> Markup:
    """`beside`: whose number stands below ours, where there is one."""
    if score.mean is None:
        return tag("td", "–", class_="none edge" if edge else "none")
    low, high = score.interval
    seeds = "; ".join(f"seed {seed}: {share:.3f}" for seed, share in sorted(score.by_seed.items()))
    small = [tag("small", f"{low:.2f}–{high:.2f}")]
    if beside and score.reference is not None:
        differs = score.verdict == DIFFERS
        words = f"{beside} {score.reference:.2f}" + (" ≠" if differs else "")
        small.append(tag("small", words, class_="differs" if differs else None))
    return tag("td", f"{score.mean:.2f}", *small, class_=shade(score.mean) + (" edge" if edge else ""), title=seeds)


def shade(accuracy: float) -> str:
    """The class of an accuracy.

    >>> shade(0.0), shade(0.52), shade(0.97)
    ('s0', 's10', 's19 good')
    """
    return f"s{int(accuracy * SHADES + 1e-9)}" + (" good" if accuracy > GOOD else "")
