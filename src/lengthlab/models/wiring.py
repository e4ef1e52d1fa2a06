"""The modules that compositions are built of: in a row, side by side, around a residual path.

Each hands the layout on, and works only where outputs are wanted as far as its parts allow.
Shapes: B samples, T tokens, D width, Q positions at which outputs are wanted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.models.mixer import LaidOut, is_tokenwise, read, run


class Links(nn.Sequential, LaidOut):
    """A chain: everything up to the last mixing of tokens is computed in full, the rest where it is wanted."""

    @property
    def tokenwise(self) -> bool:
        return all(is_tokenwise(link) for link in self)

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        links, last = list(self), self._last
        for link in links[:last]:
            x_BTD = run(link, x_BTD, layout.everywhere)
        for link in links[last : last + 1]:
            x_BTD = run(link, x_BTD, layout)
        for link in links[last + 1 :]:  # only wanted outputs are left, and each is treated by itself
            x_BTD = link(x_BTD)
        return x_BTD

    def read(self, x_BTD: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
        after, last = {}, self._last
        for place, (name, link) in enumerate(self.named_children()):
            wanted = layout if place == last else layout.everywhere  # after the last mixing nothing else is left
            x_BTD, after[name] = read(link, x_BTD, state and state[name], wanted)
        return x_BTD, after

    @property
    def _last(self) -> int:
        """The place of the last link that mixes tokens, or of the first."""
        return max((place for place, link in enumerate(self) if not is_tokenwise(link)), default=0)


class Sum(LaidOut):
    """Parts side by side, outputs added."""

    @property
    def tokenwise(self) -> bool:
        return all(is_tokenwise(part) for part in self.children())

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        first, *others = (run(part, x_BTD, layout) for part in self.children())
        for other in others:
            first = first + other
        return first

    def read(self, x_BTD: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
        outs, after = [], {}
        for name, part in self.named_children():
            out, after[name] = read(part, x_BTD, state and state[name], layout)
            outs.append(out)
        return torch.stack(outs).sum(dim=0), after


class _Residual(LaidOut):
    """A part, a norm, and a path around the part."""

    def __init__(self, name: str, part: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        require(name != "norm", "a part inside a residual cannot be named 'norm', as its norm is")
        self.add_module(name, part)
        self.norm = norm
        self._part = name

    @property
    def part(self) -> nn.Module:
        return self.get_submodule(self._part)

    @property
    def tokenwise(self) -> bool:
        return is_tokenwise(self.part) and is_tokenwise(self.norm)


class PostNorm(_Residual):
    """norm(x + f(x))."""

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        beside = pick(x_BTD, layout.query_BQ)
        added = run(self.part, x_BTD, layout)
        norm: Any = self.norm
        plain = type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None
        if plain and kernels.serve_tokens(beside):
            return kernels.add_norm(beside, added, norm)
        out: Tensor = norm(beside + added)
        return out

    def read(self, x_BTD: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
        added, after = read(self.part, x_BTD, state, layout)
        return self.norm(pick(x_BTD, layout.query_BQ) + added), after


class PreNorm(_Residual):
    """x + f(norm(x))."""

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        return pick(x_BTD, layout.query_BQ) + run(self.part, self.norm(x_BTD), layout)

    def read(self, x_BTD: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
        added, after = read(self.part, self.norm(x_BTD), state, layout)
        return pick(x_BTD, layout.query_BQ) + added, after
