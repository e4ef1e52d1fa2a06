"""Which of several settings is best, by a rule that is said beside it; where the numbers do not tell, it is a tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lengthlab.report.scores import GOOD, Score
from lengthlab.report.setting import Setting
from lengthlab.store.rows import ALL

RULE = (
    f"Best: above {GOOD:.2f} in the mean over seeds to the greatest length, and then the higher mean at the next one. Settings "
    "that cannot be told apart up to there tie: the ranges of their seeds, widened to Wilson's intervals over their samples, "
    "overlap at every length."
)

NAMED = 3
"""So many that tie are named in the sentence."""


@dataclass(frozen=True)
class Best:
    """`settings`: the best and those that tie with it. `reach`: how far it is above 0.90. `ranked`: all, the best first."""

    settings: tuple[Setting, ...]
    reach: int
    ranked: tuple[Setting, ...]


def best_of(settings: Sequence[Setting]) -> Best:
    """Of settings that can be compared."""
    lengths = sorted({length for setting in settings for length in setting.lengths})
    reaches = {id(each): each.reach if lengths[0] in each.lengths else 0 for each in settings}  # from the shortest on
    far = max(reaches.values())
    beyond = next((length for length in lengths if length > far), lengths[-1])
    ranked = sorted(settings, key=lambda each: (-reaches[id(each)], -(_at(each, beyond).mean or 0.0)))
    first = ranked[0]
    decisive = [length for length in lengths if length <= beyond and _at(first, length).rows]
    ties = [each for each in ranked[1:] if all(_overlap(_at(first, n), _at(each, n)) for n in decisive)]
    return Best((first, *ties), far, (first, *ties, *(each for each in ranked[1:] if each not in ties)))


def sentence(best: Best) -> str:
    """What a reader wants to know first."""
    first = best.settings[0]
    asked = "" if first.series[0].question == ALL else f" ({first.series[0].question})"
    seeds = len(first.series[0].seeds)
    mean = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
    if not best.reach:
        score = first.series[0].scores[0]
        told = f"Nothing is above {GOOD:.2f} anywhere{asked}; at n = {score.length} the highest is {score.mean or 0.0:.3f}"
        return f"{told}, {mean}: {_names(best)}."
    times = best.reach / first.first.trained[1]
    far = f"n = {best.reach}, {times:g} × the training length" if times != 1 else f"n = {best.reach}, the training length"
    furthest = " and was not measured further" if best.reach == first.lengths[-1] else ""
    reached = f"above {GOOD:.2f} to {far}{furthest}{asked}; {mean}"
    if len(best.ranked) == 1:
        return f"{first.name}: {reached}."
    return f"Best: {_names(best)}, {reached}."


def _names(best: Best) -> str:
    names = [setting.name for setting in best.settings]
    if len(names) == 1:
        return names[0]
    whole = "all tie" if len(names) == len(best.ranked) else f"{len(names)} of {len(best.ranked)} tie"
    return f"{whole} ({'; '.join(names) if len(names) <= NAMED else 'the first of the table'})"


def _at(setting: Setting, length: int) -> Score:
    return setting.series[0].at(length)


def _overlap(one: Score, other: Score) -> bool:
    """Whether two accuracies cannot be told apart; what was not measured is no tie."""
    if not one.rows or not other.rows:
        return False
    (low, high), (lowest, highest) = _spread(one), _spread(other)
    return low <= highest and lowest <= high


def _spread(score: Score) -> tuple[float, float]:
    """The range over seeds, and the interval over samples where that is wider."""
    low, high = score.interval
    shares = score.by_seed.values()
    return min(low, *shares), max(high, *shares)
