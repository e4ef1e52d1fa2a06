"""Hooks on modules and parameters that are off. They are functions, so that they are known again on a copy of a model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from lengthlab.switch.state import DelayWarning
from lengthlab.switch.wrappers import require_unused_are_found


class Holder(Protocol):
    """A delay, which has a module."""

    is_looked_at: bool

    def look(self) -> None: ...


HELD: WeakKeyDictionary[nn.Module, ref[Holder]] = WeakKeyDictionary()
"""Which delay has a module, as long as there is one."""
TOLD: WeakSet[nn.Module] = WeakSet()
"""Modules of which it was said that nobody will open them."""
ORPHAN = (
    "a module ({}) of a copied or loaded model is off, and no delay knows of it, so it stays off: delay.mirror(copy) opens a "
    "copy together with its model, close_again(model) makes a delay of a loaded one"
)


def look(module: nn.Module, inputs: object) -> None:
    """Before a closed module: is there somebody to open it, and does what was put around the model since then bear with it?"""
    if torch.compiler.is_compiling():
        return
    holder = HELD[module]() if module in HELD else None
    if module not in HELD and module not in TOLD:
        TOLD.add(module)
        warnings.warn(ORPHAN.format(type(module).__name__), DelayWarning, stacklevel=2)
    if torch.is_grad_enabled():
        # Private: nothing public tells a module what wraps it. If it goes, only this check does.
        require_unused_are_found(getattr(DistributedDataParallel, "_active_ddp_module", None))
        if holder is not None and not holder.is_looked_at:
            holder.look()


def untouched(module: nn.Module, inputs: object) -> None:
    """Does nothing, for torch's fused transformer layer: it calls its attention module only if that has a hook."""


def clear(module: nn.Module) -> None:
    """None of our hooks, not even those that came with a copy."""
    # Private: handles are lost where a model is copied. If it goes, hooks that do nothing stay on copies.
    hooks = module._forward_pre_hooks
    for key in [key for key, hook in hooks.items() if hook in (look, untouched)]:
        del hooks[key]


def copied_to_look_at(network: nn.Module) -> nn.Module:
    """A copy of a model that is looked at and thrown away: what is off in it may stay so, and nobody has to be told."""
    made = copy.deepcopy(network)
    TOLD.update(made.modules())
    return made


def drop_gradients(parameters: Iterable[nn.Parameter], model: nn.Module | None) -> None:
    """Of these, and all zeros in the model: where `zero_grad(set_to_none=False)` has left them to a parameter that nothing
    feeds any more, a norm before attention, an optimizer would move and decay it.
    """
    for parameter in parameters:
        parameter.grad = None
    for parameter in model.parameters() if model is not None else ():
        if parameter.grad is not None and not bool(parameter.grad.any()):
            parameter.grad = None


def hold(parameter: nn.Parameter) -> RemovableHandle:
    """Drop each gradient that a parameter gets, until the handle is removed."""
    register: Callable[..., RemovableHandle] = parameter.register_post_accumulate_grad_hook
    return register(_drop)


def _drop(parameter: Tensor) -> None:
    parameter.grad = None
