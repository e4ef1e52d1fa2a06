"""Reading with anyone's model: token ids that it knows, and the logits among what it gives back.

Shapes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.memory import FLOAT_BYTES, TOKEN_BYTES, require_memory

STATES = ("state", "hidden", "hx", "cache", "memory", "past", "carry")
"""Pieces of the names that people give to a state."""
CACHES = ("past_key_values", "cache_params")
"""What Hugging Face's models call theirs."""


def require_readable(network: nn.Module, length: int, name: str) -> None:
    """Refuse so many tokens that even their embeddings and logits have no room, as far as its tables tell what these take."""
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    numbers = max((table.num_embeddings + table.embedding_dim for table in tables), default=1)
    require_memory(length * (TOKEN_BYTES + FLOAT_BYTES * numbers), f"to read {length} tokens with {name}")


def draw(network: nn.Module, sequences: int, length: int, seed: int = 0) -> Tensor:
    """tokens_BT, always the same. Ids come from the middle of the vocabulary: special ones stand at its ends.

    >>> draw(nn.Embedding(8, 2), sequences=1, length=4).shape
    torch.Size([1, 4])
    """
    low, high = _ids(network)
    return torch.randint(low, high, (sequences, length), generator=torch.Generator().manual_seed(seed))


def other(network: nn.Module, tokens: Tensor) -> Tensor:
    """For each token another one."""
    low, high = _ids(network)
    return low + (tokens - low + 1) % (high - low)


def _ids(network: nn.Module) -> tuple[int, int]:
    """Ids that every table of the model has; 0 and 1 where it has none that we know."""
    sizes = [module.num_embeddings for module in network.modules() if isinstance(module, nn.Embedding)]
    vocabulary = min((size for size in sizes if size >= 2), default=2)
    return vocabulary // 4, vocabulary - vocabulary // 4


def logits(network: nn.Module, tokens_BT: Tensor) -> Tensor:
    """logits_BTV, the first of what it gives back where it gives several, or what is called so."""
    return logits_in(feed(network, tokens_BT), tokens_BT)


def feed(network: nn.Module, tokens_BT: Tensor, **named: Any) -> Any:
    """Whatever it gives back. It is asked for no cache; a state that it must have is None."""
    if cache_name(network):
        named = {"use_cache": False, **named}
    state = state_name(network)
    if state and inspect.signature(network.forward).parameters[state].default is inspect.Parameter.empty:
        named = {state: None, **named}
    with torch.no_grad(), quiet():
        return network(tokens_BT, **named)


def logits_in(given: Any, tokens_BT: Tensor) -> Tensor:
    """Those for these tokens."""
    found: Any = getattr(given, "logits", given[0] if isinstance(given, tuple) and given else given)
    kind = type(found).__name__
    require(isinstance(found, Tensor), f"it gives back a {kind}; what is needed is logits of shape (B, T, V)")
    wanted = f"logits of shape (B, T, V) for token ids of shape {tuple(tokens_BT.shape)}"
    fits = found.dim() == 3 and found.shape[:2] == tokens_BT.shape
    require(fits, f"it gives back shape {tuple(found.shape)}; what is needed is {wanted}")
    logits_BTV: Tensor = found
    return logits_BTV


def cache_name(network: nn.Module) -> str | None:
    """What a Hugging Face model calls its cache, both where it takes it and where it gives it."""
    takes = inspect.signature(network.forward).parameters
    names = (*CACHES, "state") if "use_cache" in takes else CACHES
    asked = "use_cache" in takes or any(each.kind is each.VAR_KEYWORD for each in takes.values())
    return next((name for name in names if name in takes), None) if asked else None


def state_name(network: nn.Module) -> str | None:
    """What the second input of a module is called, if that is a state."""
    names = list(inspect.signature(network.forward).parameters)[1:2]
    return names[0] if names and any(piece in names[0].lower() for piece in STATES) else None


def in_full(network: nn.Module) -> nn.Module:
    """In float32 where it is shorter, so that rounding is not taken for something else; in eval mode."""
    short = any(each.dtype in (torch.float16, torch.bfloat16) for each in network.parameters())
    return (network.float() if short else network).eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Without what others' code warns of whenever it runs: kernels that are not installed, shapes that cannot be traced."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
