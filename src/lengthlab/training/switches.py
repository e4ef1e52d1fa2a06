"""What is off, or opens, in a phase of a run: a switch on its network."""

from __future__ import annotations

import torch
from torch import nn

from lengthlab.spec.run import Run
from lengthlab.spec.seeds import seed_for
from lengthlab.switch import Delay, Stages, Switch, find, switch_for


def switched(network: nn.Module, run: Run, number: int) -> Switch:
    """The switch of a phase on a network, closed as at its start."""
    phase = run.schedule.phases[number]
    opens, seed = phase.opens, seed_for("opens", run.seed, number)
    switch = Delay(find(network, *phase.off)) if opens is None else switch_for(opens, network, seed)
    switch.close()
    return switch


def set_free(switch: Switch) -> None:
    """Everything on."""
    for delay in delays_in(switch):
        delay.open()


def forget_closed(switch: Switch, optimizer: torch.optim.Optimizer) -> None:
    """What is off starts afresh when it opens; what has opened by now, in a run that is resumed, goes on."""
    for delay in delays_in(switch):
        if not delay.is_open:
            delay.forget(optimizer)


def delays_in(switch: Switch) -> tuple[Delay, ...]:
    return switch.delays if isinstance(switch, Stages) else (switch,)
