"""Hugging Face models small enough to build in a blink: every hybrid that we promise, and two plain ones."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig

VOCABULARY = 50
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MAMBA_2: dict[str, Any] = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}
EXPERTS: dict[str, Any] = {"num_experts": 2, "num_experts_per_tok": 1}
OWN: dict[str, dict[str, Any]] = {
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "Llama": {"num_hidden_layers": 2},
    "Jamba": {
        "num_hidden_layers": 4,
        "attn_layer_period": 4,
        "attn_layer_offset": 1,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
        **EXPERTS,
    },
    "Zamba2": {
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
        "num_mem_blocks": 1,
        "n_mamba_heads": 4,
        "mamba_headdim": 16,
        "mamba_d_state": 8,
        "mamba_ngroups": 1,
    },
    "Bamba": {"num_hidden_layers": 3, "attn_layer_indices": [1], **MAMBA_2},
    "FalconH1": {"num_hidden_layers": 2, "mamba_d_ssm": 64, **MAMBA_2},
    "GraniteMoeHybrid": {
        "num_hidden_layers": 3,
        "layer_types": ["mamba", "attention", "mamba"],
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "shared_intermediate_size": 48,
        **MAMBA_2,
    },
    "RecurrentGemma": {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 32, "head_dim": 8},
    "Qwen3Next": {
        "num_hidden_layers": 4,
        "head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
        **EXPERTS,
    },
    "NemotronH": {
        "layers_block_type": ["mamba", "attention", "mlp", "mamba"],
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "ssm_state_size": 8,
        "n_groups": 1,
        "head_dim": 8,
    },
    "KimiLinear": {
        "num_hidden_layers": 3,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "kv_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4,
        "v_head_dim": 8,
        "linear_head_dim": 8,
        "linear_num_heads": 4,
        "moe_intermediate_size": 16,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
    },
    "Lfm2": {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]},
}
LEFT_OUT = {"GPT2": set(SIZES) - {"vocab_size", "bos_token_id", "eos_token_id"}, "RecurrentGemma": {"max_position_embeddings"}}


def config_of(name: str, **changes: Any) -> PreTrainedConfig:
    """A small configuration of that architecture."""
    shared = {key: value for key, value in SIZES.items() if key not in LEFT_OUT.get(name, ())}
    config: PreTrainedConfig = getattr(transformers, f"{name}Config")(**shared | OWN[name] | changes)
    return config


def lm_of(name: str, **changes: Any) -> nn.Module:
    """A model of it with random weights, always the same."""
    torch.manual_seed(0)
    model: nn.Module = AutoModelForCausalLM.from_config(config_of(name, **changes))
    return model.eval()
