"""The switch: parts of a model that are off at first, and opened later.

Off means skipped: the part's forward does not run, its parameters get no gradient, and so no optimizer moves, decays or keeps
state for them. Where the part stands in a chain, what comes in goes out unchanged; where its output would be added to
something, nothing is added.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from weakref import ref

from torch import nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from lengthlab.errors import LabError, a_kind, require
from lengthlab.switch.agreement import agreed
from lengthlab.switch.cause import name_of, why
from lengthlab.switch.check import check_delays
from lengthlab.switch.copies import Follower, Mirror, same_sites
from lengthlab.switch.delay_report import DelayReport
from lengthlab.switch.forwards import Switched, put, require_ours, take_away
from lengthlab.switch.hooks import HELD, clear, drop_gradients, look, untouched
from lengthlab.switch.hooks import hold as hold_gradient
from lengthlab.switch.opening import Opening, Ramped
from lengthlab.switch.sites import Site, unwrapped
from lengthlab.switch.stand_in import Forward
from lengthlab.switch.state import DelayWarning, require_fitting
from lengthlab.switch.table import status, table
from lengthlab.switch.watch import Watch, forget
from lengthlab.switch.wrappers import require_learners, require_not_flat, require_own_parameters

Until = int | Callable[[Mapping[str, Any]], bool]
"""After so many steps of the optimizer, or when this is true of the metrics of an evaluation."""


class Delay:
    """A set of sites that are off or on together. `delay` and `delay_attention` make one, closed.

    While closed, the `forward` of each module object is replaced (its class, its weights and the names in its state dict are
    untouched); `open` puts it back. `starved` are parameters elsewhere that only the sites feed: they stand still as well.
    """

    def __init__(
        self,
        sites: tuple[Site, ...],
        until: Until | None = None,
        opening: Opening = Opening(),
        starved: tuple[nn.Parameter, ...] = (),
        idle: tuple[nn.Parameter, ...] = (),
        left: tuple[str, ...] = (),
        model: nn.Module | None = None,
        whole: bool = False,
    ) -> None:
        self.sites, self.until, self.opening = sites, until, opening
        self.starved, self.idle, self.left, self.whole = starved, idle, left, whole
        self.is_open = True
        self.is_looked_at = False
        """Whether a forward with gradients has gone through since it was closed."""
        self.steps = 0
        """Steps of the optimizer so far, as `step`, `watch` or a callback counted them."""
        self.opened_at: int | None = None
        self.after: Delay | None = None
        """One that has to be open before this opens by itself."""
        self.model = model
        self.forwards = [Switched(site.stand_in) for site in sites]
        self._first = [ref(parameter) for parameter in self.parameters()]
        self._drops: list[RemovableHandle] = []
        self._ramps: list[Ramped] = []
        self._watches: list[Watch] = []
        self._missed = False
        self.followers: list[Follower] = []
        """Who is told when it opens, closes or counts a step: copies of the model, and the record in its configuration."""

    def close(self) -> None:
        """Off, from the next forward on."""
        if not self.is_open:
            return
        self._restore()
        HELD.update({site.module: ref(self) for site in self.sites})
        for site, ours in zip(self.sites, self.forwards, strict=True):
            put(site.module, ours, self.closed_forward(site, ours))
            site.module.register_forward_pre_hook(look)
        drop_gradients(self.parameters(), self.model)
        self.is_open, self.opened_at = False, None
        self.hold()
        self._tell()

    def closed_forward(self, site: Site, ours: Switched) -> Forward:
        """What a module does while this is closed."""
        return site.stand_in

    def open(self) -> None:
        """On, from the next forward on."""
        if self.is_open:
            return
        for site, ours in zip(self.sites, self.forwards, strict=True):
            require_ours(site.name, site.module, ours)
        self._restore()
        self.is_open, self.opened_at = True, self.steps
        if self.opening.ramp:
            for site, ours in zip(self.sites, self.forwards, strict=True):
                self._ramps.append(Ramped(ours.real(site.module), site.stand_in))
                put(site.module, ours, self._ramps[-1])
                site.module.register_forward_pre_hook(untouched)
        self.hold()
        self._tell()

    def check(self, batch: Any, model: nn.Module | None = None) -> DelayReport:
        """Try it on a batch, as the forward of the model takes it: a tensor, a tuple or a mapping of arguments.

        The input still reaches every output, every part that is off is called and stood in for rightly, no other attention is
        on: or an error says where, and what to do. What only attention feeds is held still from now on. Weights, buffers,
        modes and random numbers stay as they are. `model`: one that holds the delayed one, where the batch is meant for that.
        """
        whole = model if model is not None else self.model
        if whole is None:
            raise LabError("say what model to check: delay.check(batch, model)")
        return check_delays([self], unwrapped(whole), batch)

    def starve(self, parameters: Iterable[nn.Parameter]) -> None:
        """Hold these still as well while closed: only what is off feeds them."""
        self.starved = tuple(dict.fromkeys((*self.starved, *parameters)))
        self.hold()

    def modules_left(self) -> list[nn.Module]:
        """Those whose attention stays on."""
        return [self.model.get_submodule(name) for name in self.left] if self.model is not None else []

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
        self._tell()

    def observe(self, metrics: Mapping[str, Any]) -> None:
        """Say what an evaluation found, for an `until` that asks for it.

        Of processes that train one model each must say it, and all do what the first finds right.
        """
        if self.is_open or self.waits or self.until is None or isinstance(self.until, int):
            return
        fulfilled = False
        try:
            fulfilled = bool(self.until(metrics))
        except KeyError as missing:
            if not self._missed:
                known = ", ".join(sorted(map(str, metrics))) or "nothing"
                warnings.warn(f"until= asks for {missing}, and there is: {known}", DelayWarning, stacklevel=2)
            self._missed = True
        if agreed(fulfilled, [site.module for site in self.sites]):
            self.open()

    def watch(self, optimizer: Optimizer, counts: bool = True) -> Delay:
        """Count this optimizer's steps, and scale those of the opened part where `rate` or `warm_up` say so.

        While closed, a step in which a parameter of the part has a gradient or moves ends in an error. Of several optimizers
        the first counts, and when it is gone the next; so does one that has parameters of the first, which it replaces. None
        does with `counts=False`, where somebody else calls `step` or `go_to`.
        """
        optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        require(isinstance(optimizer, Optimizer), f"what is watched is an optimizer, not {a_kind(optimizer)}")
        require(all(watch.optimizer is not optimizer for watch in self._watches), "this delay watches this optimizer already")
        require_not_flat(parameter for group in optimizer.param_groups for parameter in group["params"])
        self._watches.append(Watch(optimizer, self, list(self.parameters()), counts))
        return self

    def unwatch(self, optimizer: Optimizer) -> None:
        """Let go of an optimizer; one that is not watched is let go of already."""
        optimizer = getattr(optimizer, "optimizer", optimizer)
        for watch in [each for each in self._watches if each.optimizer is optimizer]:
            watch.remove()
            self._watches.remove(watch)

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that stand still while closed, each once."""
        inside = [parameter for site in self.sites for parameter in site.parameters()]
        yield from dict.fromkeys([*inside, *self.idle, *self.starved])

    def forget(self, optimizer: Optimizer) -> None:
        """Drop what the optimizer remembers of these parameters, so that they start afresh when they are opened."""
        forget(optimizer, list(self.parameters()))

    def remove(self) -> None:
        """Leave the model as it was found."""
        self.is_open = True
        self._restore()
        self.hold()
        while self._watches:
            self._watches.pop().remove()
        while self.followers:
            self.followers.pop().end()
        for site in self.sites:
            if site.module in HELD and HELD[site.module]() is self:
                del HELD[site.module]

    def mirror(self, copy: nn.Module) -> Delay:
        """Switch a copy of the model, such as an average of its weights, together with the model; gives the copy's switch."""
        other = Delay(same_sites(self.sites, copy), None, self.opening)
        for site in other.sites:
            require(site.module not in HELD or HELD[site.module]() is None, f"'{site.name}' of the copy is delayed already")
        self.followers.append(Mirror(other))
        HELD.update({site.module: ref(other) for site in other.sites})
        self._tell()
        return other

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
        require_fitting(state, self.state_dict())
        self.is_open = self.is_open and not state["is_open"]  # what was opened gently is opened anew, as far as it had come
        (self.open if state["is_open"] else self.close)()
        self.opened_at = state["opened_at"]
        self.go_to(state["steps"])

    def __repr__(self) -> str:
        return "\n".join([f"Delay, {self.status()}:", *table(self.sites)])

    def status(self) -> str:
        """Whether it is open, in words."""
        return status(self.is_open, self.opened_at, self.until)

    @property
    def rule(self) -> dict[str, Any] | None:
        """What says what is on in a step, as plain data, where that is neither all nor nothing."""
        return None

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

    def _tell(self) -> None:
        for each in self.followers:
            each.follow(self)

    def share(self) -> float:
        """Of a step of the optimizer that these parameters take."""
        return self.opening.share(self._since) if self.is_open else 1.0

    def count(self, watch: Watch) -> None:
        """Hear of a step of a watched optimizer."""
        counting = [each for each in self._watches if each.counts and each.optimizer is not None]
        if watch in counting and (watch is counting[0] or watch.shares(counting[0])):
            self.step()

    def name_of(self, parameter: nn.Parameter) -> str:
        """In the model, as far as that is known."""
        return name_of(parameter, self.sites, self.model)

    def why(self, parameter: nn.Parameter) -> str:
        """What probably gave a gradient to a parameter while it is off."""
        return why(parameter, self.sites, self.forwards)

    def look(self) -> None:
        """At what the model has become since it was closed, once it is trained."""
        require_own_parameters(list(self.parameters()), self._first)
        require_learners(self.model, self.parameters())
        self.is_looked_at = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Delay:
        """With its modules, and watching nobody."""
        copied = memo[id(self)] = copy.copy(self)
        copied.model, copied.sites = copy.deepcopy((self.model, self.sites), memo)
        copied.starved, copied.idle, copied.after = copy.deepcopy((self.starved, self.idle, self.after), memo)
        copied.forwards, copied._ramps = copy.deepcopy((self.forwards, self._ramps), memo)
        copied.followers = copy.deepcopy([each for each in self.followers if not isinstance(each, Mirror)], memo)
        copied._watches, copied._drops = [], []
        copied._first = [ref(parameter) for parameter in copied.parameters()]
        copied.hold()
        HELD.update({site.module: ref(copied) for site in copied.sites})
        return copied

    def hold(self) -> None:
        """Keep gradients from starved parameters while closed, and tell the watches how it is now."""
        self.is_looked_at = False
        while self._drops:
            self._drops.pop().remove()
        if not self.is_open:
            self._drops = [hold_gradient(each) for each in self.starved]
        for watch in self._watches:
            watch.turn()

    def _restore(self) -> None:
        """Every module's forward as it was found, and none of our hooks, not even those that came with a copy."""
        for site, ours in zip(self.sites, self.forwards, strict=True):
            take_away(site.module, ours)
            clear(site.module)
        self._ramps = []
