"""Attention set to zero from outside, whatever module it is in: how the judge knows what a closed model should give."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lengthlab.integrations.peculiarities import NO_ATTENTION

WHOLE = {F.scaled_dot_product_attention, F.multi_head_attention_forward}
"""Functions that are attention wherever they are called."""
WEIGHTS = {torch.softmax, F.softmax, Tensor.softmax}
NORMALIZERS = {torch.logsumexp, Tensor.logsumexp}
"""What is subtracted from scores before an `exp`, where that stands for a softmax."""
CALLED = re.compile(r"attn|attention", re.IGNORECASE)
OTHERWISE = re.compile(r"linear|router|gating", re.IGNORECASE)


class Zeroed(TorchFunctionMode):
    """While on, attention gives zeros, except inside of the modules in `keep`; `calls` counts what was met.

    >>> attend, x = nn.MultiheadAttention(4, 2, bias=False), torch.ones(3, 1, 4)
    >>> with Zeroed() as zeroed:
    ...     attend(x, x, x)[0].any().item(), zeroed.calls
    (False, 1)
    """

    def __init__(self, keep: frozenset[nn.Module] = frozenset()) -> None:
        super().__init__()
        self.keep, self.calls = keep, 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func not in WHOLE | WEIGHTS | NORMALIZERS:
            return out
        around = list(_modules_around())
        if func not in WHOLE and not (_is_called_attention(around) and _is_over_the_last(func, args, kwargs)):
            return out
        if self.keep.intersection(around):
            return out
        self.calls += 1
        if func in NORMALIZERS:
            return torch.full_like(out, math.inf)
        return (torch.zeros_like(out[0]), *out[1:]) if isinstance(out, tuple) else torch.zeros_like(out)


def _modules_around() -> Iterator[nn.Module]:
    """Whose code is running, from the inside out: what the functions on the stack call `self` or `module`."""
    # Private: a call of torch's does not say who made it. If it goes, so does the judge's independent word.
    frame = sys._getframe(2)
    while frame is not None:
        for name in ("self", "module"):
            if isinstance(found := frame.f_locals.get(name), nn.Module):
                yield found
        frame = frame.f_back  # type: ignore[assignment]


def _is_called_attention(around: list[nn.Module]) -> bool:
    """Whether the innermost module that is neither torch's own nor a softmax itself has attention in its name."""
    kinds = (type(module) for module in around if not type(module).__module__.startswith("torch."))
    name = next((kind.__name__ for kind in kinds if "softmax" not in kind.__name__.lower()), "")
    return bool(CALLED.search(name)) and not OTHERWISE.search(name) and name not in NO_ATTENTION


def _is_over_the_last(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it is over the last dimension, where keys are."""
    scores = args[0] if args else kwargs["input"]
    dim = kwargs["dim"] if "dim" in kwargs else args[1] if len(args) > 1 else -1
    return isinstance(dim, int) and dim % scores.dim() == scores.dim() - 1
