"""Where a model will break, from short sequences alone, and where it did.

Two ways lead a state out of its place. It drifts: q (state_probe.py) grows with the length, and where it is above 1 a tenth of
the states lie beyond a border. Or it slips: now and then, at any step, a state jumps to another one's place and stays there,
while those around it hardly move; then as many are right at length t as have not slipped, (1 - s)^t. What comes first counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from lengthlab.store.diagnosis import Breaking, StateAt
from lengthlab.store.rows import Count

GOOD = 0.90
"""Below this share of right answers a model is broken."""
SIGHT = 1000
"""Times the longest training length: beyond that nothing is foretold."""
LEAST_GROWTH = 0.02
"""Less than this power of the length is no growth."""
LEAST_SLIPS = 3
"""Fewer wrong states may be chance."""
IN_RANGE, BESIDE, DRIFT, SLIPS, NONE = "in range", "not in the state", "drift", "slips", "none"
"""By which rule a length was foretold."""


@dataclass(frozen=True)
class Outlook:
    """What short sequences tell: `rule`, the power by which q grows, q at the longest training length, the length or None."""

    rule: str
    growth: float
    q: float
    length: float | None


def foretell(short: Sequence[StateAt], in_state: bool) -> Outlook:
    """From states at lengths of the training range, shortest first. `in_state`: whether the state carries the answer at all; if
    not, nothing is known of it beyond the range, and the answer is taken to end where the range does.

    >>> drifting = [StateAt(n, "sum", 2000, 1.0, q=n / 40) for n in (4, 6, 8, 10)]
    >>> outlook = foretell(drifting, in_state=True)
    >>> outlook.rule, round(outlook.growth, 3), round(outlook.length, 3)
    ('drift', 1.0, 40.0)
    """
    longest, last = short[-1].length, short[-1].q
    growth, level = power(short)
    if not in_state:
        return Outlook(BESIDE, growth, last, float(longest))
    above = [place for place, state in enumerate(short) if state.q > 1]
    if above:
        return Outlook(IN_RANGE, growth, last, _between(short, above[0]))
    drift = exp((0 - level) / growth) if growth > LEAST_GROWTH and -level / growth < log(SIGHT * longest) else None
    slips = slip_length(short)
    known = {rule: length for rule, length in ((DRIFT, drift), (SLIPS, slips)) if length is not None}
    if not known or min(known.values()) > SIGHT * longest:
        return Outlook(NONE, growth, last, None)
    rule = min(known, key=known.__getitem__)
    return Outlook(rule, growth, last, max(known[rule], float(longest)))


def power(short: Sequence[StateAt]) -> tuple[float, float]:
    """b and log(a) of q = a · t^b, by least squares of logarithms; b is 0 where there is one length."""
    points = [(log(state.length), log(max(state.q, 1e-3))) for state in short]
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    growth = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return growth, mean_y - growth * mean_x


def slip_length(short: Sequence[StateAt]) -> float | None:
    """Where a tenth has slipped, at the rate of all wrong states by all steps; None where too few are wrong.

    >>> slip_length([StateAt(10, "sum", 1000, right=0.99, q=0.1)])
    105.36...
    """
    wrong = sum((1 - state.right) * state.samples for state in short)
    steps = sum(state.length * state.samples for state in short)
    return -log(GOOD) * steps / wrong if round(wrong) >= LEAST_SLIPS else None


def _between(short: Sequence[StateAt], place: int) -> float:
    """Where q passes 1 between two lengths, on a straight line; the first length where it begins above."""
    if place == 0:
        return float(short[0].length)
    before, after = short[place - 1], short[place]
    return before.length + (1 - before.q) / (after.q - before.q) * (after.length - before.length)


def measured_length(counts: Sequence[Count], question: str) -> float | None:
    """Where accuracy falls below 0.90 and is so at the next measured length, too, or is at the last; between two lengths it is
    taken to fall on a line over the logarithm of the length. None where it never does.
    """
    known = sorted((count for count in counts if count.question == question), key=lambda count: count.length)
    below = [count.accuracy < GOOD for count in known]
    for place, count in enumerate(known):
        if below[place] and all(below[place : place + 2]):
            if place == 0:
                return float(count.length)
            before = known[place - 1]
            share = (before.accuracy - GOOD) / max(before.accuracy - count.accuracy, 1e-9)
            return exp(log(before.length) + min(1.0, max(0.0, share)) * log(count.length / before.length))
    return None


def breaking(outlook: Outlook, counts: Sequence[Count], question: str) -> Breaking:
    """Both, side by side."""
    measured_to = max((count.length for count in counts if count.question == question), default=0)
    return Breaking(
        question, outlook.rule, outlook.growth, outlook.q, outlook.length, measured_length(counts, question), measured_to
    )
