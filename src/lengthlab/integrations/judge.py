"""A judge of a closed delay: by numbers alone, without anything that the switch itself looks at.

What a closed model should give is what the untouched one gives with its attention weights at zero. For that to be exact, every
bias is zero, and whatever the library starts at (almost) nothing, like a gate, is drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from lengthlab.errors import require
from lengthlab.integrations.batches import Batch
from lengthlab.integrations.zeroing import Zeroed
from lengthlab.switch import Delay

CLOSE = 1e-4
NOT_OUTPUTS = ("past", "cache", "attentions", "mems", "buckets", "loss", "kv_states", "rnn_state")
"""Entries of an output that are no output: what is kept for the next token, and the like."""
MAIN = ("logits", "last_hidden_state", "feature_maps")
Names = frozenset[str]


class Wrong(Exception):
    """What is wrong with a delay."""


class CannotJudge(Exception):
    """The model itself does not bear with the judge's questions."""


@dataclass(frozen=True)
class Judge:
    """Of one type of model: `build` gives the same untouched model each time.

    >>> from lengthlab.integrations.batches import batches_for
    >>> from lengthlab.integrations.small_models import SmallModel
    >>> from lengthlab.switch import delay_attention
    >>> llama = SmallModel("llama", "causal").build
    >>> judge = Judge(llama, batches_for(llama()))
    >>> model = judge.model()
    >>> judge.examine(model, delay_attention(model))
    """

    build: Callable[[], nn.Module]
    batches: tuple[Batch, Batch]

    def model(self) -> nn.Module:
        """A fresh one, as the judge wants it."""
        return prepare(self.build())

    def calls(self) -> int:
        """How often attention is met in one forward; the untouched model has to run, and to heed its input."""
        model = self.model()
        try:
            one, other = (outputs(model, batch) for batch in self.batches)
            with Zeroed() as zeroed:
                outputs(model, self.batches[0])
        except Exception as error:
            raise CannotJudge(f"it does not run: {type(error).__name__}: {error}") from error
        if 0 not in _heeding(one, other):
            raise CannotJudge("untouched, it gives the same output for two inputs")
        met: int = zeroed.calls
        return met

    def examine(self, model: nn.Module, delay: Delay) -> None:
        """`Wrong` unless this closed delay of a model of the judge's does all that it should."""
        left: tuple[str, ...] = tuple(getattr(delay, "left", ()))
        self._outputs(model, left)
        self._training(model, delay, left)
        self._opening(model, delay)

    def _outputs(self, model: nn.Module, left: tuple[str, ...]) -> None:
        """Closed, the model heeds its input and gives what it gives with attention at zero."""
        untouched = self.model()
        model.eval()
        heeding = _heeding(*(outputs(untouched, batch) for batch in self.batches))
        closed = [outputs(model, batch) for batch in self.batches]
        _require(0 in _heeding(*closed), "closed, its output is the same for any input")
        _require(heeding <= _heeding(*closed), "closed, one of its outputs is the same for any input")
        if left:
            with Zeroed():
                without = _heeding(*(outputs(untouched, batch) for batch in self.batches))
            _require(not heeding <= without, f"{left[0]} stays on, and the input reaches every output without it")
        for batch, found in zip(self.batches, closed, strict=True):
            with Zeroed(_modules(untouched, left)):
                wanted = outputs(untouched, batch)
            _require(_same(found, wanted), f"closed, outputs are not those without attention{_apart(found, wanted)}")

    def _training(self, model: nn.Module, delay: Delay, left: tuple[str, ...]) -> None:
        """Parameters of attention, and only they, stand still."""
        untouched = self.model()
        on = self._gradients(untouched)
        with Zeroed(_modules(untouched, left)):
            off = self._gradients(untouched)
        fed = frozenset(name for name in on if on[name] and not off.get(name))
        added = _added(untouched, fed)
        # A norm of nothing but attention: that its bias learns is as right as that it stands still.
        either = frozenset(name for name in added if _is_of_norm(untouched, name))
        still = (fed | added) - either
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.5)
        delay.watch(optimizer)
        model.train()
        for _ in range(2):
            optimizer.zero_grad()
            for batch in self.batches:
                loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        for name, parameter in model.named_parameters():
            moved = not torch.equal(parameter, before[name])
            if name in still:
                _require(not moved, f"{name} is of attention, and moves while closed")
                _require(parameter not in optimizer.state, f"{name} is of attention, and has a state in the optimizer")
            elif off.get(name) and name not in either:
                _require(moved, f"{name} is not of attention, and stands still while closed")

    def _opening(self, model: nn.Module, delay: Delay) -> None:
        """Opened and removed, it is the untouched model with the weights that it has now."""
        untouched = self.model()
        untouched.load_state_dict(model.state_dict())
        model.eval()
        delay.open()
        for then in ("open()", "remove()"):
            for batch in self.batches:
                same = _same(outputs(model, batch), outputs(untouched, batch))
                _require(same, f"after {then}, outputs are not those of the untouched model")
            delay.remove()
        _require(_traces(model) == _traces(untouched), "remove() leaves hooks or forwards behind")

    def _gradients(self, model: nn.Module) -> dict[str, bool]:
        """By parameter that has a gradient, whether it is anything but zero."""
        model.train().zero_grad()
        for batch in self.batches:
            loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
        model.eval()
        return {name: bool(each.grad.any()) for name, each in model.named_parameters() if each.grad is not None}


