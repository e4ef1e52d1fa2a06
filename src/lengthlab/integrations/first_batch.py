"""The first batch of a training, on which a delay is checked: `delay.check` before the first update, once.

A trainer hands its batch to a training step of somebody's own, which calls the model as it likes. So what is kept is the call
itself: the outermost module that has all the sites in it and is called. The check leaves no trace: random numbers, gradients,
buffers, modes and hooks are afterwards what they were.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from lengthlab.switch import Delay, DelayWarning, Stages
from lengthlab.switch.inputs import Example


class FirstBatch:
    """Waits for the first call of a model with parts that are off, and checks the delay on what it was called with."""

    def __init__(self, delay: Delay | Stages, model: nn.Module) -> None:
        self.delay = delay
        self._call: tuple[nn.Module, tuple[Any, ...], dict[str, Any], tuple[bool, torch.dtype]] | None = None
        self._compiled = False
        self._hooks: list[RemovableHandle] = []
        self._forwards: dict[nn.Module, Any] = {}
        if not delay.is_open:
            sites = {site.module for site in delay.sites}
            # All of them around every site: which is called first, and so is the outermost, only the call tells.
            around = [module for module in model.modules() if module not in sites and sites <= set(module.modules())]
            self._forwards = {module: module.forward for module in around}
            self._hooks = [module.register_forward_pre_hook(self._keep, with_kwargs=True) for module in around]

    def _keep(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            self._compiled = True
        elif module.forward != self._forwards[module]:  # Lightning under DDP has its training step there, for a moment
            return
        elif self._call is None and module.training and torch.is_grad_enabled():
            self._call = module, inputs, dict(named), _autocast(inputs, named)

    def check(self) -> None:
        """Before an update: check, if there was a batch, and let go of the model. A second time it does nothing."""
        waiting, call = bool(self._hooks), self._call
        self.end()
        if not waiting or self.delay.is_open:
            return
        if call is None:
            if not self._compiled:
                text = "the parts that are off were not checked: the training step does not call one module that has them all; "
                warnings.warn(text + "delay.check(batch, model) checks them", DelayWarning, stacklevel=2)
            return
        module, inputs, named, (enabled, dtype) = call
        kind = _device(inputs, named)
        with torch.autocast(kind, dtype) if enabled else nullcontext():
            self.delay.check(Example(inputs, named), module)

    def end(self) -> None:
        """Let go of the model."""
        while self._hooks:
            self._hooks.pop().remove()
        self._call, self._forwards = None, {}


def _tensors(inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Tensor]:
    return [each for each in (*inputs, *named.values()) if isinstance(each, Tensor)]


def _device(inputs: tuple[Any, ...], named: dict[str, Any]) -> str:
    return next((each.device.type for each in _tensors(inputs, named)), "cpu")


def _autocast(inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[bool, torch.dtype]:
    """Whether the call was made in lower precision: the check is made outside of the trainer's own context."""
    kind = _device(inputs, named)
    return torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
