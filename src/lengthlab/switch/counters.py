"""Optimizers that count their steps in the parameter group and not for each parameter: schedule-free ones, apex's, and others.

Adam without bias correction makes its first step some 30 times too large. So what opens late has to count from its own first
step: a group of which all is off stands still, counter and sums, and a group of which some is off is refused.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from torch import nn
from torch.optim import Optimizer

from lengthlab.errors import LabError

NAMES = ("k", "step")
"""What such counters are called in schedule-free optimizers, apex and pytorch-optimizer."""
COMMON = "d"
"""D-Adaptation and Prodigy keep an estimate under this name that all groups share, and their count is one of it."""


def counts_in_group(group: dict[str, Any]) -> bool:
    """Whether a group has a counter for all of its parameters."""
    return any(type(group.get(name)) is int for name in NAMES)


class Counters:
    """The numbers in the groups of an optimizer, before and after a step."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._before = [_numbers(group) for group in optimizer.param_groups]

    def settle(self, optimizer: Optimizer, closed: Set[int], name_of: Any) -> None:
        """Put back what a step changed in groups of which all is off; `closed` are ids of parameters."""
        for group, before in zip(optimizer.param_groups, self._before, strict=False):
            if _numbers(group) != before and COMMON not in group:
                off = [parameter for parameter in group["params"] if id(parameter) in closed]
                if len(off) == len(group["params"]):
                    _put_back(group, before)
                elif off:
                    _refuse(optimizer, group, before, name_of(off[0]))


def _numbers(group: dict[str, Any]) -> dict[str, int | float]:
    return {key: value for key, value in group.items() if type(value) in (int, float) and key != "lr"}


def _put_back(group: dict[str, Any], before: dict[str, int | float]) -> None:
    for key in _numbers(group).keys() - before.keys():
        del group[key]
    group.update(before)


def _refuse(optimizer: Optimizer, group: dict[str, Any], before: dict[str, int | float], name: str) -> None:
    counters = [key for key, value in group.items() if type(value) is int and value == before.get(key, 0) + 1]
    if counters:
        raise LabError(
            f"{type(optimizer).__name__} counts steps for a whole group ('{counters[0]}'), and '{name}' is off and others of"
            " its group are not: opened, its first steps would be far too large; give what is off a group of its own:"
            " {'params': list(delay.parameters())}"
        )


def refuse_average(optimizer: Optimizer, parameters: list[nn.Parameter]) -> None:
    """A part of a step cannot be taken back where the optimizer has made it on a copy, too."""
    if any("z" in optimizer.state[parameter] for parameter in parameters if parameter in optimizer.state):
        raise LabError(
            f"rate and warm_up do not reach the copy of the weights that {type(optimizer).__name__} keeps: leave them out and"
            " give what is opened a group with an lr, or warmup_steps, of its own"
        )
