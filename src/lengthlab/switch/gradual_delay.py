"""A delay that is neither off nor on for a while: what chance.py and window.py have in common.

While it is closed, each module has one forward of ours for all that time, which is told at every step what to do. So compiled
code has as many shapes as there are things to do, and not one for every step.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypedDict
from weakref import ref

from torch import nn
from torch.optim import Optimizer

from lengthlab.errors import LabError, require
from lengthlab.switch.closing import delay_attention
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.forwards import Switched
from lengthlab.switch.hooks import HELD, drop_gradients
from lengthlab.switch.opening import Opening
from lengthlab.switch.record import entries_for
from lengthlab.switch.sites import Instead, Parts, Site
from lengthlab.switch.stand_in import Forward
from lengthlab.switch.state import DelayWarning


class Partly(ABC):
    """What a module does that is on now and then, or in part."""

    def __init__(self, site: Site, ours: Switched) -> None:
        self.site, self.module, self.stand_in = site.name, site.module, site.stand_in
        self._ours = ours

    @property
    def original(self) -> Forward:
        """What the module does when nobody is in its way."""
        return self._ours.real(self.module)

    @abstractmethod
    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """What it gives in this step."""


class GradualDelay(Delay, ABC):
    """`close` puts it under its rule, `open` ends that for good; in between the rule says what is on in the coming step."""

    def __init__(self, sites: tuple[Site, ...], until: Until | None = None, beside: Delay | None = None) -> None:
        """`beside`: a plain delay of the same sites, which knows what else stands still and what stays on."""
        if beside is None:
            super().__init__(sites, until, Opening())
        else:
            around = beside.starved, beside.idle, beside.left, beside.model, beside.whole
            super().__init__(sites, until, Opening(), *around)
        self._opened = True
        self.partly: list[Any] = []
        """What the modules do meanwhile, which is told what to do."""

    @property
    def is_settled(self) -> bool:
        """Open for good, and not just in the coming step."""
        return self._opened

    def close(self) -> None:
        """Under its rule, from the next forward on."""
        if not self._opened:
            return
        self.is_open = True
        super().close()
        self._opened = False
        self.go_to(self.steps)

    def closed_forward(self, site: Site, ours: Switched) -> Forward:
        self.partly.append(self.forward_of(site, ours))
        forward: Forward = self.partly[-1]
        return forward

    def open(self) -> None:
        """On, for good, from the next forward on."""
        if self._opened:
            return
        self.is_open = False
        super().open()
        self._opened, self.partly = True, []

    def go_to(self, steps: int) -> None:
        """Say how many steps the optimizer has made in all; what is on in the next one is settled now."""
        self.steps = steps
        if self._opened:
            return
        if not self.waits and isinstance(self.until, int) and steps >= self.until:
            self.open()
            return
        was, self.is_open = self.is_open, self.apply(steps)
        if was != self.is_open:
            self.hold()
        if not self.is_open:
            drop_gradients(self.parameters(), self.model)

    def observe(self, metrics: Mapping[str, Any]) -> None:
        now, self.is_open = self.is_open, self._opened  # what happens to be on in this step does not count as open
        super().observe(metrics)
        if not self._opened:
            self.is_open = now

    def forget(self, optimizer: Optimizer) -> None:
        """Nothing: what the optimizer knows of a part that comes back is what it goes on with."""

    def remove(self) -> None:
        super().remove()
        self._opened, self.partly = True, []

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint should keep of it; JSON can. What is on in a step follows from the step."""
        return super().state_dict() | {"is_open": self._opened, "rule": self.rule}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on as the checkpoint has it."""
        kept = state.get("rule")
        require(kept is not None, f"the checkpoint has no {type(self).__name__}, but a delay that is off or on")
        if kept != self.rule:
            warnings.warn(f"this run was begun with {kept} and goes on with {self.rule}", DelayWarning, stacklevel=2)
        super().load_state_dict(state)

    @property
    @abstractmethod
    def rule(self) -> dict[str, Any]:
        """What says what is on, as plain data."""

    def mirror(self, copy: nn.Module) -> Delay:
        raise LabError(
            "a copy of a model whose attention opens by chance or by a window is not switched along: average it later"
        )

    @abstractmethod
    def forward_of(self, site: Site, ours: Switched) -> Partly:
        """What a module does meanwhile."""

    @abstractmethod
    def apply(self, steps: int) -> bool:
        """Tell the forwards what to do in the step after so many; whether anything is on then."""


class Finding(TypedDict, total=False):
    """What `delay_attention` takes to find attention."""

    modules: Parts | None
    instead: Instead | None
    batch: Any
    cross: bool


def found(model: nn.Module, options: Finding) -> Delay:
    """The attention of a model, as a plain delay finds it, which is not in place any more."""
    gently = sorted({"rate", "warm_up", "ramp"} & set(options))
    require(not gently, f"{' and '.join(gently)} go with an opening that happens once: leave them out here")
    plain = delay_attention(model, **options)
    plain.remove()
    return plain


def hold(made: Delay) -> None:
    """Close it, and let nobody else have its modules as long as it is there."""
    made.followers += entries_for(made.model, made) if made.model is not None else []
    made.close()
    HELD.update({site.module: ref(made) for site in made.sites})
