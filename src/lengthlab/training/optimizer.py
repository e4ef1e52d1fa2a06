"""Adam, with a learning rate by part where a schedule wants one."""

from __future__ import annotations

import torch
from torch import nn

from lengthlab.delay import find
from lengthlab.schedule import Phase, Schedule


def adam(network: nn.Module, schedule: Schedule) -> torch.optim.Adam:
    """One parameter group for each part that some phase gives a learning rate of its own, and one for the rest.

    A part that is off has no gradients; Adam then neither moves it nor keeps state for it, and starts it afresh when it is
    opened. So one optimizer serves all phases, and the parts that were on go on with what they have.
    """
    rest = dict(network.named_parameters())
    groups = []
    for part in sorted({name for phase in schedule.phases for name in phase.rates} - {"rest"}):
        names = [name for name in rest if any(name.startswith(site.name + ".") for site in find(network, part))]
        groups.append({"params": [rest.pop(name) for name in names], "part": part})
    groups.append({"params": list(rest.values()), "part": "rest"})
    return torch.optim.Adam([group for group in groups if group["params"]], lr=0.0, fused=True)


def set_rates(optimizer: torch.optim.Optimizer, phase: Phase) -> None:
    """The learning rates of a phase."""
    for group in optimizer.param_groups:
        group["lr"] = phase.rates.get(group["part"], phase.rates["rest"])
