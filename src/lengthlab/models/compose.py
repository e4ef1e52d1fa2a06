"""Putting parts together. A part is data with `build(width)`; what it builds maps x_BTD to x_BTD and never looks ahead. It may
be any `nn.Module`; one that lets tokens see each other is best written as a `Mixer` (mixer.py).

`chain`, `parallel`, `residual`, `repeat`, `named` and `silent` are all there is: the paper's architectures are made of them
(paper.py), and so is yours. The names given with `named` are the names under which a schedule switches parts off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import nn

from lengthlab.errors import require, require_whole
from lengthlab.models.norms import LayerNorm, Norm
from lengthlab.models.wiring import Links, PostNorm, PreNorm, Sum
from lengthlab.registry import kebab

MOST = 1000
"""Blocks that a network can be made of in reasonable time."""


class Part(Protocol):
    """Anything with this method, as a frozen dataclass, is a part."""

    def build(self, width: int) -> nn.Module: ...


@dataclass(frozen=True)
class Named:
    """A part that a schedule, a learning rate or a diagnosis can speak of."""

    name: str
    part: Part

    def __post_init__(self) -> None:
        allowed = isinstance(self.name, str) and self.name.replace("-", "").replace("_", "").isalnum()
        require(allowed, f"the name of a part is made of letters, digits, - and _, not '{self.name}'")

    def build(self, width: int) -> nn.Module:
        return self.part.build(width)


@dataclass(frozen=True)
class Chain:
    """Parts one after the other."""

    parts: tuple[Part, ...]

    def build(self, width: int) -> nn.Module:
        return _links(name_parts(self.parts), width)


@dataclass(frozen=True)
class Repeat:
    """The same part so many times in a row, each with weights of its own."""

    times: int
    part: Part

    def __post_init__(self) -> None:
        require_whole(self.times, "model.blocks", 1, MOST)

    def build(self, width: int) -> nn.Module:
        return _links([(str(i), keep_name(self.part)) for i in range(self.times)], width)


@dataclass(frozen=True)
class Parallel:
    """Parts side by side, outputs added."""

    parts: tuple[Part, ...]

    def build(self, width: int) -> nn.Module:
        branches = Sum()
        for name, part in name_parts(self.parts):
            branches.add_module(name, part.build(width))
        return branches


@dataclass(frozen=True)
class Residual:
    """A path around a part, with a norm after it, or before the part with `pre`."""

    part: Part
    norm: Norm = field(default=LayerNorm(), metadata={"added": "0.2"})
    pre: bool = field(default=False, metadata={"added": "0.2"})

    def build(self, width: int) -> nn.Module:
        ((name, part),) = name_parts([self.part])
        return (PreNorm if self.pre else PostNorm)(name, part.build(width), self.norm.build(width))


@dataclass(frozen=True)
class Silent:
    """A part whose output is zero at first."""

    part: Part

    def __post_init__(self) -> None:
        composed = isinstance(self.part, (Chain, Repeat, Parallel, Residual, Named, Silent))
        require(not composed, "silent goes around one part, inside its name: named('attend', silent(Attention()))")

    def build(self, width: int) -> nn.Module:
        module = self.part.build(width)
        maps = [each for each in module.modules() if isinstance(each, nn.Linear)]
        require(len(maps) > 0, f"{type(self.part).__name__} has no linear map to begin silent with")
        for parameter in maps[-1].parameters():
            nn.init.zeros_(parameter)
        return module


def chain(*parts: Part) -> Chain:
    """One after the other: `chain(f, g)` is g(f(x))."""
    return Chain(parts)


def repeat(times: int, part: Part) -> Repeat:
    """The same part so many times in a row, each with weights of its own."""
    return Repeat(times, part)


def parallel(*parts: Part) -> Parallel:
    """Side by side, outputs added: `parallel(f, g)` is f(x) + g(x)."""
    return Parallel(parts)


def residual(part: Part, norm: Norm = LayerNorm(), pre: bool = False) -> Residual:
    """norm(x + f(x)), as in the first transformer; with `pre`, x + f(norm(x))."""
    return Residual(part, norm, pre)


def named(name: str, part: Part) -> Named:
    """A part that a schedule, a learning rate or a diagnosis can speak of.

    >>> from lengthlab.models.recurrence.lstm import Lstm
    >>> chain(Lstm(), named("reader", Lstm())).build(8)
    Links(
      (lstm): _Lstm(
        (cell): LSTM(8, 8, batch_first=True)
      )
      (reader): _Lstm(
        (cell): LSTM(8, 8, batch_first=True)
      )
    )
    """
    return Named(name, part)


def silent(part: Part) -> Silent:
    """A part whose output is zero at first, because its last linear map begins at zero. In a residual it changes nothing until
    it has learned to, so that opening it disturbs no one.

    >>> import torch
    >>> from lengthlab.models.mlp import Mlp
    >>> bool(silent(Mlp(2)).build(width=4)(torch.ones(1, 3, 4)).any())
    False
    """
    return Silent(part)


def keep_name(part: Part) -> Part:
    """A name needs something around it to be kept in: where nothing is, a chain of one."""
    return Chain((part,)) if isinstance(part, Named) else part


def name_parts(parts: Sequence[Part]) -> list[tuple[str, Part]]:
    """Every part under its name, or its kind's where it has none; the second of a name gets `-2`."""
    pairs: dict[str, Part] = {}
    given = {part.name for part in parts if isinstance(part, Named)}
    for part in parts:
        kind = part.part if isinstance(part, Silent) else part
        name = part.name if isinstance(part, Named) else kebab(type(kind).__name__)
        taken = hasattr(nn.Module, name) or name == "training"
        require(not taken, f"every module has a '{name}' already: name the part otherwise")
        names = (name, *(f"{name}-{number}" for number in range(2, 2 + len(parts))))
        free = next(n for n in names if n not in pairs and (n == name or n not in given))
        pairs[free] = part
    return list(pairs.items())


def _links(pairs: Sequence[tuple[str, Part]], width: int) -> Links:
    modules = Links()
    for name, part in pairs:
        modules.add_module(name, part.build(width))
    return modules
