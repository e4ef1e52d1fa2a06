"""The switch: parts of a model that are off at first, and opened later.

Off means skipped: the part's forward does not run, its parameters get no gradient, and so no optimizer moves, decays or keeps
state for them. Where the part stands in a chain, what comes in goes out unchanged; where its output would be added to
something, nothing is added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from lengthlab.errors import a_kind, require
from lengthlab.switch.opening import Opening, Ramped, Watch
from lengthlab.switch.sites import Site
from lengthlab.switch.stand_in import Off, StandIn

Until = int | Callable[[Mapping[str, Any]], bool]
"""After so many steps of the optimizer, or when this is true of the metrics of an evaluation."""

HELD: WeakKeyDictionary[nn.Module, ref[Delay]] = WeakKeyDictionary()
"""Which delay has a module, as long as there is one."""


class DelayWarning(UserWarning):
    """Something about a delay that is allowed, and probably not meant."""


def _look_at_wrapper(module: nn.Module, inputs: object) -> None:
    """A hook before a closed module: does what was put around the model since then bear with parts that are off?"""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # Private: nothing public tells a module what wraps it. If it goes, only this check does.
        require_unused_are_found(getattr(DistributedDataParallel, "_active_ddp_module", None))


def require_unused_are_found(model: nn.Module | None) -> None:
    if isinstance(model, DistributedDataParallel):
        require(
            model.find_unused_parameters and not model.static_graph,
            "DistributedDataParallel needs find_unused_parameters=True, and no static_graph=True, while parts are off",
        )


def _untouched(module: nn.Module, inputs: object) -> None:
    """A hook that does nothing, for torch's fused transformer layer: it calls its attention module only if that has one."""