def prepare(model: nn.Module) -> nn.Module:
    """Biases at zero, gates open, nothing at random; matrices large enough that everything counts."""
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.numel() == 0 or _is_bias(name, parameter):
                parameter.zero_()
            elif float(parameter.abs().max()) <= 0.1 and float(parameter.min()) == float(parameter.max()):
                parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.3)
            elif parameter.dim() > 1 and 0 < (spread := float(parameter.std())) < (wide := _spread(parameter)):
                parameter.mul_(wide / spread)
    for module in model.modules():
        for chance in ("p", "drop_prob", "layerdrop"):
            if isinstance(getattr(module, chance, None), float) and ("Drop" in type(module).__name__ or chance != "p"):
                setattr(module, chance, 0.0)
    return model.eval()


def _spread(matrix: Tensor) -> float:
    """With which a matrix or a kernel gives numbers about as large as it is given."""
    return 1.4 / math.sqrt(max(matrix[0].numel(), 4))


def outputs(model: nn.Module, batch: Batch) -> list[Tensor]:
    """The numbers that a model gives, the main ones first."""
    torch.manual_seed(0)  # some models draw a mask
    output = model(**deepcopy(batch))
    if isinstance(output, Mapping):
        output = {name: output[name] for name in sorted(output, key=lambda name: name not in MAIN)}
    found = list(_tensors(output))
    require(len(found) > 0, "the model gives no numbers")
    return found


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """Squares of all outputs, weighted at random and always alike."""
    draw = torch.Generator().manual_seed(11)
    terms = [
        (torch.where(each.isfinite(), each, 0.0).float() ** 2 * torch.rand(each.shape, generator=draw)).mean()
        for each in outputs(model, batch)
        if each.requires_grad
    ]
    return torch.stack(terms).sum()


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, Mapping):
        for name, each in output.items():
            if name != "state" and not any(word in name for word in NOT_OUTPUTS):
                yield from _tensors(each)
    elif isinstance(output, (list, tuple)):
        for each in output:
            yield from _tensors(each)


def _same(found: list[Tensor], wanted: list[Tensor], share: float = CLOSE) -> bool:
    """Whether nothing is farther apart than this share of the largest number."""
    return len(found) == len(wanted) and all(
        one.shape == other.shape and torch.allclose(one, other, rtol=share, atol=share * _largest(other), equal_nan=True)
        for one, other in zip(found, wanted, strict=True)
    )


def _largest(numbers: Tensor) -> float:
    """Apart from what stands for minus infinity."""
    moderate = numbers[numbers.abs() < 1e30].abs()
    return float(moderate.max()) if moderate.numel() else 0.0


def _heeding(one: list[Tensor], other: list[Tensor]) -> set[int]:
    """Which outputs are others for another input."""
    return {number for number, pair in enumerate(zip(one, other, strict=True)) if not _same([pair[0]], [pair[1]], 1e-6)}


def _apart(found: list[Tensor], wanted: list[Tensor]) -> str:
    """How far, where that can be said."""
    if [each.shape for each in found] != [each.shape for each in wanted]:
        return ": their shapes differ"
    farthest = max(float((one - other).abs().max()) for one, other in zip(found, wanted, strict=True))
    return f": {farthest:.2g} apart"


def _modules(model: nn.Module, names: tuple[str, ...]) -> frozenset[nn.Module]:
    return frozenset(model.get_submodule(name) for name in names)


def _is_bias(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() == 1 and "bias" in name


def _added(model: nn.Module, still: Names) -> Names:
    """Biases beside parameters that all are of attention: with attention at zero, nothing else would be added."""
    known = dict(model.named_parameters())
    plain = [name for name, parameter in known.items() if not _is_bias(name, parameter)]
    return frozenset(
        name
        for name, parameter in known.items()
        if _is_bias(name, parameter)
        and (beside := [other for other in plain if other.startswith(_place(name))])
        and still.issuperset(beside)
    )


def _place(name: str) -> str:
    """What the names of everything in the same module begin with."""
    return name[: name.rfind(".") + 1]


def _is_of_norm(model: nn.Module, name: str) -> bool:
    return "norm" in type(model.get_submodule(_place(name).rstrip("."))).__name__.lower()


def _traces(model: nn.Module) -> tuple[int, int]:
    """Forwards of objects' own, and hooks. Private: where torch keeps hooks; if these go, only forwards are counted."""
    kept = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = sum(len(getattr(module, name, ())) for module in model.modules() for name in kept)
    hooks += sum(len(each._backward_hooks or ()) for each in model.parameters())
    return sum("forward" in vars(module) for module in model.modules()), hooks


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise Wrong(text)
