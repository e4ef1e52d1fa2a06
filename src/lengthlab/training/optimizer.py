"""Adam, with a learning rate by part where a schedule wants one."""

from __future__ import annotations

import torch
from torch import nn

from lengthlab.run import Run
from lengthlab.schedule import Phase
from lengthlab.switch import find


def adam(network: nn.Module, run: Run) -> torch.optim.Adam:
    """One parameter group for each part that some phase gives a learning rate of its own, and one for the rest. A group knows
    the parts around it from the inside out.

    A part that is off has no gradients; Adam then neither moves it nor keeps state for it, and starts it afresh when it is
    opened. So one optimizer serves all phases, and the parts that were on go on with what they have.
    """
    parts = {name for phase in run.schedule.phases for name in phase.rates} - {"rest"}
    sites = {site.name: part for part in parts for site in find(network, part)}
    groups: dict[tuple[str, ...], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        around = sorted((site for site in sites if name.startswith(f"{site}.")), key=len, reverse=True)
        groups.setdefault((*(sites[site] for site in around), "rest"), []).append(parameter)
    parameters = [{"params": group, "parts": around} for around, group in groups.items()]
    on_gpu = next(network.parameters()).is_cuda
    return torch.optim.Adam(parameters, lr=0.0, betas=run.optimizer.betas, fused=True, capturable=on_gpu)


def set_rates(optimizer: torch.optim.Optimizer, phase: Phase) -> None:
    """The learning rates of a phase; the innermost part that it names counts."""
    for group in optimizer.param_groups:
        group["lr"] = next(phase.rates[part] for part in group["parts"] if part in phase.rates)
