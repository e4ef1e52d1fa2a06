"""A model tried out on two inputs: what still depends on them, and what still learns, while attention gives nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.switch.inputs import Example
from lengthlab.switch.module_call import leaves
from lengthlab.switch.rest import at_rest, without_hooks
from lengthlab.switch.trace import AttentionCall, Trace, watch_forward, without_fast_path

ROUNDING = 1e-6
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

    def in_training(self) -> Trace | None:
        """A watched forward in training mode; None where the model does not take the example there."""
        self.model.train()
        try:
            return self.forward(0)
        except Exception:  # whatever a model asks for besides when it trains
            return None
        finally:
            self.model.eval()

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
        with without_hooks(parameters):
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
    if len(first.outputs) != len(second.outputs):
        return ()
    return tuple(one != two for one, two in zip(first.outputs, second.outputs, strict=True))


def blind_rows(on: tuple[Trace, Trace], off: tuple[Trace, Trace]) -> bool:
    """Whether rows of an output that depend on the input do not any more."""
    moved = [[_moved_rows(one, other) for one, other in zip(*map(_tensors, pair), strict=False)] for pair in (on, off)]
    return any(
        before.shape == now.shape and bool((before & ~now).any()) and bool(now.any())
        for before, now in zip(*moved, strict=False)
    )


def _tensors(trace: Trace) -> list[Tensor]:
    return [each for each in leaves(trace.output) if each.is_floating_point() and each.dim() > 1]


def _moved_rows(one: Tensor, other: Tensor) -> Tensor:
    if one.shape != other.shape:
        return torch.ones((), dtype=torch.bool)
    return (one != other).any(dim=-1).cpu()


def same_outputs(first: Trace, second: Trace) -> bool:
    """Whether two forwards gave the same numbers. Adding nothing rounds nothing, so they are the same to the last bit; but for
    a millionth, which a GPU that sums in another order may be off.
    """
    ones, twos = list(leaves(first.output)), list(leaves(second.output))
    return len(ones) == len(twos) and all(_same(one, two) for one, two in zip(ones, twos, strict=True))


def _same(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    a, b = one.detach().cpu().double(), two.detach().cpu().double()
    off = a.ne(b) & ~(a.isnan() & b.isnan())
    if not off.any():
        return True
    finite = a.isfinite() & b.isfinite()
    scale = b.where(finite, 0.0).abs()
    largest = scale.amax(dim=-1, keepdim=True) if scale.dim() else scale  # of a row: one large number hides no small one
    return bool(((a - b).abs() <= ROUNDING * largest)[off & finite].all()) and not bool((off & ~finite).any())


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
