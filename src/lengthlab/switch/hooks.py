"""Hooks on modules and parameters that are off. They are functions, so that they are known again on a copy of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from lengthlab.switch.wrappers import require_unused_are_found


class Holder(Protocol):
    """A delay, which has a module."""

    is_looked_at: bool

    def look(self) -> None: ...


HELD: WeakKeyDictionary[nn.Module, ref[Holder]] = WeakKeyDictionary()
"""Which delay has a module, as long as there is one."""


def look(module: nn.Module, inputs: object) -> None:
    """Before a closed module: does what was put around the model since then bear with parts that are off?"""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # Private: nothing public tells a module what wraps it. If it goes, only this check does.
        require_unused_are_found(getattr(DistributedDataParallel, "_active_ddp_module", None))
        holder = HELD[module]() if module in HELD else None
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


def hold(parameter: nn.Parameter) -> RemovableHandle:
    """Drop each gradient that a parameter gets, until the handle is removed."""
    register: Callable[..., RemovableHandle] = parameter.register_post_accumulate_grad_hook
    return register(_drop)


def _drop(parameter: Tensor) -> None:
    parameter.grad = None
