"""Names of modules compared without what wrappers put into them, so that a state moves from a compiled model to a plain one."""

from __future__ import annotations

from collections.abc import Iterable

# Private: `_orig_mod` and its like are how torch names what it wraps. If one goes, states do not move across that wrapper, and
# `load_state_dict` says so.
BETWEEN = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer"}
"""Anywhere: torch.compile, activation checkpointing, a layer under PEFT's adapters."""
BEFORE = {"module", "base_model", "model"}
"""In front: DDP, PEFT, and the model in a model with a head."""


def plain(name: str) -> str:
    """
    >>> plain("_orig_mod.module.layers.0._orig_mod.attn"), plain("base_model.model.model.layers.0.q_proj.base_layer")
    ('layers.0.attn', 'layers.0.q_proj')
    >>> plain("model")
    'model'
    """
    parts = [part for part in name.split(".") if part not in BETWEEN]
    while len(parts) > 1 and parts[0] in BEFORE:
        parts = parts[1:]
    return ".".join(parts)


def missing(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Those that are not among the others, whatever is put around the models.

    >>> missing(["h.0.attn", "h.1.attn"], ["module.h.0.attn"])
    ['h.1.attn']
    """
    known = set(map(plain, others))
    return [name for name in names if plain(name) not in known]
