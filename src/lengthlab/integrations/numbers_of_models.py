"""A model readied for the judge, the numbers that it gives, and when two lots of them are the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import require
from lengthlab.integrations.batches import Batch

CLOSE = 1e-4
NOT_OUTPUTS = ("past", "cache", "attentions", "mems", "buckets", "loss", "kv_states", "rnn_state")
"""Entries of an output that are no output: what is kept for the next token, and the like."""
MAIN = ("logits", "last_hidden_state", "feature_maps")


def prepare(model: nn.Module) -> nn.Module:
    """Biases at zero, gates open, nothing at random; matrices large enough that everything counts."""
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.numel() == 0 or is_bias(name, parameter):
                parameter.zero_()
            elif float(parameter.abs().max()) <= 0.1 and float(parameter.min()) == float(parameter.max()):
                parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.3)
            elif parameter.dim() > 1 and 0 < (spread := float(parameter.std())) < (wide := _spread(parameter)):
                parameter.mul_(wide / spread)
    for module in model.modules():
        for chance in ("p", "drop_prob", "layerdrop"):
            if isinstance(getattr(module, chance, None), float) and ("Drop" in type(module).__name__ or chance != "p"):
                setattr(module, chance, 0.0)
    return model.eval()


def _spread(matrix: Tensor) -> float:
    """With which a matrix or a kernel gives numbers about as large as it is given."""
    return 1.4 / math.sqrt(max(matrix[0].numel(), 4))


def outputs(model: nn.Module, batch: Batch) -> list[Tensor]:
    """The numbers that a model gives, the main ones first."""
    torch.manual_seed(0)  # some models draw a mask
    output = model(**deepcopy(batch))
    if isinstance(output, Mapping):
        output = {name: output[name] for name in sorted(output, key=lambda name: name not in MAIN)}
    found = list(_tensors(output))
    require(len(found) > 0, "the model gives no numbers")
    return found


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """Squares of all outputs, weighted at random and always alike."""
    draw = torch.Generator().manual_seed(11)
    terms = [
        (torch.where(each.isfinite(), each, 0.0).float() ** 2 * torch.rand(each.shape, generator=draw)).mean()
        for each in outputs(model, batch)
        if each.requires_grad
    ]
    return torch.stack(terms).sum()


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, Mapping):
        for name, each in output.items():
            if name != "state" and not any(word in name for word in NOT_OUTPUTS):
                yield from _tensors(each)
    elif isinstance(output, (list, tuple)):
        for each in output:
            yield from _tensors(each)


def same(found: list[Tensor], wanted: list[Tensor], share: float = CLOSE) -> bool:
    """Whether nothing is farther apart than this share of the largest number."""
    return len(found) == len(wanted) and all(
        one.shape == other.shape and torch.allclose(one, other, rtol=share, atol=share * _largest(other), equal_nan=True)
        for one, other in zip(found, wanted, strict=True)
    )


def _largest(numbers: Tensor) -> float:
    """Apart from what stands for minus infinity."""
    moderate = numbers.detach()[numbers.abs() < 1e30].abs()
    return float(moderate.max()) if moderate.numel() else 0.0


def heeding(one: list[Tensor], other: list[Tensor]) -> set[int]:
    """Which outputs are others for another input."""
    return {number for number, pair in enumerate(zip(one, other, strict=True)) if not same([pair[0]], [pair[1]], 1e-6)}


def apart(found: list[Tensor], wanted: list[Tensor]) -> str:
    """How far, where that can be said."""
    if [each.shape for each in found] != [each.shape for each in wanted]:
        return ": their shapes differ"
    farthest = max(float((one - other).detach().abs().max()) for one, other in zip(found, wanted, strict=True))
    return f": {farthest:.2g} apart"


def is_bias(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() == 1 and "bias" in name
