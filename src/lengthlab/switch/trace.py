"""One forward, watched: where softmax attention is computed, and what every module gave.

Below autograd every spelling of attention (`@`, einsum, `F.softmax`, a fused function) is one of a few operations. A product of
two tensors that both depend on the input makes scores; a softmax of scores makes the weights of attention. A router takes its
softmax of a product with a parameter, and linear attention that of queries and keys each by themselves: neither is found.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Private by its name, and what torch's own documentation tells people to use. If it goes, attention is found by names alone.
from torch.utils._python_dispatch import TorchDispatchMode

from lengthlab.switch.attention import calls_attention

PRODUCTS = ("bmm", "mm", "baddbmm", "addmm", "addbmm", "dot", "mv", "linear", "matmul", "_grouped_mm")
SOFTMAX = ("_softmax", "_safe_softmax", "softmax")
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


@dataclass(frozen=True)
class ModuleCall:
    """One call of a module: what it was given and what it gave, as marks that are equal where the values are."""

    given: Mapping[str, tuple[tuple[int, ...], str]]
    """Shape and mark of each input that is a tensor of numbers, by the name of the argument."""
    shape: tuple[int, ...] | None
    """Of the first tensor among what it gave; None where there is none."""
    mark: str
    """Of that tensor."""
    nothing: bool
    """Whether that is zeros alone."""
    values: int
    """How many values it gave; 0: one, and not in a tuple. -1: in a form that is neither."""
    passed: tuple[tuple[int, str], ...]
    """Which of the values are an input that was handed through."""
    own: tuple[tuple[int, tuple[int, ...]], ...]
    """Which of the values are a parameter, a bias that somebody else is to add, and their shapes."""
    empty: bool
    """Whether it was called with no numbers at all, as an expert is to which no token goes."""
    others: bool
    """Whether more than one tensor is among what it gave."""


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


def leaves(value: Any) -> Iterator[Tensor]:
    """The tensors in a value, however it is nested.

    >>> [tuple(each.shape) for each in leaves({"a": torch.ones(2), "b": (None, [torch.ones(3)])})]
    [(2,), (3,)]
    """
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from leaves(getattr(value, each.name))


def mark(tensor: Tensor) -> str:
    """The same text for the same values, whatever the sign of a zero.

    >>> mark(torch.tensor([0.0, 1.0])) == mark(torch.tensor([-0.0, 1.0])), mark(torch.zeros(2)) == mark(torch.ones(2))
    (True, False)
    """
    plain = tensor.detach()
    if plain.is_floating_point() or plain.is_complex():
        plain = torch.view_as_real(plain) if plain.is_complex() else plain
        plain = torch.nan_to_num(plain.float(), nan=12345.0) + 0.0
    data = plain.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return hashlib.blake2b(data, digest_size=12).hexdigest() + str(tuple(tensor.shape))


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
        scores = any(_storage(each) in self._scores for each in inputs)
        by_hand = name == "exp" and any(_storage(each) in self._sums for each in inputs)
        return (name in SOFTMAX and scores) or by_hand

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
        plain = name not in PRODUCTS and name not in SOFTMAX
        score = made or (plain and any(_storage(each) in self._scores for each in inputs))
        summed = name == "logsumexp" and score
        ready = name == "sub" and len(inputs) > 1 and _storage(inputs[1]) in self._sums
        changed = [*outputs, *inputs[:1]] if name.endswith("_") else outputs  # in place
        for each in changed:
            self._label(each, self._fluid, bool(fluid))
            if cast or not any(_storage(each) == _storage(other) for other in inputs):  # a view is what it is a view of
                self._label(each, self._given, cast)
            self._label(each, self._scores, score and not summed)
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
        given.append(_named(module, args, kwargs))

    def after(_: nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
        watching.stack.pop()
        watching.paused = True
        inputs = given.pop()
        out = _silenced(out, inputs.get(hushed[name] or "")) if name in hushed else out
        watching.trace.modules.setdefault(name, []).append(_seen(inputs, out))
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


def _named(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = argument_names(module)
    return {(names[place] if place < len(names) else str(place)): each for place, each in enumerate(args)} | kwargs


def argument_names(module: nn.Module) -> list[str]:
    """Of its forward, in their order.

    >>> argument_names(nn.Linear(1, 1))
    ['input']
    """
    try:
        parameters = inspect.signature(type(module).forward).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)][1:]


def _silenced(out: Any, instead: Tensor | None) -> Any:
    if isinstance(out, Tensor):
        return torch.zeros_like(out) if instead is None else instead
    several = isinstance(out, tuple) and out and isinstance(out[0], Tensor)
    others = (torch.zeros_like(each) if isinstance(each, nn.Parameter) else each for each in out[1:]) if several else ()
    return (_silenced(out[0], instead), *others) if several else out


def _seen(given: dict[str, Any], out: Any) -> ModuleCall:
    tensors = {name: each for name, each in given.items() if isinstance(each, Tensor) and each.is_floating_point()}
    first = next(leaves(out), None)
    several = type(out) is tuple
    values = len(out) if several else 0 if isinstance(out, Tensor) else -1
    passed = (
        (place, name)
        for place, each in enumerate(out if several else ())
        for name, value in given.items()
        if each is value and each is not None and place
    )
    return ModuleCall(
        {name: (tuple(each.shape), mark(each)) for name, each in tensors.items()},
        None if first is None else tuple(first.shape),
        "" if first is None else mark(first),
        first is not None and not bool(first.any()),
        values,
        tuple(passed),
        tuple(
            (place, tuple(each.shape)) for place, each in enumerate(out if several else ()) if isinstance(each, nn.Parameter)
        ),
        any(each.numel() == 0 for each in tensors.values()),
        len(list(leaves(out))) > 1,
    )


def statically_attention(model: nn.Module, seen: Trace) -> dict[str, None]:
    """Modules that call a function of attention, by their code, in which none was seen: a kernel of somebody's own."""
    inside = {name for call in seen.attention for name in call.modules}
    return {
        name: None
        for name, module in model.named_modules()
        if name in seen.modules and name not in inside and calls_attention(module)
    }
