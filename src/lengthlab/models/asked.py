"""Working only where the model is asked to speak.

A sequence of n pairs is asked at two positions. What comes after the last mixing of tokens (MLP, norms, head) is needed there
alone, and so are the queries of the last attention. The numbers are those of the full computation, picked afterwards; the work
is a fraction, and the memory of a last attention grows with T instead of T².

Shapes: B samples, T tokens, D width, Q positions asked for.
"""

from __future__ import annotations

from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require
from lengthlab.models.linear import Linear


class Asked(nn.Module):
    """A module that can be asked: `forward(x_BTD)` is x_BTD as ever, `forward(x_BTD, at_BQ)` is x_BQD."""

    @property
    def tokenwise(self) -> bool:
        """Whether it treats every token by itself."""
        return False


TOKENWISE = (nn.Linear, Linear, nn.ReLU, nn.LayerNorm, nn.Identity)


def ask(module: nn.Module, x_BTD: Tensor, at_BQ: Tensor | None) -> Tensor:
    """`module(x)` at the positions asked for, with as little work as the module allows; None asks for all."""
    out: Tensor
    if at_BQ is None:
        out = module(x_BTD)
    elif is_tokenwise(module):
        out = module(pick(x_BTD, at_BQ))
    elif isinstance(module, Asked) and "forward" not in vars(module):
        out = module(x_BTD, at_BQ)
    else:  # somebody else's module, or one whose forward is switched off
        out = pick(module(x_BTD), at_BQ)
    return out


def is_tokenwise(module: nn.Module) -> bool:
    if "forward" in vars(module):
        return False
    return module.tokenwise if isinstance(module, Asked) else type(module) in TOKENWISE


def pick(x_BTD: Tensor, at_BQ: Tensor) -> Tensor:
    """x_BQD: the rows of x at the given positions."""
    return x_BTD.gather(1, at_BQ[:, :, None].expand(-1, -1, x_BTD.shape[2]))


class Links(nn.Sequential, Asked):
    """A chain: everything up to the last mixing of tokens is computed in full, the rest where it is asked for."""

    @property
    def tokenwise(self) -> bool:
        return all(is_tokenwise(link) for link in self)

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        links = list(self)
        if at_BQ is not None and links:
            mixers = [place for place, link in enumerate(links) if not is_tokenwise(link)]
            last = mixers[-1] if mixers else 0
            for link in links[:last]:
                x_BTD = link(x_BTD)
            x_BTD, links = ask(links[last], x_BTD, at_BQ), links[last + 1 :]
        for link in links:
            x_BTD = link(x_BTD)
        return x_BTD


class Sum(Asked):
    """Parts side by side, outputs added."""

    @property
    def tokenwise(self) -> bool:
        return all(is_tokenwise(part) for part in self.children())

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        first, *others = (ask(part, x_BTD, at_BQ) for part in self.children())
        for other in others:
            first = first + other
        return first


class PostNorm(Asked):
    """LN(x + f(x))."""

    def __init__(self, name: str, part: nn.Module, width: int) -> None:
        super().__init__()
        require(name != "norm", "a part inside a residual cannot be named 'norm', as its LayerNorm is")
        self.add_module(name, part)
        self.norm = nn.LayerNorm(width)
        self._part = name

    @property
    def tokenwise(self) -> bool:
        return is_tokenwise(self.get_submodule(self._part))

    def forward(self, x_BTD: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        beside = x_BTD if at_BQ is None else pick(x_BTD, at_BQ)
        added = ask(self.get_submodule(self._part), x_BTD, at_BQ)
        if kernels.serve_tokens(beside):
            return kernels.add_norm(beside, added, self.norm)
        out: Tensor = self.norm(beside + added)
        return out
