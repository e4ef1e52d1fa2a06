"""What a network says where it has to follow a rule, in its own words: the answer it ends with, the whole, the turns of loops.

A network may say half as much again as the longest sequence of a batch has; a loop that goes on until then ends late.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from lengthlab.errors import LabError, require
from lengthlab.evaluation.own_words import own_words
from lengthlab.tasks import Few, Mixture, Task
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


@dataclass(frozen=True)
class Ruled:
    """A rule in a task: the task whose samples are asked, the task of the rule itself, and how many words a mixture puts before
    its sequences.
    """

    task: Task
    rule: RuleTask
    words: int = 0


def rule_in(task: Task) -> Ruled:
    """The rule that a task is, that it has few samples of, or that is the only one of a mixture that is measured.

    >>> from lengthlab.tasks import Copy, coin_flips_rule
    >>> rule_in(Few(coin_flips_rule())).task.name, rule_in(Mixture((Copy(), coin_flips_rule()))).words
    ('rule-coin-flips', 1)
    """
    if isinstance(task, Few):
        return rule_in(task.task)
    if isinstance(task, Mixture):
        rules = {each.name: rule for each in task.asked_tasks if isinstance(rule := _few_of(each), RuleTask)}
        if len(rules) == 1:
            ((name, rule),) = rules.items()
            require(not rule.ids_follow, f"ids of '{name}' follow from its words, and nobody knows them in those of a mixture")
            return Ruled(task.alone(name), rule, int(task.tag))
        several = f"of several: {', '.join(rules)}" if rules else f"of none: '{task.name}'"
        raise LabError(f"loops are read of one rule-… task, and this is a mixture {several}")
    if not isinstance(task, RuleTask):
        raise LabError(f"loops are read of rule-… tasks, and this is '{task.name}'")
    return Ruled(task, task)


def _few_of(task: Task) -> Task:
    return task.task if isinstance(task, Few) else task


def rule_answers(network: nn.Module, task: Task, length: int, samples: int = 100) -> RuleAnswers:
    """Its answers to the fixed samples of a length.

    >>> import torch, lengthlab as ll
    >>> from lengthlab.tasks import coin_flips_rule
    >>> task, seeded = coin_flips_rule("scratchpad"), torch.manual_seed(0)
    >>> found = rule_answers(ll.models.lstm(width=8).build(task.vocabulary), task, 2, samples=5)
    >>> found.samples, found.answer, found.early
    (5, 0, 5)
    """
    asked = rule_in(task)
    said = own_words(network, asked.task, length, samples)
    found = [asked.rule.score(right[asked.words :], own) for right, own in said]
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
