"""A model as an outline: its composition, the parameters of every part, and what is off while attention is delayed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from lengthlab.models.attention.chunk_memory import ChunkMemory
from lengthlab.models.attention.chunk_weights import ChunkWeights
from lengthlab.models.attention.hierarchical import HierarchicalAttention
from lengthlab.models.attention.local import LocalAttention
from lengthlab.models.attention.positions import Positions
from lengthlab.models.attention.scores import Scores
from lengthlab.models.attention.softmax import Attention
from lengthlab.models.compose import Chain, Named, Parallel, Part, Repeat, Residual, Silent, keep_name, name_parts
from lengthlab.models.mlp import GatedMlp, Mlp
from lengthlab.models.model import Model
from lengthlab.models.norms import LayerNorm
from lengthlab.registry import kebab, name_of


@dataclass(frozen=True)
class Line:
    """One part: how deep it lies, what it is, its name in the network, its parameters."""

    depth: int
    text: str
    path: str
    parameters: int
    off: bool


def outline(model: Model, vocabulary: int, off: Collection[str] = ()) -> list[Line]:
    """The parts of a model from the embedding to the head; those at the paths `off`, and all in them, are marked.

    >>> from lengthlab.models import lstm
    >>> [(line.text, line.parameters) for line in outline(lstm(width=8), vocabulary=20)]
    [('embedding', 160), ('lstm', 576), ('head', 180)]
    """
    with torch.random.fork_rng(devices=[]):  # whoever looks at a model changes no other
        network = model.build(vocabulary)
    body = list(_walk(keep_name(model.body), network.body, "body", "", 0))
    parts = {name: Line(0, name, name, _size(module), False) for name, module in network.named_children()}
    before = [parts[name] for name in ("embedding", "positions") if name in parts]
    lines = [*before, *body, parts.get("head", Line(0, "head: the embedding's weights", "head", 0, False))]
    return [replace(line, off=any(f"{line.path}.".startswith(f"{path}.") for path in off)) for line in lines]


def _walk(part: Part, module: nn.Module, path: str, name: str, depth: int) -> Iterator[Line]:
    """The lines of a part; a chain that nobody named adds no line of its own."""
    if isinstance(part, Named):
        yield from _walk(part.part, module, path, part.name, depth)
        return
    inner = _inner(part)
    text = ": ".join(filter(None, (name, _about(part))))
    if text or not inner:
        yield Line(depth, text or kebab(type(part).__name__), path, _size(module), False)
        depth += 1
    for child_name, child in inner:
        step = _first(module) if isinstance(part, Repeat) else module.get_submodule(child_name)
        yield from _walk(child, step, f"{path}.{child_name}", "", depth)


def _inner(part: Part) -> list[tuple[str, Part]]:
    if isinstance(part, (Chain, Parallel)):
        return name_parts(part.parts)
    if isinstance(part, Residual):
        return name_parts([part.part])
    if isinstance(part, ChunkMemory):
        return [("inside", keep_name(part.part))]
    return [("0", keep_name(part.part))] if isinstance(part, Repeat) else []


def _about(part: Part) -> str:
    """What a line says of a part."""
    if isinstance(part, Silent):
        return f"{_about(part.part)}, silent at first"
    if isinstance(part, Attention):
        positions, scores = name_of(Positions, part.positions), name_of(Scores, part.scores)
        return f"attention, {part.heads} heads, positions {positions}, scores {scores}"
    if isinstance(part, (ChunkMemory, HierarchicalAttention, LocalAttention)):
        return _about_long_memory(part)
    if isinstance(part, (Mlp, GatedMlp)):
        between = "" if part == Mlp(part.factor) else f", {kebab(type(part.activation).__name__)}"
        return f"{kebab(type(part).__name__)}, {part.factor} times as wide inside{between}"
    if isinstance(part, Repeat):
        return f"{part.times} times" if part.times > 1 else "once"
    if isinstance(part, Chain):
        return ""
    if isinstance(part, Residual):
        norm = "LN" if part.norm == LayerNorm() else kebab(type(part.norm).__name__)
        return f"x + ...({norm}(x))" if part.pre else f"{norm}(x + ...)"
    return "side by side, outputs added" if isinstance(part, Parallel) else kebab(type(part).__name__)


def _about_long_memory(part: ChunkMemory | HierarchicalAttention | LocalAttention) -> str:
    if isinstance(part, LocalAttention):
        return f"local attention, {part.heads} heads, the last {part.window} tokens"
    if isinstance(part, HierarchicalAttention):
        weights = name_of(ChunkWeights, part.weights)
        return f"hierarchical attention, {part.heads} heads, {part.chunks} chunks, weights {weights}"
    common = f", {part.overlap} of them in common" if part.overlap else ""
    inside = f"encoder layers {part.encoder}, heads for keys and values {part.kv_heads}"
    return f"memory of chunks of {part.chunk} tokens{common}, {inside}"


def _first(module: nn.Module) -> nn.Module:
    return next(module.children())


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
