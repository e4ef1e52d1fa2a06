"""What is peculiar about a type of model: sizes that belong together, and inputs that it insists on, told by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16}
SWIN = {"embed_dim": 32, "num_heads": (2, 4, 4, 8), "depths": (2, 1, 1, 1), "window_size": 2, "image_size": 64}
INDEXER = {
    "indexer_n_heads": 4,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 8,
    "indexer_compress_ratio": 4,
}
RESNET = {"model_type": "resnet", "depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32], "embedding_size": 16}
LAST = {"backbone_config": RESNET | {"out_features": ["stage4"]}}
LAST_THREE = {"backbone_config": RESNET | {"out_features": ["stage2", "stage3", "stage4"]}}

BY_TYPE: dict[str, dict[str, Any]] = {
    "bamba": MAMBA | {"attn_layer_indices": [1]},
    "blt": {"encoder_hash_byte_group_vocab": 64, "num_hidden_layers": 2},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "dbrx": {"attn_config.rope_theta": 10000.0, "attn_config.clip_qkv": 8.0},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "gemma3n_text": {
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
        "intermediate_size": [96] * 4,
    },
    "gemma4_text": {
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
    },
    "granitemoehybrid": MAMBA | {"layer_types": ["linear_attention", "full_attention"], "num_hidden_layers": 2},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {"head_dim": 8},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "ministral": {"head_dim": 16},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 4},
    "qwen4_exp": {f"text_config.{name}": value for name, value in INDEXER.items()},
    "qwen4_exp_text": INDEXER,
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {
        "axial_pos_embds_dim": (32, 32),
        "axial_pos_shape": (8, 16),
        "attn_layers": ["local", "lsh"],
        "num_hidden_layers": 2,
        "local_attn_chunk_length": 8,
        "lsh_attn_chunk_length": 8,
        "num_buckets": 4,
    },
    "xlstm": {"qk_dim_factor": 1.0},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 3,
        "layers_block_type": ["linear_attention", "hybrid", "hybrid"],
        "attention_hidden_size": 128,
        "attention_head_dim": 32,
    },
    "zamba2": {"attention_hidden_size": 128, "attention_head_dim": 32, "mamba_headdim": 16},
    "convbert": {"conv_kernel_size": 3},
    "esm": {"vocab_size": 128, "pad_token_id": 1, "mask_token_id": 50},
    "mobilebert": {"intra_bottleneck_size": 32},
    "nystromformer": {"conv_kernel_size": 3, "num_landmarks": 4, "segment_means_seq_len": 12},
    "bit": {"num_groups": 4},
    "regnet": {"groups_width": 16},
    "conditional_detr": LAST,
    "dab-detr": LAST,
    "deformable_detr": LAST_THREE,
    "detr": LAST,
    "table-transformer": LAST,
    "depth_pro": {
        "patch_size": 32,
        "intermediate_hook_ids": (1, 0),
        "intermediate_feature_dims": (32, 32),
        "scaled_images_feature_dims": (64, 64, 32),
    },
    "donut-swin": SWIN,
    "swin": SWIN,
    "swinv2": SWIN,
    "maskformer-swin": SWIN,
    "swin2sr": {"embed_dim": 32, "num_heads": (4, 4), "depths": (2, 1), "window_size": 4, "image_size": 16},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.5, "hidden_dim": 320},
    "hgnet_v2": {"hidden_sizes": (256, 512, 1024, 2048)},
    "levit": {"image_size": 64, "patch_size": 16},
    "lw_detr_vit": {"num_windows": 4},
    "sapiens2": {"num_key_value_heads_per_layer": [4, 2]},
    "shieldgemma2": {"yes_token_index": 10, "no_token_index": 11},
    "textnet": {"hidden_sizes": (64, 64, 128, 256, 512)},
    "siglip2": {"vision_config.num_patches": 16},
}
"""Fields of a type's small configuration. A field after `!` is needed for there to be a configuration at all."""
PARTS = {"musicgen": "decoder", "musicgen_melody": "decoder"}
"""Types whose model of this kind is made of a part of the configuration."""
LENGTHS: dict[str, int] = {"reformer": 128}
"""How many tokens a type wants."""
IMAGES: dict[str, int] = {"depth_pro": 128}
"""How large an image a type wants, where its configuration does not say so."""


def _patches(config: Any, draw: torch.Generator) -> dict[str, Tensor]:
    vision = config.vision_config
    count = int(vision.num_patches)
    width = vision.num_channels * vision.patch_size**2
    return {
        "pixel_values": torch.randn(2, count, width, generator=draw),
        "pixel_attention_mask": torch.ones(2, count, dtype=torch.long),
        "spatial_shapes": torch.full((2, 2), int(count**0.5)),
    }


def _codebooks(config: Any, draw: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": torch.randint(6, 48, (2 * config.num_codebooks, 12), generator=draw)}


MORE_INPUTS: dict[str, Callable[[Any, torch.Generator], dict[str, Tensor]]] = {
    "siglip2": _patches,
    "musicgen_decoder": _codebooks,
    "musicgen_melody_decoder": _codebooks,
}
"""What a type wants beside tokens or an image, or in their place."""
NO_ATTENTION = frozenset({"DeformableDetrMultiscaleDeformableAttention", "SwiftFormerEfficientAdditiveAttention"})
"""Classes called attention whose softmax is not over scores of queries and keys."""
