"""One call of a module: what it was given and what it gave, as marks that are equal where the values are."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn


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


def gave_nothing(calls: Sequence[ModuleCall]) -> bool:
    """Whether zeros alone came out of all of them."""
    return all(call.nothing for call in calls)


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


def named_arguments(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = argument_names(module)
    return {(names[place] if place < len(names) else str(place)): each for place, each in enumerate(args)} | kwargs


def silenced(out: Any, instead: Tensor | None) -> Any:
    if isinstance(out, Tensor):
        return torch.zeros_like(out) if instead is None else instead
    several = isinstance(out, tuple) and out and isinstance(out[0], Tensor)
    others = (torch.zeros_like(each) if isinstance(each, nn.Parameter) else each for each in out[1:]) if several else ()
    return (silenced(out[0], instead), *others) if several else out


def seen_call(given: dict[str, Any], out: Any) -> ModuleCall:
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
    )
