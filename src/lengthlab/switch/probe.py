"""A model tried out on two inputs: what still depends on them, and what still learns, while attention gives nothing.

Nothing of the trial stays: modes, buffers, random numbers and weights are as they were.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.switch.inputs import Example
from lengthlab.switch.module_call import leaves
from lengthlab.switch.trace import AttentionCall, Trace, watch_forward, without_fast_path

TINY = 1e-2
"""A parameter whose numbers are all the same and at most this is a gate, a scale or a map that begins closed."""
WRITABLE = (dict, OrderedDict, defaultdict, list, set)
"""Attributes of a module whose content is put back: those of a kind that can be emptied and filled."""
Silent = Callable[[AttentionCall], bool]


def nothing(call: AttentionCall) -> bool:
    return False


class Probe:
    """Forwards and gradients of a model on an example and on another one like it. Use it inside `at_rest(model)`."""

    def __init__(self, model: nn.Module, example: Example) -> None:
        self.model, self.examples = model, (example, example.other())

    def forward(self, which: int, silent: Silent = nothing, hushed: Mapping[str, str | None] | None = None) -> Trace:
        """One watched forward."""
        example = self.examples[which]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return watch_forward(self.model, lambda: example.run(self.model), (example.args, example.kwargs), silent, hushed)

    def both(self, silent: Silent = nothing, hushed: Mapping[str, str | None] | None = None) -> tuple[Trace, Trace]:
        return self.forward(0, silent, hushed), self.forward(1, silent, hushed)

    def gradients(self, which: int = 0) -> dict[str, bool | None] | None:
        """Whether each parameter has a gradient that is not zero; None where it has none at all. None instead of all of them
        where the model cannot be trained.
        """
        named = {name: each for name, each in self.model.named_parameters() if each.requires_grad}
        try:
            found = self._differentiate(which, list(named.values()), torch.autograd.grad)
        except Exception:  # some learn in training mode alone, and their layers write gradients by themselves
            self.model.train()
            try:
                found = self._differentiate(which, list(named.values()), _by_backward)
            except Exception:
                return None
            finally:
                self.model.eval()
        return {name: None if each is None else _any(each) for name, each in zip(named, found, strict=True)}

    def _differentiate(
        self, which: int, parameters: list[nn.Parameter], differentiate: Callable[..., Sequence[Tensor | None]]
    ) -> Sequence[Tensor | None]:
        with torch.enable_grad(), torch.random.fork_rng(), without_fast_path(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            loss = _weighed(self.examples[which].run(self.model))
            if loss is None or not parameters:
                return [None] * len(parameters)
            return differentiate(loss, parameters, allow_unused=True)


def _by_backward(loss: Tensor, parameters: list[nn.Parameter], allow_unused: bool) -> list[Tensor | None]:
    """The same by way of `.grad`, which is as it was afterwards."""
    before = [parameter.grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        return [parameter.grad for parameter in parameters]
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient


def runs(model: nn.Module, example: Example) -> bool:
    """Whether a model takes an example at all."""
    with at_rest(model), torch.no_grad(), torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return next(leaves(example.run(model)), None) is not None
        except Exception:  # whatever a model makes of numbers that were not meant for it
            return False


def was_at_work(trace: Trace, parameter: str) -> bool:
    """Whether the module that has a parameter was called with anything: an expert to which no token goes is not."""
    return any(not call.empty for call in trace.modules.get(parameter.rpartition(".")[0], []))


def moved_outputs(first: Trace, second: Trace) -> tuple[bool, ...]:
    """Of each tensor that the model gives, whether the other input changes it."""
    return tuple(one != two for one, two in zip(first.outputs, second.outputs, strict=False))


def same_outputs(first: Trace, second: Trace) -> bool:
    """Whether two forwards gave the same numbers, up to rounding."""
    ones, twos = list(leaves(first.output)), list(leaves(second.output))
    return len(ones) == len(twos) and all(_close(one, two) for one, two in zip(ones, twos, strict=True))


def _close(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if not one.is_floating_point():
        return bool(torch.equal(one, two))
    a, b = one.detach().double(), two.detach().double()
    fine = 1e-2 if one.dtype in (torch.float16, torch.bfloat16) else 1e-4
    return bool(torch.allclose(a, b, rtol=fine, atol=fine * float(b.nan_to_num().abs().max() + 1e-6), equal_nan=True))


def _any(gradient: Tensor) -> bool:
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient  # a shard of it
    local = local.coalesce().values() if local.is_sparse else local
    return bool((local != 0).any())


def _weighed(output: Any) -> Tensor | None:
    """A number that depends on every number of an output."""
    total: Tensor | None = None
    for number, each in enumerate(leaves(output)):
        if each.is_floating_point() and each.requires_grad:
            weights = torch.randn(each.shape, generator=torch.Generator().manual_seed(number)).to(each.device)
            part = (each.float() * weights).sum()
            total = part if total is None else total + part
    return total


@contextmanager
def at_rest(model: nn.Module, biases: bool = True) -> Iterator[None]:
    """In evaluation mode, uncompiled, with maps of zeros disturbed so that something passes; afterwards all is as it was.

    Without its biases, what is made of nothing is nothing.
    """
    as_it_was = [(module, _attributes(module)) for module in model.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    with ExitStack() as after:
        after.callback(_make_as_before, as_it_was)
        after.callback(_put_back, buffers)
        after.enter_context(torch.compiler.set_stance("force_eager"))
        after.enter_context(_disturbed(model, biases))
        model.eval()
        yield


def _attributes(module: nn.Module) -> dict[str, tuple[Any, Any]]:
    """As they are, and a copy of what may be written to: a cache, the modules inside, hooks."""
    return {name: (value, copy(value) if type(value) in WRITABLE else None) for name, value in vars(module).items()}


def _make_as_before(as_it_was: list[tuple[nn.Module, dict[str, tuple[Any, Any]]]]) -> None:
    """What a module counts, remembers, hooks on or exchanges while it runs, and whether it trains.

    All of it or nothing: transformers notes in one attribute that its hooks are in another, and would put them in twice.
    """
    for module, attributes in as_it_was:
        now = vars(module)
        for name in [each for each in now if each not in attributes]:
            del now[name]
        for name, (value, content) in attributes.items():
            now[name] = value
            if content is not None:
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(content)


def _put_back(buffers: list[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for buffer, before in buffers:
            if not torch.equal(buffer, before):
                buffer.copy_(before)


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
