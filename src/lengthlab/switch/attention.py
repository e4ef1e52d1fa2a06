"""Which modules of anyone's model are softmax attention: by what their code calls, not by a list of models.

A linear attention, a state-space mixer or a gated delta rule carries a state along the sequence and is what should learn
first, whatever its name. A router takes a softmax, too, but nobody calls it attention.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType

from torch import nn

ATTENTION = {
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "ALL_ATTENTION_FUNCTIONS",
    "flex_attention",
    "memory_efficient_attention",
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_with_kvcache",
    "_flash_attention_forward",  # private to transformers, and what its models call; if it goes, it is found in none
    "parallel_attn",
    "parallel_forgetting_attn",
    "parallel_nsa",
    "attn_decoding_one_step",
}
"""Functions that weigh values by a softmax of scores."""
SOFTMAX = {"softmax", "Softmax"}
"""What attention that is written out takes; so does linear attention, of queries and of keys, each by itself."""
RECURRENT = ("delta_rule", "recurrent", "selective_scan", "linear_attn", "retention", "chunk_gla")
"""Pieces of the names of functions that carry a state; a softmax beside them is a router's."""
NAMES = ("atten", "attn", "mha")
"""What modules that do so are called."""


def is_attention(module: nn.Module) -> bool:
    """Whether a module computes softmax attention itself.

    >>> is_attention(nn.MultiheadAttention(8, 2)), is_attention(nn.LSTM(8, 8)), is_attention(nn.Softmax())
    (True, False, False)
    """
    mentioned = set(_mentioned(type(module))) if is_called_attention(module) else set()
    carried = any(piece in name for name in mentioned for piece in RECURRENT)
    linear = "linear" in type(module).__name__.lower() or carried
    return not ATTENTION.isdisjoint(mentioned) or (not SOFTMAX.isdisjoint(mentioned) and not linear)


def calls_attention(module: nn.Module) -> bool:
    """Whether its code calls a function that is attention as a whole.

    >>> calls_attention(nn.MultiheadAttention(8, 2)), calls_attention(nn.Softmax())
    (True, False)
    """
    return is_called_attention(module) and not ATTENTION.isdisjoint(_mentioned(type(module)))


def is_called_attention(module: nn.Module) -> bool:
    return any(name in type(module).__name__.lower() for name in NAMES)


def _mentioned(kind: type[nn.Module]) -> Iterator[str]:
    """All names in the code of a class and of those it inherits from, torch's own base left out."""
    for each in kind.__mro__[: kind.__mro__.index(nn.Module)]:
        for member in vars(each).values():
            code = getattr(inspect.unwrap(member), "__code__", None) if callable(member) else None
            yield from _names(code) if code else ()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
