"""A judge of a closed delay: by numbers alone, without anything that the switch itself looks at.

What a closed model should give is what the untouched one gives with its attention weights at zero. For that to be exact, every
bias is zero, and whatever the library starts at (almost) nothing, like a gate, is drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import AdamW

from lengthlab.integrations.batches import Batch
from lengthlab.integrations.numbers_of_models import apart, heeding, is_bias, loss_of, outputs, prepare, same
from lengthlab.integrations.zeroing import Zeroed
from lengthlab.switch import Delay

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
        if 0 not in heeding(one, other):
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
        heedful = heeding(*(outputs(untouched, batch) for batch in self.batches))
        closed = [outputs(model, batch) for batch in self.batches]
        _require(0 in heeding(*closed), "closed, its output is the same for any input")
        _require(heedful <= heeding(*closed), "closed, one of its outputs is the same for any input")
        if left:
            with Zeroed():
                without = heeding(*(outputs(untouched, batch) for batch in self.batches))
            _require(not heedful <= without, f"{left[0]} stays on, and the input reaches every output without it")
        for batch, found in zip(self.batches, closed, strict=True):
            with Zeroed(_modules(untouched, left)):
                wanted = outputs(untouched, batch)
            _require(same(found, wanted), f"closed, outputs are not those without attention{apart(found, wanted)}")

    def _training(self, model: nn.Module, delay: Delay, left: tuple[str, ...]) -> None:
        """Parameters of attention, and only they, stand still."""
        untouched = self.model()
        on = self._gradients(untouched)
        with Zeroed(_modules(untouched, left)):
            off = self._gradients(untouched)
        fed = frozenset(name for name in on if on[name] and not off.get(name))
        added = _added(untouched, fed)
        # A norm of nothing but attention: that its bias learns is as right as that it stands still. So is a bias beside weights
        # that learn neither with attention nor without it.
        unfed = frozenset(name for name in dict(untouched.named_parameters()) if not off.get(name))
        either = frozenset(name for name in added if _is_of_norm(untouched, name)) | (_added(untouched, unfed) - added)
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
                alike = same(outputs(model, batch), outputs(untouched, batch))
                _require(alike, f"after {then}, outputs are not those of the untouched model")
            delay.remove()
        _require(_traces(model) == _traces(untouched), "remove() leaves hooks or forwards behind")

    def _gradients(self, model: nn.Module) -> dict[str, bool]:
        """By parameter that has a gradient, whether it is anything but zero."""
        model.train().zero_grad()
        for batch in self.batches:
            loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
        model.eval()
        return {name: bool(each.grad.any()) for name, each in model.named_parameters() if each.grad is not None}


def _modules(model: nn.Module, names: tuple[str, ...]) -> frozenset[nn.Module]:
    return frozenset(model.get_submodule(name) for name in names)


def _added(model: nn.Module, still: Names) -> Names:
    """Biases beside parameters that all are of attention: with attention at zero, nothing else would be added."""
    known = dict(model.named_parameters())
    plain = [name for name, parameter in known.items() if not is_bias(name, parameter)]
    return frozenset(
        name
        for name, parameter in known.items()
        if is_bias(name, parameter)
        and (beside := [other for other in plain if other.startswith(_place(name))])
        and still.issuperset(beside)
    )


def _place(name: str) -> str:
    """What the names of everything in the same module begin with."""
    return name[: name.rfind(".") + 1]


def _is_of_norm(model: nn.Module, name: str) -> bool:
    return "norm" in type(model.get_submodule(_place(name).rstrip("."))).__name__.lower()


def _traces(model: nn.Module) -> tuple[int, int]:
    """Forwards of objects' own, and hooks."""
    # Private: nothing public lists hooks. If these go, only forwards are counted.
    kept = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = sum(len(getattr(module, name, ())) for module in model.modules() for name in kept)
    # Private, and for the same reason: hooks of parameters. If it goes, leave them out.
    hooks += sum(len(each._backward_hooks or ()) for each in model.parameters())
    return sum("forward" in vars(module) for module in model.modules()), hooks


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise Wrong(text)
