"""How sure a count of right answers makes us."""

from __future__ import annotations

from math import sqrt

Z = 1.959964
"""95 %, two-sided."""


def wilson(correct: int, total: int, errors: float = Z) -> tuple[float, float]:
    """Wilson's score interval for a proportion at 95 %, or of so many standard errors; it stays inside 0...1 and is right near
    the ends.

    >>> [round(end, 3) for end in wilson(95, 100)]
    [0.888, 0.978]
    """
    if total == 0:
        return 0.0, 1.0
    share, spread = correct / total, errors * errors / total
    middle = (share + spread / 2) / (1 + spread)
    half = errors * sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))  # rounding must not put share outside
