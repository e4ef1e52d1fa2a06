"""What a network says where it has to follow a rule, in its own words: the answer it ends with, the whole, the turns of loops.

A network may say half as much again as the longest sequence of a batch has; a loop that goes on until then ends late.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from lengthlab.evaluation.own_words import own_words
from lengthlab.tasks.rules import RuleTask


@dataclass(frozen=True)
class RuleAnswers:
    """Of so many samples of a length: right answers, right in every word; loops that end early or late, and by how many turns
    they are off in the mean. The last three are None where the form tells of no loop.
    """

    length: int
    samples: int
    answer: int
    exact: int
    early: int | None
    late: int | None
    turns_off: float | None


def rule_answers(network: nn.Module, task: RuleTask, length: int, samples: int = 100) -> RuleAnswers:
    """Its answers to the fixed samples of a length.

    >>> from lengthlab import models
    >>> from lengthlab.tasks import coin_flips_rule
    >>> task = coin_flips_rule("scratchpad")
    >>> found = rule_answers(models.lstm(width=8).build(task.vocabulary), task, 2, samples=5)
    >>> found.samples, found.answer <= 5, found.early
    (5, True, 5)
    """
    found = [task.score(right, said) for right, said in own_words(network, task, length, samples)]
    more = [score.turns_more for score in found if score.turns_more is not None]
    off = [score.turns_off for score in found if score.turns_off is not None]
    return RuleAnswers(
        length,
        len(found),
        sum(score.answer for score in found),
        sum(score.exact for score in found),
        sum(each < 0 for each in more) if more else None,
        sum(each > 0 for each in more) if more else None,
        sum(off) / len(off) if off else None,
    )
