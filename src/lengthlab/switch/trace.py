"""One forward, watched: where softmax attention is computed, and what every module gave.

Below autograd every spelling of attention (`@`, einsum, `F.softmax`, a fused function) is one of a few operations. A product of
two tensors that both depend on the input makes scores; a softmax of scores makes the weights of attention. A router takes its
softmax of a product with a parameter, and linear attention that of queries and keys each by themselves: neither is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

# Private by its name, and what torch's own documentation tells people to use. If it goes, attention is found by names alone.
from torch.utils._python_dispatch import TorchDispatchMode

from lengthlab.switch.attention import calls_attention
from lengthlab.switch.module_call import ModuleCall, leaves, mark, named_arguments, seen_call, silenced

# Private by their names: operations below autograd, which every spelling comes down to. If one goes, attention that comes down
# to it is not found.
PRODUCTS = ("bmm", "mm", "baddbmm", "addmm", "addbmm", "dot", "mv", "linear", "matmul", "_grouped_mm")
MAPS = (*PRODUCTS, "convolution")
# Private, too: if they go, so does what they find.
SOFTMAX = ("_softmax", "_safe_softmax", "softmax")
# Private, too: if it goes, a router under autocast is taken for attention.
COPIES = ("_to_copy", "clone")
FUSED = ("scaled_dot_product", "multi_head_attention", "flash_attn", "efficient_attention", "transformer_encoder_layer")
"""Pieces of the names of operations that are attention as a whole."""


@dataclass(frozen=True)
class AttentionCall:
    """One computation of attention in a forward: the modules it lies in, from the outermost to the innermost."""

    operation: str
    modules: tuple[str, ...]
    before: int = 0
    """How many like it came before it."""


@dataclass
class Trace:
    """What was seen in one forward."""

    attention: list[AttentionCall] = field(default_factory=list)
    softmax: list[AttentionCall] = field(default_factory=list)
    """Of anything else."""
    modules: dict[str, list[ModuleCall]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    """A mark of each tensor that the model gave, in the order of their names or places."""
    output: Any = None


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Labels tensors by their storage: what depends on the input, what is a score. `silent(call)` says which attention gives
    zeros.
    """

    def __init__(self, model: nn.Module, inputs: Any, silent: Callable[[AttentionCall], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace, self.stack, self.paused = Trace(), [""], False
        self._silent = silent
        self._fluid: set[int] = set()
        """What depends on the input."""
        self._given: set[int] = set()
        """Parameters and buffers as they are: a product with one makes no scores, one with latents made of them does."""
        self._scores: set[int] = set()
        self._mixed: set[int] = set()
        """Scores that went through a product with a parameter, as talking heads mix theirs."""
        self._sums: set[int] = set()
        """Of scores: what Reformer subtracts from them before it takes the exponential, a softmax by hand."""
        self._kept: list[Tensor] = []
        """A storage that is labelled is not given back before the end: its number would be another's."""
        for tensor in leaves(inputs):
            self._label(tensor, self._fluid)
        for tensor in (*model.parameters(), *model.buffers()):
            self._label(tensor, self._given)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.paused:
            return out
        name = func.name().split("::")[-1].split(".")[0]
        inputs = list(leaves((args, kwargs or {})))
        if self._is_attention(name, inputs):
            out = self._attend(name, out)
        elif name in SOFTMAX:
            self.trace.softmax.append(AttentionCall(name, tuple(self.stack[1:])))
        self._pass_on(name, inputs, list(leaves(out)))
        return out

    def _is_attention(self, name: str, inputs: list[Tensor]) -> bool:
        if any(piece in name for piece in FUSED):
            return "backward" not in name
        scores = any(_storage(each) in self._scores or self._is_mixed(each) for each in inputs)
        by_hand = name == "exp" and any(_storage(each) in self._sums for each in inputs)
        return (name in SOFTMAX and scores) or by_hand

    def _is_mixed(self, tensor: Tensor) -> bool:
        """Has heads or is square: else it might be what a router makes of values that were weighted and not mapped."""
        shaped = tensor.dim() >= 4 or (tensor.dim() == 3 and tensor.shape[-1] == tensor.shape[-2])
        return shaped and _storage(tensor) in self._mixed

    def _attend(self, name: str, out: Any) -> Any:
        place = name, tuple(self.stack[1:])
        call = AttentionCall(*place, sum((each.operation, each.modules) == place for each in self.trace.attention))
        self.trace.attention.append(call)
        if not self._silent(call):
            return out
        self.paused = True
        first = torch.zeros_like(next(leaves(out)))
        self.paused = False
        return first if isinstance(out, Tensor) else (first, *out[1:])

    def _pass_on(self, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        fluid = [each for each in inputs if _storage(each) in self._fluid]
        factors = [each for each in (inputs[1:] if "add" in name else inputs) if _storage(each) not in self._given]
        made = name in PRODUCTS and len(factors) >= 2 and bool(fluid)
        cast = name in COPIES and all(_storage(each) in self._given for each in inputs)
        plain = name not in MAPS and name not in SOFTMAX
        score = made or (plain and any(_storage(each) in self._scores for each in inputs))
        # As many as before: a router, or what mixes streams, makes others of them.
        sizes = {each.numel() for each in inputs if _storage(each) in self._scores}
        given = name in MAPS and not made and any(each.numel() in sizes for each in outputs)
        mixed = given or (plain and any(_storage(each) in self._mixed for each in inputs))
        summed = name == "logsumexp" and score
        ready = name == "sub" and len(inputs) > 1 and _storage(inputs[1]) in self._sums
        changed = [*outputs, *inputs[:1]] if name.endswith("_") else outputs  # in place
        for each in changed:
            self._label(each, self._fluid, bool(fluid))
            if cast or not any(_storage(each) == _storage(other) for other in inputs):  # a view is what it is a view of
                self._label(each, self._given, cast)
            self._label(each, self._scores, score and not summed)
            self._label(each, self._mixed, mixed and not score)
            self._label(each, self._sums, summed or ready)

    def _label(self, tensor: Tensor, labelled: set[int], has: bool = True) -> None:
        storage = _storage(tensor)
        if has:
            labelled.add(storage)
            self._kept.append(tensor.detach() if not tensor.requires_grad else tensor.data)
        else:
            labelled.discard(storage)


def _storage(tensor: Tensor) -> int:
    """A number of its memory, which views share."""
    try:
        return int(tensor.untyped_storage()._cdata)  # private: the address alone is not enough for tensors of no memory
    except (NotImplementedError, RuntimeError):  # a tensor that is made of others
        return id(tensor)


def watch_forward(
    model: nn.Module,
    run: Callable[[], Any],
    inputs: Any,
    silent: Callable[[AttentionCall], bool] = lambda call: False,
    hushed: Mapping[str, str | None] | None = None,
) -> Trace:
    """Run a forward and say what was in it. Attention for which `silent` is true gives zeros, and so do the modules `hushed`,
    or the input that is named there.
    """
    watching = Watching(model, inputs, silent)
    names = {module: name for name, module in reversed(list(model.named_modules()))}
    with ExitStack() as hooks, torch.random.fork_rng(_devices(model)), without_fast_path():
        torch.manual_seed(0)
        for module, name in names.items():
            hooks.enter_context(_recorded(watching, module, name, hushed or {}))
        with watching:
            output = run()
    watching.trace.output = output
    watching.trace.outputs = [mark(each) for each in leaves(output)]
    return watching.trace


def _devices(model: nn.Module) -> list[int]:
    return sorted({each.device.index or 0 for each in model.parameters() if each.device.type == "cuda"})


@contextmanager
def without_fast_path() -> Iterator[None]:
    """torch's transformer layer in the way that it trains: in evaluation it has one fused operation of its own."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _recorded(watching: Watching, module: nn.Module, name: str, hushed: Mapping[str, str | None]) -> Iterator[None]:
    """Hooks around a module: who is at work, and what came in and out."""
    given: list[dict[str, Any]] = []

    def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watching.stack.append(name)
        given.append(named_arguments(module, args, kwargs))

    def after(_: nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
        watching.stack.pop()
        watching.paused = True
        inputs = given.pop()
        out = silenced(out, inputs.get(hushed[name] or "")) if name in hushed else out
        watching.trace.modules.setdefault(name, []).append(seen_call(inputs, out))
        watching.paused = False
        return out

    handles = [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def statically_attention(model: nn.Module, seen: Trace) -> dict[str, None]:
    """Modules that call a function of attention, by their code, in which none was seen: a kernel of somebody's own."""
    inside = {name for call in seen.attention for name in call.modules}
    return {
        name: None
        for name, module in model.named_modules()
        if name in seen.modules and name not in inside and calls_attention(module)
    }
