"""A model that carries a state, fed one token at a time."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.inspection.reading import cache_name, feed, logits_in, state_name
from lengthlab.models.model import Network


def in_steps(network: nn.Module, tokens_1T: Tensor) -> tuple[Tensor, Any] | None:
    """Logits as they come one by one, and the last state; None where the model gives none.

    >>> in_steps(nn.Embedding(4, 4), torch.tensor([[1, 2]])) is None
    True
    """
    if isinstance(network, Network):
        return _read_in_steps(network, tokens_1T) if network.has_state else None
    name = cache_name(network) or state_name(network)
    if name is None:
        return None
    state: Any = None
    steps = []
    for at in range(tokens_1T.shape[1]):
        token_11 = tokens_1T[:, at : at + 1]
        given = feed(network, token_11, **_asks(network, at), **({} if state is None else {name: state}))
        state = _state_in(given, name)
        if state is None:
            return None
        steps.append(logits_in(given, token_11))
    return torch.cat(steps, dim=1), state


@torch.no_grad()
def _read_in_steps(network: Network, tokens_1T: Tensor) -> tuple[Tensor, Any]:
    """One of ours is not asked for a state: it has a way of its own to read on from one."""
    state: Any = None
    steps = []
    for token_1 in tokens_1T.unbind(1):
        logits_11V, state = network.read(token_1[:, None], state)
        steps.append(logits_11V)
    return torch.cat(steps, dim=1), state


def _asks(network: nn.Module, at: int) -> dict[str, Any]:
    """What Hugging Face's own `generate` hands over beside the token."""
    placed = "position_ids" in inspect.signature(network.forward).parameters
    return ({"use_cache": True} if cache_name(network) else {}) | ({"position_ids": torch.tensor([[at]])} if placed else {})


def _state_in(given: Any, name: str) -> Any:
    named = getattr(given, name, None)
    if named is not None or not isinstance(given, tuple) or len(given) != 2:
        return named
    return given[1]


def numbers_in(state: Any) -> int:
    """How many numbers a state holds, wherever in it they are; whole numbers only count tokens.

    >>> numbers_in((torch.zeros(1, 3), [torch.zeros(1, 2), torch.tensor(7)]))
    5
    """
    found: dict[int, Tensor] = {}
    _gather(state, found, set())
    return sum(tensor.numel() for tensor in found.values() if tensor.is_floating_point())


def _gather(part: Any, found: dict[int, Tensor], seen: set[int]) -> None:
    if id(part) in seen or isinstance(part, (str, bytes, type, nn.Module)):
        return
    seen.add(id(part))
    if isinstance(part, Tensor):
        found[id(part)] = part
        return
    if isinstance(part, (list, tuple)):
        inner = list(part)
    else:
        inner = list((part if isinstance(part, dict) else getattr(part, "__dict__", {})).values())
    for each in inner:
        _gather(each, found, seen)
