"""Small copies of the models that transformers can make: from their configuration classes alone, nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AutoBackbone,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    PreTrainedConfig,
)
from transformers.models.auto import modeling_auto

from lengthlab.errors import nearest, require
from lengthlab.integrations.configs import quiet
from lengthlab.integrations.peculiarities import BY_TYPE, PARTS

Kind = Literal["causal", "masked", "vision"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SIZES: dict[int, str] = {
    64: """hidden_size d_model n_embd dim embed_dim hidden_dim emb_dim embedding_size embedding_dim input_embedding_size
        output_embedding_size word_embed_proj_dim encoder_hidden_size decoder_hidden_size hidden_size_global out_hidden_size
        pooler_hidden_size pooler_output_size attention_hidden_size lru_width d_latents
        projection_dim projection_size backbone_hidden_size prediction_head_size input_size entity_emb_size
        pronunciation_embed_dim shape_embed_dim vision_output_dim router_hidden_size auxiliary_channels
        fusion_hidden_size part_features
        projector_input_dim projector_output_dim""",
    96: """intermediate_size ffn_dim ffn_hidden_size dim_ff dff d_ff d_inner decoder_ffn_dim encoder_ffn_dim n_inner
        moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size expert_ffn_hidden_size feed_forward_size
        intermediate_size_mlp dense_intermediate_size moe_shared_expert_intermediate_size decoder_intermediate_size mlp_dim
        alignment_intermediate_size prompt_mid_dim""",
    4: """num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads attention_heads
        decoder_num_attention_heads swa_num_attention_heads linear_num_heads num_encoder_attention_heads
        num_decoder_attention_heads num_self_attention_heads num_cross_attention_heads linear_num_key_heads
        linear_num_value_heads index_n_heads num_experts num_local_experts n_routed_experts moe_num_experts
        zero_expert_num conf_num_attention_heads heads_per_ngram conv_kernel_size""",
    2: """num_experts_per_tok num_experts_per_token moe_topk moe_k num_hidden_layers n_layer n_layers num_layers encoder_layers
        decoder_layers num_encoder_layers num_decoder_layers depth num_blocks conf_num_hidden_layers
        num_global_layers decoder_num_hidden_layers num_spatial_layers num_temporal_layers num_auxiliary_layers
        num_self_attends_per_block""",
    16: """head_dim global_head_dim linear_key_head_dim linear_value_head_dim linear_head_dim dim_head d_kv d_head
        attention_head_size v_head_dim qk_nope_head_dim index_head_dim swa_head_dim kv_channels mamba_headdim mamba_head_dim
        mamba_d_head attention_head_dim q_lora_rank kv_lora_rank hc_lowrank laurel_rank hidden_size_per_layer_input o_lora_rank
        adapter_rank gated_norm_rank""",
    8: """qk_rope_head_dim rotary_dim mamba_d_state ssm_state_size state_size mamba_dt_rank time_step_rank chunk_size
        mamba_chunk_size""",
    32: "num_latents index_topk rel_extent num_queries num_detection_tokens",
    1: "n_group topk_group num_expert_group first_k_dense_replace n_groups mamba_n_groups mamba_ngroups num_shared_experts",
    128: """vocab_size vocab_size_per_layer_input decoder_vocab_size entity_vocab_size pronunciation_vocab_size shape_vocab_size
        max_position_embeddings n_positions n_ctx max_seq_len context_length max_source_positions max_target_positions
        codebook_size audio_vocab_size model_max_length""",
}
"""How large a field is in a small copy, wherever a configuration has one of that name and more than that."""
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTHS = ("hidden_sizes", "embed_dim", "neck_hidden_sizes")
SHARED_KEYS = ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads", "num_key_value_attention_heads")


@dataclass(frozen=True)
class SmallModel:
    """A type of model, and what kind of work it does.

    >>> sum(each.numel() for each in SmallModel("llama", "causal").build().parameters())
    86336
    """

    name: str
    kind: Kind

    def config(self) -> PreTrainedConfig:
        """The small configuration."""
        changes = BY_TYPE.get(self.name, {})
        small = shrink(CONFIG_MAPPING[self.name], changes)
        small.architectures = []  # where a type has several models, the first
        if self.kind == "causal":
            small.is_decoder = True  # encoders that can be decoders look both ways otherwise
        return small

    def build(self, seed: int = 0) -> nn.Module:
        """The model on the CPU, with numbers drawn from this seed."""
        torch.manual_seed(seed)
        with quiet():
            config, auto = self.config(), _auto(self.name, self.kind)
            if self.name in PARTS:
                # Private: the classes of an Auto class, and what makes one. If they go, these two types cannot be built.
                model = auto._model_mapping[type(config)]._from_config(getattr(config, PARTS[self.name]))
            else:
                model = auto.from_config(config)
        made: nn.Module = model.float()
        return made


def types_of(kind: Kind) -> tuple[str, ...]:
    """The types of models of this kind that the installed transformers has, in its own order.

    >>> "llama" in types_of("causal"), "bert" in types_of("masked"), "vit" in types_of("vision")
    (True, True, True)
    """
    return tuple(dict.fromkeys(name for mapping in _mappings(kind).values() for name in mapping))


def small_model(name: str, kind: Kind) -> SmallModel:
    """One by name; a name that there is none of is an error that says what is near."""
    known = types_of(kind)
    require(name in known, f"transformers has no {kind} type named '{name}'; {nearest(name, known)}")
    return SmallModel(name, kind)


def shrink(make: type[PreTrainedConfig], changes: Mapping[str, Any] = {}) -> PreTrainedConfig:
    """A configuration of this class with few and narrow layers; `changes` are fields whose size is told, by dotted names."""
    first = {key: value for key, value in changes.items() if key.startswith("!")}
    whole = make(**{key[1:]: value for key, value in first.items()})
    own = {key: value for key, value in changes.items() if "." not in key and key not in first}
    small = _fields(vars(whole)) | {key[1:]: value for key, value in first.items()}
    for key, part in vars(whole).items():
        if isinstance(part, PreTrainedConfig):
            inner = {name.partition(".")[2]: value for name, value in changes.items() if name.startswith(f"{key}.")}
            small[key] = shrink(type(part), inner).to_dict()
    return make(**small | own)


def _fields(have: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a configuration that are smaller in a small one."""
    small: dict[str, Any] = {}
    for name, value in have.items():
        if isinstance(value, bool) or name.startswith("_"):
            continue
        if isinstance(value, int) and name.endswith(("token_id", "token_index")):
            small[name] = value if value < SMALL["vocab_size"] else value % 50 + 50
        elif isinstance(value, int) and value > SMALL.get(name, value):
            small[name] = SMALL[name]
        elif isinstance(value, int) and name in SHARED_KEYS:
            small[name] = min(value, 4 if value == have.get("num_attention_heads") else 2)
        elif isinstance(value, (list, tuple)) and name in WIDTHS:
            small[name] = [each // 4 for each in value]
        elif isinstance(value, (list, tuple)) and name == "depths":
            small[name] = [min(each, 2) for each in value]
    if have.get("head_dim") == have.get("qk_rope_head_dim"):
        small.pop("head_dim", None)  # it is another name for that
    small |= _image(have)
    layers = next((have[name] for name in LAYERS if isinstance(have.get(name), int)), None)
    if layers:
        small |= _layers({name: value for name, value in have.items() if _is_per_layer(name, value, layers)}, have)
    return small


def _image(have: Mapping[str, Any]) -> dict[str, Any]:
    """Few patches: of 8 × 8 where they are large, and an image of 4 × 4 of them; of 64 × 64 where patches are merged."""
    patch, image = have.get("patch_size"), have.get("image_size")
    flat = isinstance(patch, int) and patch >= 8
    size = 32 if flat else 64
    small: dict[str, Any] = {"patch_size": 8} if flat else {}
    if isinstance(image, int) and image > size:
        small["image_size"] = size
    elif isinstance(image, (list, tuple)):
        small["image_size"] = [size for _ in image]
    return small


def _is_per_layer(name: str, value: object, layers: int) -> bool:
    """A list with something for each layer; one of layers' numbers is made anew by the configuration."""
    if not isinstance(value, (list, tuple)) or len(value) != layers or name.startswith("_"):
        return False
    return list(value) != list(range(layers))


def _layers(lists: Mapping[str, list[Any]], have: Mapping[str, Any]) -> dict[str, Any]:
    """One layer of each sort that there is, and two at least."""
    if not lists:
        return {}
    sorts = list(zip(*lists.values(), strict=True))
    chosen = sorted({sorts.index(sort) for sort in sorts})
    chosen = chosen if len(chosen) > 1 else [0, len(sorts) - 1]
    return {name: [value[layer] for layer in chosen] for name, value in lists.items()} | {
        name: len(chosen) for name in LAYERS if name in have
    }


def _mappings(kind: Kind) -> dict[Any, Iterable[str]]:
    """Which class makes which types."""
    if kind == "causal":
        return {AutoModelForCausalLM: modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES}
    if kind == "masked":
        return {AutoModelForMaskedLM: modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES}
    return {
        AutoModelForImageClassification: modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
        AutoBackbone: modeling_auto.MODEL_FOR_BACKBONE_MAPPING_NAMES,
        AutoModel: modeling_auto.MODEL_FOR_IMAGE_MAPPING_NAMES,
    }


def _auto(name: str, kind: Kind) -> Any:
    """The first class that makes a type."""
    return next(auto for auto, names in _mappings(kind).items() if name in names)
