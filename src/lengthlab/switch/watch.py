"""An optimizer that a delay watches: its steps are counted, what is off is guarded, and opened parts take a share of a step."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from lengthlab.errors import LabError
from lengthlab.switch.counters import Counters, counts_in_group, refuse_average
from lengthlab.switch.guard import Guard

WATCHES: WeakKeyDictionary[Optimizer, list[Watch]] = WeakKeyDictionary()
"""All that watch an optimizer, for several delays."""


class Watched(Protocol):
    """What a watch asks of its delay."""

    is_open: bool
    starved: tuple[nn.Parameter, ...]

    def share(self) -> float:
        """Of a step that what was opened takes."""

    def count(self, watch: Watch) -> None:
        """A step was made."""

    def forget(self, optimizer: Optimizer) -> None:
        """Drop what the optimizer remembers of what is off."""

    def name_of(self, parameter: nn.Parameter) -> str: ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those that stand still while it is closed."""

    def why(self, parameter: nn.Parameter) -> str:
        """What probably gave a gradient to a parameter that is off."""


class Watch:
    """Hooks on an optimizer: before a step, remember these parameters; after it, take back what is more than their share."""

    def __init__(self, optimizer: Optimizer, delay: Watched, parameters: Sequence[nn.Parameter], counts: bool) -> None:
        self._optimizer = ref(optimizer)  # one that is replaced is gone
        self.delay, self.parameters, self.counts = delay, list(parameters), counts
        self._guard = Guard(self.parameters)
        self._counters: Counters | None = None
        self._before: list[Tensor] = []
        self._forgot = False
        self._hooks: list[RemovableHandle] = [
            optimizer.register_step_pre_hook(lambda made, *_: None if _is_within_a_step(made) else self._begin(made)),
            optimizer.register_step_post_hook(lambda made, *_: None if _is_within_a_step(made) else self._end(made)),
            optimizer.register_load_state_dict_post_hook(lambda _: self.turn()),
        ]
        WATCHES.setdefault(optimizer, []).append(self)
        _tell_scaler(optimizer)

    @property
    def optimizer(self) -> Optimizer | None:
        return self._optimizer()

    def remove(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        if self.optimizer is not None:
            WATCHES[self.optimizer].remove(self)
            _tell_scaler(self.optimizer)

    def turn(self) -> None:
        """Say that the delay was closed or opened, or that the optimizer has another state."""
        self._forgot = False
        self.parameters = list(self.delay.parameters())
        self._guard = Guard(self.parameters)

    def shares(self, other: Watch) -> bool:
        """Whether they watch optimizers of the same parameters, one instead of the other or in turn with it."""
        return not _all(self.optimizer).isdisjoint(_all(other.optimizer))

    def _begin(self, optimizer: Optimizer) -> None:
        # Private, as below: of a step without gradients there is nothing to scale, and others than fused ones refuse to.
        if isinstance(vars(optimizer).get("_step_supports_amp_scaling"), Idle) and "found_inf" in vars(optimizer):
            optimizer.grad_scale = optimizer.found_inf = None  # type: ignore[attr-defined]
        if self.delay.is_open:
            # All of them: where the step is given a closure, as Lightning does, gradients come only now.
            self._before = [] if self.delay.share() == 1.0 else [parameter.detach().clone() for parameter in self.parameters]
            return
        for parameter in self.delay.starved:
            parameter.grad = None
        if not self._forgot:  # not before: until then, the state of a checkpoint that is open may come
            self.delay.forget(optimizer)
            self._forgot = True
        self._refuse_gradients()
        self._guard.begin()
        self._counters = Counters(optimizer)

    @torch.no_grad()
    def _end(self, optimizer: Optimizer) -> None:
        if self._before:
            refuse_average(optimizer, self.parameters)
            for parameter, before in zip(self.parameters, self._before, strict=True):
                parameter.copy_(before + self.delay.share() * (parameter - before))
            self._before = []
        if self._counters is not None:
            self._refuse_gradients()
            self._refuse_motion(optimizer)
            self._counters.settle(optimizer, _off(optimizer), self.delay.name_of)
            self._counters = None
        if not _skipped(optimizer):
            self.delay.count(self)

    def _refuse_gradients(self) -> None:
        found = self._guard.with_gradient()
        if found is not None:
            name = self.delay.name_of(found)
            raise LabError(f"'{name}' is off and has a gradient, so it would learn: {self.delay.why(found)}")

    def _refuse_motion(self, optimizer: Optimizer) -> None:
        found = self._guard.moved()
        if found is not None:
            raise LabError(
                f"'{self.delay.name_of(found)}' is off and was moved by a step of {type(optimizer).__name__}, without a"
                " gradient: it decays or drags along all it is given; leave it out until it opens, or use another optimizer"
            )


class Idle:
    """What an optimizer of delayed parameters alone says to a GradScaler, which takes one without any gradient for a mistake
    unless it looks for itself: true as long as it has none.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = ref(optimizer)

    def __bool__(self) -> bool:
        optimizer = self._optimizer()
        return optimizer is not None and all(each.grad is None for group in optimizer.param_groups for each in group["params"])


def _tell_scaler(optimizer: Optimizer) -> None:
    # Private: what fused optimizers say to a GradScaler. If it goes, the scaler ends such a step with an error of its own.
    said = vars(optimizer).get("_step_supports_amp_scaling")
    held = {id(each) for watch in WATCHES[optimizer] for each in watch.parameters}
    if said is None and _all(optimizer) <= held:
        optimizer._step_supports_amp_scaling = Idle(optimizer)  # type: ignore[attr-defined]  # private, as above
    elif isinstance(said, Idle) and not _all(optimizer) <= held:
        del optimizer._step_supports_amp_scaling  # type: ignore[attr-defined]  # private, as above


def forget(optimizer: Optimizer, parameters: Sequence[nn.Parameter]) -> None:
    """Drop what an optimizer remembers of these, unless it counts for them together with others: then that goes on, too."""
    kept = {id(each) for group in optimizer.param_groups if counts_in_group(group) for each in group["params"]}
    for parameter in parameters:
        if id(parameter) not in kept:
            optimizer.state.pop(parameter, None)


def _off(optimizer: Optimizer) -> set[int]:
    """Ids of the parameters that some delay holds still."""
    return {id(each) for watch in WATCHES[optimizer] if not watch.delay.is_open for each in watch.parameters}


def _all(optimizer: Optimizer | None) -> set[int]:
    return {id(each) for group in optimizer.param_groups for each in group["params"]} if optimizer is not None else set()


def _skipped(optimizer: Optimizer) -> bool:
    """Whether a fused step came to nothing, as a GradScaler wants it where a gradient is not finite."""
    found: Any = vars(optimizer).get("found_inf")
    return found is not None and bool(found)


def _is_within_a_step(optimizer: Optimizer) -> bool:
    """Whether this is the step of a base class, called by that of a class of its own: torch calls the hooks for both."""
    if torch.compiler.is_compiling():  # which follows the hooks of the outer step alone, and no frames
        return False
    here = inspect.currentframe()
    hooked = here.f_back.f_back if here and here.f_back else None  # what called the hook that asks
    outer = hooked.f_back if hooked else None
    while hooked and outer:
        if outer.f_code is hooked.f_code and any(each is optimizer for each in outer.f_locals.values()):
            return True
        outer = outer.f_back
    return False
