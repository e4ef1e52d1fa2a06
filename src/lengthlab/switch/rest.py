"""A model at rest, while it is tried: nothing of the trial stays.

Modes, buffers, caches, hooks, modules that it exchanges, random numbers and weights are as they were.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

TINY = 1e-2
"""A parameter whose numbers are all the same and at most this is a gate, a scale or a map that begins closed."""
WRITABLE = (dict, OrderedDict, defaultdict, Counter, list, set, deque)
"""Attributes of a module whose content is put back: those of a kind that can be emptied and filled."""
DEPTH = 3
"""So deep in one another."""
# Private: where torch keeps parameters. Those of a model in shards are exchanged by what sharded it, which knows best.
LEFT = ("_parameters",)
Undo = Callable[[], None]


@contextmanager
def at_rest(model: nn.Module, biases: bool = True) -> Iterator[None]:
    """In evaluation mode, uncompiled, with maps of zeros disturbed so that something passes; afterwards all is as it was.

    Without its biases, what is made of nothing is nothing.
    """
    with ExitStack() as after:
        for module in model.modules():
            after.callback(_put_back, module, *_attributes(module))
        for buffer in model.buffers():
            after.callback(_kept_tensor(buffer))
        after.callback(random.setstate, random.getstate())
        after.callback(np.random.set_state, np.random.get_state())
        after.enter_context(torch.compiler.set_stance("force_eager"))
        after.enter_context(_disturbed(model, biases))
        model.eval()
        yield


@contextmanager
def without_hooks(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """No gradient of these is heard of: an optimizer that steps in the backward would."""
    # Private: nothing public takes hooks away for a moment. If it goes, they stay, and hear of it.
    theirs = [hooks for each in parameters if (hooks := each._post_accumulate_grad_hooks)]
    before = [dict(hooks) for hooks in theirs]
    for hooks in theirs:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, content in zip(theirs, before, strict=True):
            hooks.update(content)


def _attributes(module: nn.Module) -> tuple[dict[str, Any], list[Undo]]:
    """As they are, and how what may be written to is put back: a cache, the modules inside, hooks."""
    kept = dict(vars(module))
    return kept, [undo for name, value in kept.items() if name not in LEFT for undo in _kept(value)]


def _put_back(module: nn.Module, attributes: dict[str, Any], undo: list[Undo]) -> None:
    """What a module counts, remembers, hooks on or exchanges while it runs, and whether it trains.

    All of it or nothing: transformers notes in one attribute that its hooks are in another, and would put them in twice.
    """
    now = vars(module)
    for name in [each for each in now if each not in attributes]:
        del now[name]
    now.update(attributes)
    for each in undo:
        each()


def _kept(value: Any, depth: int = DEPTH) -> Iterator[Undo]:
    """How the content of a value is put back."""
    if type(value) is Tensor:
        yield _kept_tensor(value)
    elif isinstance(value, torch.Generator):
        yield partial(_draw_from, value, value.get_state())
    elif type(value) in WRITABLE:
        content = copy(value)
        yield partial(_refill, value, content)
        if depth > 1:
            inner = content.values() if isinstance(content, dict) else content
            yield from (undo for each in inner for undo in _kept(each, depth - 1))


def _draw_from(generator: torch.Generator, state: Tensor) -> None:
    generator.set_state(state)


def _refill(value: Any, content: Any) -> None:
    value.clear()
    (value.extend if isinstance(value, (list, deque)) else value.update)(content)


def _kept_tensor(tensor: Tensor) -> Undo:
    before = tensor.detach().clone()

    def undo() -> None:
        if not torch.equal(tensor, before):
            with torch.no_grad():
                tensor.copy_(before)

    return undo


@contextmanager
def _disturbed(model: nn.Module, biases: bool) -> Iterator[None]:
    """Many models begin with gates, scales or maps that let nothing through yet. Their values are exchanged, not written to."""
    generator = torch.Generator().manual_seed(0)
    exchanged: list[tuple[nn.Parameter, Tensor]] = []
    written: list[tuple[Tensor, Tensor]] = []
    try:
        for name, parameter in model.named_parameters():
            values = parameter.data.to_local() if hasattr(parameter.data, "to_local") else parameter.data  # of a shard
            if type(values) is not Tensor or not values.is_floating_point():  # a quantized one
                continue
            if "bias" in name and parameter.dim() == 1:
                instead = None if biases else torch.zeros_like(values)
            else:
                drawn = torch.randn(values.shape, generator=generator) if _is_shut(values) else None
                instead = None if drawn is None else drawn.to(values) * 0.1
            if instead is None:
                continue
            if not hasattr(parameter.data, "to_local"):
                exchanged.append((parameter, parameter.data))
                parameter.data = instead
            else:
                written.append((values, values.clone()))
                values.copy_(instead)
        yield
    finally:
        for parameter, before in exchanged:
            parameter.data = before
        for values, before in written:
            values.copy_(before)


def _is_shut(values: Tensor) -> bool:
    if values.numel() == 0:
        return False
    first = values.flatten()[0]
    return bool(first.abs() <= TINY) and bool((values == first).all())
