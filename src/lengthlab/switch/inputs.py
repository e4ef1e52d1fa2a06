"""What a model is tried on: a batch of yours, or one made up from what the model tells of itself; and another like it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import a_kind, require

LENGTHS = (11, 16, 64)
"""Of made-up sequences: an odd one first, then what chunks of attention divide."""
FIXED = ("mask", "type", "position", "label", "segment", "bbox", "lengths", "cache")
"""Pieces of the names of inputs that say where or what, and carry no content."""


@dataclass(frozen=True)
class Example:
    """The arguments of one forward."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def other(self) -> Example:
        """The same with other tokens and numbers.

        >>> Example((torch.tensor([[3, 4, 5]]),)).other().args[0].tolist()
        [[4, 5, 3]]
        """
        with torch.no_grad():
            args = tuple(_other(each) for each in self.args)
            return Example(args, {name: each if _is_fixed(name) else _other(each) for name, each in self.kwargs.items()})

    def run(self, model: nn.Module) -> Any:
        return model(*self.args, **self.kwargs)


def as_example(batch: Any, model: nn.Module) -> Example:
    """A batch as a forward takes it: a mapping by name, a tuple or list in order, a tensor alone; on the model's device."""
    if isinstance(batch, Example):
        return batch
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    if isinstance(batch, Mapping):
        return Example((), {name: _moved(each, device) for name, each in batch.items()})
    known = isinstance(batch, (Tensor, tuple, list))
    require(known, f"a batch is a tensor, a tuple of the forward's arguments or a mapping of them, not {a_kind(batch)}")
    return Example(tuple(_moved(each, device) for each in ((batch,) if isinstance(batch, Tensor) else batch)))


def made_up(model: nn.Module) -> Iterator[Example]:
    """Batches that the model might take, the likeliest first."""
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    dtype = next((each.dtype for each in model.parameters() if each.is_floating_point()), torch.float32)
    config = getattr(model, "config", None)
    if config is not None and hasattr(model, "main_input_name"):
        for kwargs in _of_hugging_face(model, config):
            yield Example((), {name: _cast(each, device, dtype) for name, each in kwargs.items()})
        return
    for tensor in _of_layers(model):
        needed = _required(model)
        if len(needed) <= 1:
            yield Example((_cast(tensor, device, dtype),))
        elif needed[:2] in (["src", "tgt"], ["query", "key"], ["tgt", "memory"]):
            yield Example((_cast(tensor, device, dtype),) * len(needed))


def _of_hugging_face(model: nn.Module, config: Any) -> Iterator[dict[str, Tensor]]:
    if getattr(model, "main_input_name", "") == "pixel_values":
        yield from ({"pixel_values": image} for image in _images(config))
        return
    vocabulary = _sizes(config, "vocab_size")
    for length in LENGTHS:
        tokens = {"input_ids": _tokens(max(vocabulary, 2), length)}
        yield tokens | ({"decoder_input_ids": _tokens(max(vocabulary, 2), 7)} if config.is_encoder_decoder else {})


def _images(config: Any) -> Iterator[Tensor]:
    channels, size = _sizes(config, "num_channels") or 3, _sizes(config, "image_size")
    frames = _sizes(config, "num_frames")
    for side in dict.fromkeys([*([size] if size else []), 64, 128, 32, 224, 384]):
        yield _numbers(*((2, frames) if frames else (2,)), channels, side, side)


def _sizes(config: Any, name: str) -> int:
    """A field of a configuration or of one inside it; 0 where there is none."""
    inner = [config, *(each for each in vars(config).values() if hasattr(each, "model_type"))]
    for each in inner:
        found = getattr(each, name, None)
        found = max(found) if isinstance(found, (tuple, list)) and found else found
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return 0


def _of_layers(model: nn.Module) -> Iterator[Tensor]:
    """As the first layers of a model ask for it: token ids, images, or sequences of vectors."""
    table = next((module for module in model.modules() if isinstance(module, nn.Embedding)), None)
    if table is not None:
        yield from (_tokens(table.num_embeddings, length) for length in LENGTHS)
    seen = False
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and not seen:
            yield from (_numbers(2, module.in_channels, side, side) for side in (32, 64, 224))
        elif isinstance(module, nn.MultiheadAttention) and not seen:
            yield _numbers(2, 11, module.embed_dim)
        elif isinstance(module, (nn.Linear, nn.LayerNorm, nn.RMSNorm)) and not seen:
            width = module.in_features if isinstance(module, nn.Linear) else module.normalized_shape[-1]
            yield _numbers(2, 11, width)
        else:
            continue
        seen = True


def _required(model: nn.Module) -> list[str]:
    parameters = inspect.signature(model.forward).parameters.values()
    return [each.name for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]


def _tokens(vocabulary: int, length: int) -> Tensor:
    """From the middle of a vocabulary: special ones stand at its ends."""
    low, high = vocabulary // 4, max(vocabulary - vocabulary // 4, vocabulary // 4 + 1)
    return torch.randint(low, high, (2, length), generator=torch.Generator().manual_seed(length))


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _cast(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return tensor.to(device, dtype if tensor.is_floating_point() else None)


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


def _is_fixed(name: str) -> bool:
    return any(piece in name for piece in FIXED)


def _other(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _other_tensor(value)
    if isinstance(value, Mapping):
        return {name: each if _is_fixed(str(name)) else _other(each) for name, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_other(each) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _other(getattr(value, each.name)) for each in fields(value) if each.init}
        return type(value)(**changed)
    return value


def _other_tensor(tensor: Tensor) -> Tensor:
    if tensor.is_floating_point():
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1))
        return (tensor.detach() + noise.to(tensor)).requires_grad_(tensor.requires_grad)
    if tensor.dtype == torch.bool or tensor.numel() == 0:
        return tensor
    low, high = int(tensor.min()), int(tensor.max())
    if low == high:
        return tensor - 1 if low else tensor + 1
    return low + (tensor - low + 1) % (high - low + 1)
