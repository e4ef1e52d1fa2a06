"""What is peculiar about a type of model: sizes that belong together, and inputs that it insists on, told by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

BY_TYPE: dict[str, dict[str, Any]] = {
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 16},
    "blt": {"encoder_hash_byte_group_vocab": 64},
    "dbrx": {},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 16},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "ministral": {"head_dim": 16},
    "nemotron": {"head_dim": 16},
    "reformer": {"axial_pos_embds_dim": (32, 32), "axial_pos_shape": (8, 16), "attn_layers": ["local", "lsh"],
                 "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8, "num_buckets": 4},
}
"""Fields of a type's small configuration. A field after `!` is needed for there to be a configuration at all."""
LENGTHS: dict[str, int] = {}
"""How many tokens a type wants."""
MORE_INPUTS: dict[str, Callable[[Any, torch.Generator], dict[str, Tensor]]] = {}
"""What a type wants beside tokens or an image."""
