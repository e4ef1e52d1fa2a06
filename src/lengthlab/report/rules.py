"""The same runs by other rules of selection: how much each habit of the field flatters a setting."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from lengthlab.report.compared import Compared
from lengthlab.report.scores import GOOD, Score
from lengthlab.report.setting import Setting
from lengthlab.store.settings import shown

RULES = ("mean over seeds", "median", "best seed", "converged seeds only", "best rate on the test set")

ABOUT = (
    f"The mean over all seeds is what this page goes by. Converged: above {GOOD:.2f} at the longest length measured in the "
    "training range. Best rate: of the settings that differ in their learning rate alone, the highest mean at that very "
    "length, as if the rate had been chosen on the test."
)

Values = tuple[float | None, ...]
"""What a setting comes to, by rule."""


def by_rule(group: Compared, length: int) -> list[Values]:
    """A line a setting, in their order: the accuracy at a length by every rule; None where the rule says nothing."""
    means = [setting.series[0].at(length).mean for setting in group.settings]
    families = _families(group)
    found: list[Values] = []
    for setting, mean, family in zip(group.settings, means, families, strict=True):
        seeds = list(setting.series[0].at(length).by_seed.values())
        rates = [value for value, other in zip(means, families, strict=True) if other == family and value is not None]
        several = families.count(family) > 1
        best_rate = max(rates) if rates and several else None
        middle = median(seeds) if seeds else None
        found.append((mean, middle, max(seeds, default=None), converged(setting, group, length), best_rate))
    return found


def converged(setting: Setting, group: Compared, length: int) -> float | None:
    """The mean over the seeds that learned the training range; None where none did."""
    learned = converged_seeds(setting, group)
    kept = [share for seed, share in setting.series[0].at(length).by_seed.items() if seed in learned]
    return sum(kept) / len(kept) if kept else None


def converged_seeds(setting: Setting, group: Compared) -> set[int]:
    inside = [length for length in setting.lengths if length <= group.trained[1]]
    at = inside[-1] if inside else setting.lengths[0]
    return {seed for seed, share in setting.series[0].at(at).by_seed.items() if share > GOOD}


def flattery(values: Sequence[Values]) -> Values:
    """How far each rule is above the mean over seeds, in the mean over the settings that both say something of.

    >>> flattery([(0.5, 0.5, 0.75, None, None), (0.25, 0.5, 0.5, None, None)])
    (0.0, 0.125, 0.25, None, None)
    """
    found: list[float | None] = []
    for rule in range(len(RULES)):
        gaps = [value - line[0] for line in values if (value := line[rule]) is not None and line[0] is not None]
        found.append(sum(gaps) / len(gaps) if gaps else None)
    return tuple(found)


def telling_length(group: Compared) -> int:
    """Where the best seed and the mean are furthest apart: there a rule of selection matters most; the greater of two."""
    gaps = {length: sum(map(_gap, _scores(group, length))) for length in group.lengths}
    return max(gaps, key=lambda length: (round(gaps[length], 9), length))


def several_seeds(group: Compared) -> bool:
    """Whether a rule has anything to select from."""
    return any(len(setting.curves) > 1 for setting in group.settings)


def _scores(group: Compared, length: int) -> list[Score]:
    return [setting.series[0].at(length) for setting in group.settings]


def _gap(score: Score) -> float:
    return 0.0 if score.mean is None else max(score.by_seed.values()) - score.mean


def _families(group: Compared) -> list[str]:
    """What a setting is but for its learning rate."""
    told = [dict(setting.values) for setting in group.settings]
    return [", ".join(f"{name}={shown(each[name])}" for name in group.columns if not _rate(name)) for each in told]


def _rate(column: str) -> bool:
    """
    >>> _rate("lr"), _rate("phase 2 lr"), _rate("lr attention"), _rate("width")
    (True, True, True, False)
    """
    return "lr" in column.split()
