"""What learns while parts of a model are off: gradients on two examples, beside those of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from lengthlab.errors import LabError, require
from lengthlab.switch.found import NOTHING_LEARNS, UNTRAINABLE
from lengthlab.switch.probe import Probe, was_at_work
from lengthlab.switch.silence import standing_in
from lengthlab.switch.sites import Site
from lengthlab.switch.trace import Trace

Gradients = Mapping[str, bool | None]
"""Of each parameter: whether its gradient is anything but zero; None where it has none at all."""


@dataclass(frozen=True)
class Learning:
    """Gradients with everything on, and with parts off on two examples."""

    on: Gradients
    off: tuple[Gradients, Gradients]
    ran: Trace
    """A forward with the parts off."""

    def inside(self, name: str) -> bool:
        """Whether anything in a module learns while the parts are off."""
        return any(has and each.startswith(f"{name}.") for each, has in self.off[0].items())

    def lost(self, sites: Sequence[Site]) -> tuple[str, ...]:
        """Parameters outside the parts that learn while these are on and not while they are off, though they are at work."""
        inside = tuple(f"{site.name}." for site in sites)
        return tuple(
            name
            for name, has in self.on.items()
            if has and not any(each[name] for each in self.off) and not name.startswith(inside) and was_at_work(self.ran, name)
        )

    def starved(self, lost: Sequence[str]) -> tuple[str, ...]:
        """Those of them whose gradient is zero: an optimizer would decay them."""
        return tuple(name for name in lost if not self._has_none(name))

    def idle(self, lost: Sequence[str], callers: Sequence[str]) -> tuple[str, ...]:
        """Those of them that have none at all and lie in modules that call attention."""
        below = tuple(f"{name}.".lstrip(".") for name in callers)
        return tuple(name for name in lost if self._has_none(name) and name.startswith(below))

    def _has_none(self, name: str) -> bool:
        return all(each[name] is None for each in self.off)


def what_learns(probe: Probe, sites: Sequence[Site]) -> Learning | None:
    """None where the model cannot be trained on the examples at all; an error where it cannot with these parts off."""
    on = probe.gradients()
    with standing_in(sites):
        first, second = probe.gradients(0), probe.gradients(1)
        ran = probe.forward(0)
    if on is None:
        return None
    if first is None or second is None:
        raise LabError(UNTRAINABLE)
    require_learners_left(probe.model, on, first)
    return Learning(on, (first, second), ran)


def require_learners_left(model: nn.Module, on: Gradients, off: Gradients) -> None:
    """Something has to learn while parts are off, where some of the model is frozen."""
    frozen = any(not each.requires_grad for each in model.parameters())
    require(not frozen or any(off.values()) or not any(on.values()), NOTHING_LEARNS)
