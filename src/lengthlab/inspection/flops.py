"""What a forward costs, counted without computing it: tensors that have a shape and no memory pass through the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

# Private: the meta device alone cannot follow a model that makes tensors on the CPU. If it goes, run every model in earnest.
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from lengthlab.inspection.reading import draw, logits, quiet


def count_flops(make: Callable[[], nn.Module], length: int) -> int:
    """Of one forward of one sequence: products of matrices, convolutions and attention, as torch counts them.

    Every count makes the model anew: what passes through it might stay in it.

    >>> count_flops(lambda: nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)), length=3)
    240
    """
    network = make()
    if mode := _mode(network):
        return _count(network, length, mode)
    try:
        return _count(network, length, FakeTensorMode(allow_non_fake_inputs=True))
    except Exception:  # its way depends on values: it has to be run in earnest
        return _count(make(), length, None)


def _count(network: nn.Module, length: int, mode: FakeTensorMode | None) -> int:
    from torch.utils.flop_counter import FlopCounterMode  # imports triton, where that is

    with ExitStack() as stack:
        if mode is not None:
            stack.enter_context(mode)
        stack.enter_context(_plain_kernels())
        # Private: what `torch.nn.functional.grouped_mm` calls, and the counter goes by that. If it goes, drop the mapping: then
        # experts count for nothing.
        ours = {torch.ops.aten._grouped_mm: _grouped}
        counter = stack.enter_context(FlopCounterMode(display=False, custom_mapping=ours))
        logits(network.eval(), draw(network, 1, length))
    return int(counter.get_total_flops())


def _mode(network: nn.Module) -> FakeTensorMode | None:
    """That of a model which has no memory itself."""
    return next((each.fake_mode for each in network.parameters() if hasattr(each, "fake_mode")), None)


def _grouped(left: Any, right: Any, *rest: Any, **named: Any) -> int:
    """Each row of the left one times one of the matrices on the right."""
    return 2 * int(torch.Size(left).numel()) * int(right[-1])


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """No kernel that does many products under one name which the counter does not know."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with quiet(), sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
