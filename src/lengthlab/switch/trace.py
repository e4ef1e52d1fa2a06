"""One forward, watched: where softmax attention is computed, and what every module gave.

Below autograd every spelling of attention (`@`, einsum, `F.softmax`, a fused function) is one of a few operations; labels.py
knows which of these make scores, and which take a softmax of them.
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
from lengthlab.switch.labels import SOFTMAX, Labels, Scores
from lengthlab.switch.module_call import ModuleCall, leaves, mark, named_arguments, seen_call, silenced

FUSED = ("scaled_dot_product", "multi_head_attention", "flash_attn", "efficient_attention", "transformer_encoder_layer")
"""Pieces of the names of operations that are attention as a whole."""


@dataclass(frozen=True)
class AttentionCall:
    """One computation of attention in a forward: the modules it lies in, from the outermost to the innermost."""

    operation: str
    modules: tuple[str, ...]
    before: int = 0
    """How many like it came before it."""
    crosses: bool = field(default=False, compare=False)
    """Whether what looks and what is looked at depend on different inputs of the model."""


@dataclass
class Trace:
    """What was seen in one forward."""

    attention: list[AttentionCall] = field(default_factory=list)
    softmax: list[AttentionCall] = field(default_factory=list)
    """Of anything else."""
    by_hand: list[AttentionCall] = field(default_factory=list)
    """Exponentials of scores, with which a softmax begins that is written out."""
    odd: list[AttentionCall] = field(default_factory=list)
    """Where a softmax of something else weighs values that depend on the input."""
    modules: dict[str, list[ModuleCall]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    """A mark of each tensor that the model gave, in the order of their names or places."""
    output: Any = None


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation of a forward. `silent(call)` says which attention gives zeros."""

    def __init__(self, model: nn.Module, inputs: Any, silent: Callable[[AttentionCall], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace, self.stack, self.paused = Trace(), [""], False
        self._silent, self._labels = silent, Labels(model, inputs)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.paused:
            return out
        name = func.name().split("::")[-1].split(".")[0]
        inputs = list(leaves((args, kwargs or {})))
        scores = self._scores(name, inputs, args)
        if scores is not None:
            out = self._attend(name, scores, out)
        else:
            self._note(name, inputs)
        self._labels.pass_on(name, inputs, list(leaves(out)), weights=scores is not None)
        return out

    def _scores(self, name: str, inputs: list[Tensor], args: tuple[Any, ...]) -> Scores | None:
        """What an operation weighs by, if it is attention."""
        if any(piece in name for piece in FUSED):
            sides = [self._labels.depends(each) for each in inputs[:2]] if "backward" not in name else []
            return Scores(sides[0], sides[1], (0, 0)) if len(sides) == 2 else None
        over = args[1] if len(args) > 1 and isinstance(args[1], int) else -1
        size = inputs[0].shape[over] if inputs and inputs[0].dim() and name in SOFTMAX else 0
        return self._labels.scores_in(name, inputs, size)

    def _note(self, name: str, inputs: list[Tensor]) -> None:
        """What is no attention that is known, and might be."""
        call = AttentionCall(name, tuple(self.stack[1:]))
        if name in SOFTMAX:
            self.trace.softmax.append(call)
        if self._labels.is_by_hand(name, inputs):
            self.trace.by_hand.append(call)
        if self._labels.weighs_oddly(name, inputs):
            self.trace.odd.append(call)

    def _attend(self, name: str, scores: Scores, out: Any) -> Any:
        place = name, tuple(self.stack[1:])
        before = sum((each.operation, each.modules) == place for each in self.trace.attention)
        call = AttentionCall(*place, before, scores.crosses)
        self.trace.attention.append(call)
        if not self._silent(call):
            return out
        self.paused = True
        first = torch.zeros_like(next(leaves(out)))
        self.paused = False
        return first if isinstance(out, Tensor) else (first, *out[1:])


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
