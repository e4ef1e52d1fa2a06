"""Hugging Face configurations on this disk, and models made of them: no download, and no memory where shapes are enough."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

# Private: the meta device alone cannot follow a model that makes tensors on the CPU. If it goes, build in earnest.
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from lengthlab.errors import LabError, explain, require
from lengthlab.switch.record import FIELD, Record, records_in

FILE = "config.json"
SMALL = {
    **dict.fromkeys(
        ("vocab_size", "hidden_size", "n_embd", "d_model", "intermediate_size", "ffn_dim", "n_inner", "lru_width"), 64
    ),
    **dict.fromkeys(("moe_intermediate_size", "shared_intermediate_size", "shared_expert_intermediate_size"), 64),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "num_key_value_heads", "linear_num_key_heads", "linear_num_value_heads"), 4
    ),
    **dict.fromkeys(("head_dim", "linear_key_head_dim", "linear_value_head_dim"), 16),
    **dict.fromkeys(("mamba_n_heads", "n_mamba_heads", "mamba_num_heads"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_headdim", "mamba_head_dim"), 16),
    **dict.fromkeys(("mamba_d_state", "ssm_state_size", "mamba_dt_rank"), 8),
    **dict.fromkeys(("mamba_n_groups", "mamba_ngroups", "n_groups"), 1),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 2),
    **dict.fromkeys(("num_experts_per_tok",), 1),
    **dict.fromkeys(("mamba_d_ssm", "attention_hidden_size"), 128),
    "attention_head_dim": 32,
}
"""Widths of a small copy, where a configuration has a field of that name. Layers stay as they are."""


@dataclass(frozen=True)
class Config:
    """A configuration of a causal language model.

    >>> from transformers import LlamaConfig
    >>> llama = Config(LlamaConfig())  # as large as the first one was
    >>> sum(each.numel() for each in llama.blueprint().parameters())
    6738415616
    >>> sum(each.numel() for each in llama.small().build().parameters())
    929856
    """

    fields: PreTrainedConfig

    def build(self, **choices: Any) -> nn.Module:
        """The model, with weights as the library draws them."""
        try:
            with quiet():
                build: Any = AutoModelForCausalLM.from_config
                model: nn.Module = build(self._without_record(), trust_remote_code=False, **choices)
        except Exception as error:  # whatever the library makes of a configuration
            raise LabError(f"no causal language model can be made of this configuration: {explain(error)}") from error
        return model.eval()

    @property
    def closed(self) -> tuple[Record, ...]:
        """What it says of parts that were off when the model was saved."""
        return records_in(vars(self.fields).get(FIELD))

    def _without_record(self) -> PreTrainedConfig:
        """A model that is made of it has other weights, and nothing off."""
        fields = copy.deepcopy(self.fields)
        vars(fields).pop(FIELD, None)
        return fields

    def blueprint(self) -> nn.Module:
        """The model with tensors that have a shape and no memory. Run it inside the mode that its parameters carry."""
        with FakeTensorMode(allow_non_fake_inputs=True):
            # Other ways of running experts look at which expert a token goes to, and these tensors do not know.
            return self.build(experts_implementation="batched_mm")

    def small(self) -> Config:
        """The same layers, narrow."""
        have = self.fields.to_dict()
        return Config(type(self.fields).from_dict(have | {key: SMALL[key] for key in SMALL if have.get(key) is not None}))


def read_config(path: Path) -> Config:
    """Of a `config.json`, or a folder that has one."""
    file = path / FILE if path.is_dir() else path
    require(file.is_file(), f"there is no {file}")
    try:
        with quiet():
            return Config(AutoConfig.from_pretrained(file, local_files_only=True, trust_remote_code=False))
    except Exception as error:  # whatever the library makes of a file
        raise LabError(f"{file} is no configuration that transformers can read: {explain(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's advice on kernels that are not installed."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
