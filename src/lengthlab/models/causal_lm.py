"""A Hugging Face causal language model of any architecture as a run's model.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError

SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id")
"""Our tasks have words of their own: a configuration's numbers would name other ones, or none."""


@dataclass(frozen=True)
class CausalLm:
    """A configuration as JSON, which is what a run keeps of it. `integrations.huggingface.as_model` makes one.

    Weights are the library's own initialisation, drawn under the run's seed. The vocabulary is the task's.
    """

    name: str
    config: str

    def build(self, vocabulary: int) -> nn.Module:
        try:
            from transformers import AutoConfig, AutoModelForCausalLM
        except ImportError:
            raise LabError(f"model '{self.name}' needs transformers: pip install 'lengthlab[huggingface]'") from None
        fields: dict[str, Any] = json.loads(self.config) | {"vocab_size": vocabulary} | dict.fromkeys(SPECIAL)
        config = AutoConfig.for_model(fields.pop("model_type"), **fields)
        return CausalLmNetwork(AutoModelForCausalLM.from_config(config))  # type: ignore[no-untyped-call]


class CausalLmNetwork(nn.Module):
    """tokens_BT -> logits_BTV, as our loops call it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens_BT: Tensor, position_ids: Tensor | None = None) -> Tensor:
        placed = {} if position_ids is None else {"position_ids": position_ids}
        logits_BTV: Tensor = self.model(input_ids=tokens_BT, use_cache=False, **placed).logits
        return logits_BTV


class TranslatedLm(CausalLmNetwork):
    """The same over some of its tokens: number i of ours is its token `ids[i]`, read and said."""

    def __init__(self, model: nn.Module, ids: Sequence[int]) -> None:
        super().__init__(model)
        self.register_buffer("id_V", torch.tensor(ids), persistent=False)

    def forward(self, tokens_BT: Tensor, position_ids: Tensor | None = None) -> Tensor:
        id_V: Tensor = self.get_buffer("id_V")
        return super().forward(id_V[tokens_BT], position_ids)[..., id_V]
