"""What was named is tried before it is trusted: closed, it must be as good as running and giving nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

# Private: tensors that have a shape and no values. If it goes, a model made of them is tried, fails, and is read instead.
from torch._subclasses.fake_tensor import FakeTensor

from lengthlab.switch.check import require_right_on_the_way
from lengthlab.switch.delay import Delay
from lengthlab.switch.inputs import Example, as_example, made_up
from lengthlab.switch.probe import runs


def can_be_tried(model: nn.Module) -> bool:
    """Shapes alone, of a model that is planned or not yet loaded, cannot be tried, nor what is never called itself."""
    called = type(model).forward is not nn.Module.forward or "forward" in vars(model)
    return called and all(not each.is_meta and not isinstance(each, FakeTensor) for each in model.parameters())


def example_for(model: nn.Module, batch: Any) -> Example | None:
    """The batch as the forward takes it, or one made up on which the model runs; None where there is none."""
    if batch is not None:
        return as_example(batch, model)
    return next((each for each in made_up(model) if runs(model, each)), None) if can_be_tried(model) else None


def require_right(delays: Sequence[Delay], model: nn.Module, example: Example) -> None:
    """Try closed delays, now and after each has opened; where that goes wrong they are removed, and it is an error."""
    try:
        require_right_on_the_way(delays, model, example)
    except Exception:
        for delay in delays:
            delay.remove()
        raise
