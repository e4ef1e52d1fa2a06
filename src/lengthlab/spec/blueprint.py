"""A network without numbers: names and sizes to check a run by, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from math import prod
from typing import Any, cast

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from lengthlab.errors import LabError, explain
from lengthlab.memory import FLOAT_BYTES, require_memory
from lengthlab.models import AnyModel


def blueprint_of(model: Any, vocabulary: int) -> nn.Module:
    """A network to check names and sizes by, before anything is written; its numbers take no memory."""
    try:
        hash(model)
    except TypeError:  # a model with a dict among its fields cannot be looked up
        return _blueprint.__wrapped__(model, vocabulary)
    return _blueprint(cast(Hashable, model), vocabulary)


@lru_cache(maxsize=128)
def _blueprint(model: Any, vocabulary: int) -> nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            return _without_numbers(model, vocabulary) or model.build(vocabulary).to("meta")
    except Exception as error:
        raise LabError(f"model '{model.name}' cannot be built: {explain(error)}") from error


class _Unfilled(TorchFunctionMode):
    """Weights without numbers are not filled with random ones: for that torch would load its compiler, which takes seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        tensor = args[0] if args else given.get("tensor")
        fills = getattr(func, "__module__", "") == nn.init.__name__ or func in (torch.Tensor.normal_, torch.Tensor.uniform_)
        return tensor if fills and isinstance(tensor, torch.Tensor) and tensor.is_meta else func(*args, **given)


def _without_numbers(model: AnyModel, vocabulary: int) -> nn.Module | None:
    """The network as shapes alone; none of a model that computes with its weights while it is built."""
    try:
        with torch.device("meta"), _Unfilled():
            return model.build(vocabulary)
    except Exception as error:  # built with numbers, it is well, or says what is wrong
        if sizes := re.search(r"overflowed with sizes=\[([\d, ]+)\]", str(error)):
            numbers = prod(map(int, sizes[1].split(",")))
            require_memory(FLOAT_BYTES * numbers, f"a weight of {sizes[1].replace(', ', ' × ')} numbers")
        return None
