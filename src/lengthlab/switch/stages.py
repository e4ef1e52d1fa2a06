"""Several delays that open one after another."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from torch import nn
from torch.optim import Optimizer

from lengthlab.errors import LabError, require
from lengthlab.switch.check import check_stages
from lengthlab.switch.delay import Delay
from lengthlab.switch.delay_report import DelayReport
from lengthlab.switch.sites import Site, unwrapped


class Stages:
    """Delays in the order in which they open; a later one waits for those before it. Used as one delay is.

    >>> from torch import nn
    >>> from lengthlab.switch.closing import delay
    >>> model = nn.ModuleDict({"lower": nn.Linear(2, 2), "upper": nn.Linear(2, 2)})
    >>> stages = Stages(delay(model, "lower", until=1), delay(model, "upper", until=2))
    >>> stages.step()
    >>> [stage.is_open for stage in stages.delays]
    [True, False]
    """

    def __init__(self, *delays: Delay) -> None:
        require(len(delays) > 0, "there is no stage")
        for each in delays:
            require(isinstance(each, Delay), f"a stage is a delay, as ll.delay makes it, not {each!r}")
        require(len(set(map(id, delays))) == len(delays), "a delay is among the stages twice")
        steps = [delay.until for delay in delays if isinstance(delay.until, int)]
        require(steps == sorted(steps), f"stages open one after another, not at steps {steps}")
        self.delays = delays
        for earlier, later in pairwise(delays):
            later.after = earlier
            if not later.is_settled:
                later.go_to(later.steps)  # one that is on by chance waits from now on

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(site for delay in self.delays for site in delay.sites)

    @property
    def is_open(self) -> bool:
        return all(delay.is_open for delay in self.delays)

    @property
    def steps(self) -> int:
        return self.delays[0].steps

    def open(self) -> None:
        """The next stage."""
        waiting = [delay for delay in self.delays if not delay.is_open]
        if waiting:
            waiting[0].open()

    def close(self) -> None:
        """All of them."""
        for delay in self.delays:
            delay.close()

    def step(self) -> None:
        for delay in self.delays:
            delay.step()

    def go_to(self, steps: int) -> None:
        for delay in self.delays:
            delay.go_to(steps)

    def observe(self, metrics: Mapping[str, Any]) -> None:
        """For the stage that is next."""
        waiting = [delay for delay in self.delays if not delay.is_open]
        if waiting:
            waiting[0].observe(metrics)

    def watch(self, optimizer: Optimizer, counts: bool = True) -> Stages:
        for delay in self.delays:
            delay.watch(optimizer, counts)
        return self

    def unwatch(self, optimizer: Optimizer) -> None:
        for delay in self.delays:
            delay.unwatch(optimizer)

    def check(self, batch: Any, model: nn.Module | None = None) -> DelayReport:
        """Try what is closed on a batch, now and after each stage: see `Delay.check`."""
        whole = model if model is not None else self.delays[0].model
        if whole is None:
            raise LabError("say what model to check: stages.check(batch, model)")
        return check_stages(self.delays, unwrapped(whole), batch)

    def remove(self) -> None:
        for delay in self.delays:
            delay.remove()

    def is_of(self, model: nn.Module) -> bool:
        return all(delay.is_of(model) for delay in self.delays)

    def state_dict(self) -> dict[str, Any]:
        return {"stages": [delay.state_dict() for delay in self.delays]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        kept = state.get("stages", [state])
        require(len(kept) == len(self.delays), f"the checkpoint has {len(kept)} stages, and there are {len(self.delays)}")
        for delay, each in zip(self.delays, kept, strict=True):
            delay.load_state_dict(each)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.delays))
