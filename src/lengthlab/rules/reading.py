"""What an answer says, be it right, wrong or broken: the value it ends with and the turns that each loop takes; and how far
that is from what is right. Loops that end early, or never, are where models go wrong (Hu et al. 2025, arXiv 2502.11525).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lengthlab.rules.rule import Rule
from lengthlab.rules.step import Value, same
from lengthlab.rules.text import ANSWER, BEGINS, parse_value
from lengthlab.rules.wording import ASKED, RETURN, line_of, read_value

LINE = re.compile(r"^Line (\d{1,6})(?:, `|:)")


@dataclass(frozen=True)
class Reading:
    """`answer` is None where none can be read; `turns`, by the line of a loop, are None in a direct answer, which has none."""

    answer: Value | None
    turns: dict[int, int] | None

    def turns_off(self, right: Reading) -> int | None:
        """By how many turns it differs, over all loops."""
        if self.turns is None or right.turns is None:
            return None
        lines = {*self.turns, *right.turns}
        return sum(abs(self.turns.get(line, 0) - right.turns.get(line, 0)) for line in lines)

    def turns_more(self, right: Reading) -> int | None:
        """How many turns it tells of, in all loops together, beyond those of what is right; None where either tells of none."""
        if self.turns is None or right.turns is None:
            return None
        return sum(self.turns.values()) - sum(right.turns.values())


@dataclass(frozen=True)
class Score:
    """What was said against what is right: the answer, everything said, the error in the number of loop turns, and how many
    turns were told in all beyond those there are; fewer than 0 where loops end early.
    """

    answer: bool
    exact: bool
    turns_off: int | None
    turns_more: int | None


def read_words(words: Sequence[str], form: str, rule: Rule) -> Reading:
    """What words say; as far as they go, whatever they are.

    >>> rule = Rule.of("def count(n):\\n    while n > 1:\\n        n = n - 1\\n    return n")
    >>> read_words("L2 n: 9 ? True L3 n: 9 = n: 8 L2 [ ? True L2 ? False ) return 1".split(), "trace", rule)
    Reading(answer=1, turns={2: 2})
    """
    said = list(words)
    last = max((place for place, word in enumerate(said) if word == RETURN), default=None)
    answer = None if last is None else read_value(said[last + 1 :])
    if form == "direct":
        return Reading(answer, None)
    turns: dict[int, int] = {}
    line = None
    for place, word in enumerate(said):
        found = line_of(word)
        line = line if found is None else found
        if line not in rule.loops:
            continue
        if form == "scratchpad" and found is not None:
            turns[line] = turns.get(line, -1) + 1
        elif form == "trace" and word == ASKED:
            turns[line] = turns.get(line, 0) + (said[place + 1 : place + 2] == ["True"])
    return Reading(answer, turns)


def read_text(text: str, form: str, rule: Rule) -> Reading:
    """What a text says.

    >>> rule = Rule.of("def count(n):\\n    while n > 1:\\n        n = n - 1\\n    return n")
    >>> read_text("Line 2: n = 2\\nLine 2: what?\\nThe answer is 1.", "scratchpad", rule)
    Reading(answer=1, turns={2: 1})
    """
    lines = [line.strip() for line in text.splitlines()]
    given = [line[len(ANSWER) :] for line in lines if line.startswith(ANSWER)]
    answer = parse_value(given[-1].removesuffix(".")) if given else None
    if form == "direct":
        return Reading(answer, None)
    turns: dict[int, int] = {}
    for line in lines:
        matched = LINE.match(line)
        number = int(matched.group(1)) if matched else 0
        if number in rule.loops:
            if form == "scratchpad":
                turns[number] = turns.get(number, -1) + 1
            else:
                turns[number] = turns.get(number, 0) + (BEGINS in line)
    return Reading(answer, turns)


def score_words(said: Sequence[str], right: Sequence[str], form: str, rule: Rule) -> Score:
    """How right an answer in words is.

    >>> rule = Rule.of("def double(n):\\n    return 2 * n")
    >>> score_words("L2 n: 3 return 4".split(), "L2 n: 2 return 4".split(), "trace", rule)
    Score(answer=True, exact=False, turns_off=0, turns_more=0)
    """
    return _score(read_words(said, form, rule), read_words(right, form, rule), list(said) == list(right))


def score_text(said: str, right: str, form: str, rule: Rule) -> Score:
    """The same of texts; space around lines does not count."""
    alike = [line.strip() for line in said.strip().splitlines()] == [line.strip() for line in right.strip().splitlines()]
    return _score(read_text(said, form, rule), read_text(right, form, rule), alike)


def _score(said: Reading, right: Reading, exact: bool) -> Score:
    answer = said.answer is not None and same(said.answer, right.answer)
    return Score(answer, exact, said.turns_off(right), said.turns_more(right))
