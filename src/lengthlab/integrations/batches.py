"""Batches that a small model can be called with: random tokens, random images, and whatever else it insists on."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.integrations.peculiarities import IMAGES, LENGTHS, MORE_INPUTS

Batch = dict[str, Tensor]
SEQUENCES, LENGTH, VOCABULARY = 2, 12, 48
"""Tokens are below `VOCABULARY`: those that stand for images and the like lie above it."""


def batches_for(model: nn.Module) -> tuple[Batch, Batch]:
    """Two batches of the same shapes and different tokens or images.

    >>> from lengthlab.integrations.small_models import SmallModel
    >>> one, other = batches_for(SmallModel("gpt2", "causal").build())
    >>> one["input_ids"].shape, bool((one["input_ids"] == other["input_ids"]).all())
    (torch.Size([2, 12]), False)
    """
    first, second = (_batch(model, torch.Generator().manual_seed(number)) for number in (1, 2))
    return first, second


def _batch(model: nn.Module, draw: torch.Generator) -> Batch:
    config: Any = model.config
    takes = signature(model.forward).parameters
    batch: Batch = {}
    main = getattr(model, "main_input_name", "")
    if main == "inputs" and "ImageClassification" in type(model).__name__:
        main = "pixel_values"
    if main in takes and main.startswith("pixel_values"):
        batch[main] = torch.randn(_image_shape(config), generator=draw)
    elif "inputs" in takes and "input_ids" not in takes:
        batch["inputs"] = _tokens(LENGTHS.get(config.model_type, LENGTH), draw)
    else:
        batch["input_ids"] = _tokens(LENGTHS.get(config.model_type, LENGTH), draw)
        if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
            batch["decoder_input_ids"] = _tokens(LENGTH, draw)
    more: Callable[[Any, torch.Generator], Batch] | None = MORE_INPUTS.get(config.model_type)
    return batch | (more(config, draw) if more else {})


def _tokens(length: int, draw: torch.Generator) -> Tensor:
    return torch.randint(6, VOCABULARY, (SEQUENCES, length), generator=draw)


def _image_shape(config: Any) -> tuple[int, ...]:
    inner = getattr(config, "vision_config", config)
    size: Any = IMAGES.get(config.model_type) or getattr(inner, "image_size", None) or 64
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    channels = getattr(inner, "num_channels", 3)
    frames = getattr(inner, "num_frames", None) if config.model_type != "perceiver" else None
    return (SEQUENCES, frames, channels, height, width) if frames else (SEQUENCES, channels, height, width)