class Delay:
    """A set of sites that are off or on together. `delay` and `delay_attention` make one, closed.

    While closed, the `forward` of each module object is replaced (its class, its weights and the names in its state dict are
    untouched); `open` puts it back.
    """

    def __init__(self, sites: tuple[Site, ...], until: Until | None = None, opening: Opening = Opening()) -> None:
        self.sites, self.until, self.opening = sites, until, opening
        self.is_open = True
        self.steps = 0
        """Steps of the optimizer so far, as `step`, `watch` or a callback counted them."""
        self.opened_at: int | None = None
        self._hooks: list[RemovableHandle] = []
        self._ramps: list[Ramped] = []
        self._watches: list[Watch] = []
        self._missed = False
        self.after: Delay | None = None
        """One that has to be open before this opens by itself."""

    def close(self) -> None:
        """Off, from the next forward on."""
        if not self.is_open:
            return
        self._restore()
        for site in self.sites:
            self._replace(site, self.closed_forward(site))
            self._hooks.append(site.module.register_forward_pre_hook(_look_at_wrapper))
        for parameter in self.parameters():
            parameter.grad = None
        for watch in self._watches:
            self.forget(watch.optimizer)
        self.is_open, self.opened_at = False, None

    def closed_forward(self, site: Site) -> Off:
        """The forward of a module while this is closed."""
        return Off(site.stand_in)

    def open(self) -> None:
        """On, from the next forward on."""
        if self.is_open:
            return
        self._restore()
        self.is_open, self.opened_at = True, self.steps
        if self.opening.ramp:
            self._ramps = [Ramped(site.module.forward, site.stand_in) for site in self.sites]
            for site, ramp in zip(self.sites, self._ramps, strict=True):
                self._replace(site, ramp)
                self._hooks.append(site.module.register_forward_pre_hook(_untouched))

    def step(self) -> None:
        """Say that the optimizer has made a step."""
        self.go_to(self.steps + 1)
        gently = (self.opening.rate, self.opening.warm_up) != (1.0, 0)
        if self.is_open and self._since == 1 and gently and not self._watches:
            text = "rate and warm_up have no effect on an optimizer that is not watched: delay.watch(optimizer)"
            warnings.warn(text, DelayWarning, stacklevel=2)

    def go_to(self, steps: int) -> None:
        """Say how many steps the optimizer has made in all."""
        self.steps = steps
        if not self.is_open and not self.waits and isinstance(self.until, int) and steps >= self.until:
            self.open()
        if self._ramps:
            weight = self.opening.weight(self._since)
            for ramp in self._ramps:
                ramp.weight.fill_(weight)
            if weight == 1.0:
                self._restore()

    def observe(self, metrics: Mapping[str, Any]) -> None:
        """Say what an evaluation found, for an `until` that asks for it."""
        if self.is_open or self.waits or self.until is None or isinstance(self.until, int):
            return
        try:
            fulfilled = self.until(metrics)
        except KeyError as missing:
            if not self._missed:
                known = ", ".join(sorted(map(str, metrics))) or "nothing"
                warnings.warn(f"until= asks for {missing}, and there is: {known}", DelayWarning, stacklevel=2)
            self._missed = True
            return
        if fulfilled:
            self.open()

    def watch(self, optimizer: Optimizer, counts: bool = True) -> Delay:
        """Count this optimizer's steps, and scale those of the opened part where `rate` or `warm_up` say so.

        Of several, the first counts; none does with `counts=False`, where somebody else calls `step` or `go_to`.
        """
        optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        require(isinstance(optimizer, Optimizer), f"what is watched is an optimizer, not {a_kind(optimizer)}")
        require(all(watch.optimizer is not optimizer for watch in self._watches), "this delay watches this optimizer already")
        if not self.is_open:
            self.forget(optimizer)
        share = lambda: self.opening.share(self._since) if self.is_open else 1.0  # noqa: E731
        stepped = self.step if counts and not self._watches else lambda: None
        self._watches.append(Watch(optimizer, list(self.parameters()), share, stepped))
        return self

    def unwatch(self, optimizer: Optimizer) -> None:
        """Let go of an optimizer; one that is not watched is let go of already."""
        optimizer = getattr(optimizer, "optimizer", optimizer)
        for watch in [each for each in self._watches if each.optimizer is optimizer]:
            watch.remove()
            self._watches.remove(watch)

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that stand still while closed, each once."""
        yield from dict.fromkeys(parameter for site in self.sites for parameter in site.parameters())

    def forget(self, optimizer: Optimizer) -> None:
        """Drop what the optimizer remembers of these parameters, so that they start afresh when they are opened."""
        for parameter in self.parameters():
            optimizer.state.pop(parameter, None)

    def remove(self) -> None:
        """Leave the model as it was found."""
        self.is_open = True
        self._restore()
        while self._watches:
            self._watches.pop().remove()
        for site in self.sites:
            if site.module in HELD and HELD[site.module]() is self:
                del HELD[site.module]

    def is_of(self, model: nn.Module) -> bool:
        """Whether its modules are in this model."""
        inside = set(model.modules())
        return all(site.module in inside for site in self.sites)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint should keep of it; JSON can."""
        return {
            "sites": [site.name for site in self.sites],
            "until": self.until if isinstance(self.until, int) or self.until is None else "a metric",
            "steps": self.steps,
            "opened_at": self.opened_at,
            "is_open": self.is_open,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on as the checkpoint has it: open if it was, closed if it was."""
        mine = self.state_dict()
        require(mine.keys() <= state.keys(), "this is not the state of a delay" + " but of stages" * ("stages" in state))
        same = ("rule" in state) == ("rule" in mine)
        require(same, "the checkpoint is of attention that opens by chance or by a window: make the delay with the same call")
        strange = [name for name in state["sites"] if name not in mine["sites"]]
        lacking = [name for name in mine["sites"] if name not in state["sites"]]
        require(
            not strange and not lacking,
            f"the checkpoint is of a model in which other parts are delayed: {', '.join(strange or lacking)} "
            f"{'is not among those of this one' if strange else 'is not among its'}",
        )
        if state["until"] != mine["until"]:
            text = f"this run was begun with until={state['until']} and goes on with until={mine['until']}"
            warnings.warn(text, DelayWarning, stacklevel=2)
            late = not state["is_open"] and isinstance(self.until, int) and self.until <= state["steps"]
            require(not late, f"until={self.until} is in the past: the checkpoint is closed after {state['steps']} steps")
        self.is_open = self.is_open and not state["is_open"]  # what was opened gently is opened anew, as far as it had come
        (self.open if state["is_open"] else self.close)()
        self.opened_at = state["opened_at"]
        self.go_to(state["steps"])

    def __repr__(self) -> str:
        return "\n".join([f"Delay, {self._status()}:", *_table(self.sites)])

    def _status(self) -> str:
        if self.is_open:
            return "open" if self.opened_at is None else f"open since step {self.opened_at}"
        until = f" until step {self.until}" if isinstance(self.until, int) else " until a metric says so" if self.until else ""
        return f"closed{until}"

    @property
    def is_settled(self) -> bool:
        """Open, and for good; one that is open by chance, or in part, is not."""
        return self.is_open

    @property
    def waits(self) -> bool:
        """For one that has to be open before."""
        return self.after is not None and not self.after.is_settled

    @property
    def _since(self) -> int:
        """Steps since it was opened."""
        return self.steps - (self.opened_at or 0)

    def _replace(self, site: Site, forward: Off | Ramped) -> None:
        own = vars(site.module).get("forward")
        # Ours, if it is there, is that of a copied model, or of a delay that is gone.
        forward.found = own.found if isinstance(own, (Off, Ramped)) else own
        site.module.forward = forward

    def _restore(self) -> None:
        """Every module's forward as it was found."""
        for site in self.sites:
            ours = vars(site.module).get("forward")
            if isinstance(ours, (Off, Ramped)):
                del site.module.forward
                vars(site.module).update({} if ours.found is None else {"forward": ours.found})
        while self._hooks:
            self._hooks.pop().remove()
        self._ramps = []


def _table(sites: tuple[Site, ...]) -> list[str]:
    rows = [("module", "parameters", "while off")]
    for site in sites:
        shared = f"; shared with other parts, where they learn on: {', '.join(site.shared)}" if site.shared else ""
        instead = str(site.stand_in) if isinstance(site.stand_in, StandIn) else getattr(site.stand_in, "__name__", "own")
        rows.append((site.name, f"{sum(each.numel() for each in site.parameters()):,}", instead + shared))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {name:<{wide[0]}}  {count:>{wide[1]}}  {instead}" for name, count, instead in rows]
