"""Whether one list of numbers ranks things as another does."""

from __future__ import annotations

from collections.abc import Sequence


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's, equal ones sharing their ranks; None where one side is all alike.

    >>> rank_correlation([(1, 10), (2, 20), (3, 40)]), rank_correlation([(1, 1), (1, 2)]) is None
    (1.0, True)
    """
    if len(pairs) < 2:
        return None
    first, second = (_ranks(side) for side in zip(*pairs, strict=True))
    middle = (len(pairs) + 1) / 2
    product = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    size = (sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second)) ** 0.5
    return product / size if size else None


def _ranks(values: Sequence[float]) -> list[float]:
    below = {value: sum(other < value for other in values) for value in set(values)}
    alike = {value: sum(other == value for other in values) for value in set(values)}
    return [below[value] + (alike[value] + 1) / 2 for value in values]
