"""The optimizer of a run at work, with a learning rate by part and by step where a schedule wants one.

Shapes: K steps of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.spec.optimizer import AdamW, Optimizer
from lengthlab.spec.rate import AnyRate, Rate
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase
from lengthlab.switch import find


def optimizer_of(network: nn.Module, run: Run) -> torch.optim.Optimizer:
    """One parameter group for each part that some phase gives a learning rate of its own, and one for the rest. A group knows
    the parts around it from the inside out.

    A part that is off has no gradients; the optimizer then neither moves it nor keeps state for it, and starts it afresh when
    it is opened. So one optimizer serves all phases, and the parts that were on go on with what they have.
    """
    sites: dict[str, list[str]] = {}
    for part in sorted({name for phase in run.schedule.phases for name in phase.rated}):
        for site in find(network, part):
            sites.setdefault(site.name, []).append(part)  # two phases may call it by two names
    groups: dict[tuple[str, ...], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        around = sorted((site for site in sites if name.startswith(f"{site}.")), key=len, reverse=True)
        groups.setdefault((*(part for site in around for part in sites[site]), "rest"), []).append(parameter)
    parameters = [{"params": group, "parts": around} for around, group in groups.items()]
    chosen = run.optimizer
    settings: dict[str, Any] = {"lr": 0.0, "betas": chosen.betas, "fused": True}
    settings["capturable"] = next(network.parameters()).is_cuda
    if isinstance(chosen, AdamW):
        return torch.optim.AdamW(parameters, weight_decay=chosen.decay, **settings)
    return torch.optim.Adam(parameters, **settings)


def clip(network: nn.Module, optimizer: Optimizer) -> None:
    """Scale all gradients down where their norm is too large; the host does not wait to know whether it was."""
    if optimizer.clip:
        nn.utils.clip_grad_norm_(network.parameters(), optimizer.clip, foreach=True)


@dataclass(frozen=True)
class Rates:
    """The learning rates of a phase that began at step `start` and has so many `steps`; `slipped`: of one that is watched, and
    whose question is right too seldom now.
    """

    phase: Phase
    start: int
    steps: int
    slipped: bool = False

    def set(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Those of a step of the run."""
        for group in optimizer.param_groups:
            group["lr"] = self.value(self.of(group), step)

    def of(self, group: dict[str, Any]) -> AnyRate:
        """The rate of a group: the innermost part that the phase names counts."""
        return next(self.by_part[part] for part in group["parts"] if part in self.by_part)

    @property
    def by_part(self) -> dict[str, AnyRate]:
        return self.phase.rates_if(self.slipped)

    def value(self, rate: AnyRate, step: int) -> float:
        """A rate at a step of the run."""
        return rate.at(step - self.start, self.steps) if isinstance(rate, Rate) else rate

    def table(self, group: dict[str, Any], first: int, number: int) -> list[float]:
        """The group's rates for so many steps of the run from `first` on; none of them before the phase began."""
        return [self.value(self.of(group), max(self.start, step)) for step in range(first, first + number)]


class RateTable:
    """The rates of a block of steps on the GPU, for a step that is captured once and counts for itself.

    A constant rate stays a number, unless the phase is watched: it is part of the captured step, and rounds as it always has.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, device: torch.device, steps: int) -> None:
        self.optimizer, self.steps = optimizer, steps
        self._rates_K = {place: torch.zeros(steps, device=device) for place in range(len(optimizer.param_groups))}

    def fill(self, rates: Rates, first: int) -> None:
        """With the rates of the block that begins at step `first`."""
        for place, group in enumerate(self.optimizer.param_groups):
            rate = rates.of(group)
            if not isinstance(rate, Rate) and rates.phase.slips is None:
                group["lr"] = rate
                continue
            if not isinstance(group["lr"], Tensor):
                group["lr"] = torch.zeros((), device=self._rates_K[place].device)
            self._rates_K[place].copy_(torch.tensor(rates.table(group, first, self.steps)), non_blocking=True)

    def take(self, k_1: Tensor) -> None:
        """Inside the captured step: the rates of step k of the block."""
        for place, group in enumerate(self.optimizer.param_groups):
            if isinstance(group["lr"], Tensor):
                group["lr"].copy_(self._rates_K[place].index_select(0, k_1)[0])
