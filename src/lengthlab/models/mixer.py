"""A mixer lets tokens see each other. It writes one plain method; rows of documents, outputs only where they are wanted and
capture on a GPU come by default. So they do for anybody's `nn.Module` from x_BTD to x_BTD that knows nothing of this file.

What comes after the last mixer of a network (MLP, norms, head) is needed only where outputs are wanted. The numbers are those
of the full computation, picked afterwards; the work is a fraction of it.

Shapes: B samples, T tokens, D width, Q positions at which outputs are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from lengthlab.models.layout import PLAIN, Layout, pick

TOKENWISE = (
    *(nn.Linear, nn.Identity, nn.Dropout, nn.RMSNorm, nn.LayerNorm),
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish),
    *(nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid),
)
"""PyTorch's modules that treat every token by itself. A module of your own that does so says `tokenwise = True`."""


class LaidOut(nn.Module):
    """A module that is given the layout: `forward(x_BTD, layout)` is x_BQD, everywhere if no queries are named."""

    @property
    def tokenwise(self) -> bool:
        """Whether it treats every token by itself."""
        return False

    @property
    def parts(self) -> Iterable[nn.Module]:
        """The modules in it that it hands the layout on to."""
        return self.children()

    @property
    def has_state(self) -> bool:
        """Whether it, and all in it, can go on from a state: `read(x_BTD, state, layout) -> (x_BQD, state)`."""
        return all(map(has_state, self.parts))

    def state_bytes(self, tokens: int) -> int:
        """Of keys and values that its state has after so many tokens of a sample, those of its parts left out."""
        return 0


class Mixer(LaidOut):
    """Subclass it and write `mix`. `examples/gru_hybrid.py` is a whole one.

    A mixer that can be faster than its plain method overrides `forward` as well, and is held against `mix` by a test.
    One that can go on from a state also has `read(x_BTD, state) -> (x_BTD, state)`, `state` being None at the start; or, where
    outputs cost much, `read_at(x_BTD, state, layout) -> (x_BQD, state)`.

    >>> import torch
    >>> class Shift(Mixer):
    ...     def mix(self, x_BTD, layout):
    ...         return x_BTD.roll(1, dims=1).index_fill(1, torch.tensor([0]), 0.0)
    >>> from lengthlab.models.layout import Documents
    >>> row = torch.arange(1.0, 5.0).view(1, 4, 1)
    >>> Shift()(row, Layout(documents=Documents([1, 3]))).flatten().tolist()  # every document for itself
    [0.0, 0.0, 2.0, 3.0]
    """

    @property
    def lacks(self) -> str:
        """What would make it faster on a GPU and is not there, in words; nothing, if it is as fast as it can be."""
        return ""

    def mix(self, x_BTD: Tensor, layout: Layout) -> Tensor:
        """x_BTD of x_BTD: a padded batch, outputs everywhere; `layout` has position ids, where the task has its own."""
        raise NotImplementedError(f"{type(self).__name__} is a Mixer without the method 'mix'")

    @property
    def has_state(self) -> bool:
        return hasattr(self, "read") or type(self).read_at is not Mixer.read_at

    def read_at(self, x_BTD: Tensor, state: Any, layout: Layout) -> tuple[Tensor, Any]:
        """`read` where outputs are wanted; positions in the layout are those in this piece."""
        out_BTD, after = self.read(x_BTD, state)  # type: ignore[operator]
        return pick(out_BTD, layout.query_BQ), after

    def forward(self, x_BTD: Tensor, layout: Layout = PLAIN) -> Tensor:
        if layout.documents is None:
            return pick(self.mix(x_BTD, layout.padded), layout.query_BQ)
        out_BTD = self.mix(layout.documents.pad(x_BTD), layout.padded)
        return pick(layout.documents.row(out_BTD), layout.query_BQ)


def run(module: nn.Module, x_BTD: Tensor, layout: Layout) -> Tensor:
    """`module(x)` where outputs are wanted, with as little work as the module allows."""
    out: Tensor
    if is_tokenwise(module):
        out = module(pick(x_BTD, layout.query_BQ))
    elif is_switched_off(module):  # what stands in for it gives zeros, or what came in
        out = pick(module(x_BTD), layout.query_BQ)
    elif isinstance(module, LaidOut):
        out = module(x_BTD, layout)
    elif layout.documents is None:
        out = pick(module(x_BTD), layout.query_BQ)
    else:  # anybody's module reads padded sequences
        out = pick(layout.documents.row(module(layout.documents.pad(x_BTD))), layout.query_BQ)
    return out


def read(module: nn.Module, x_BTD: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
    """`module(x)` for tokens that come after those that `state` has seen (None: none), where the layout wants outputs, and the
    state after them.
    """
    if is_tokenwise(module) or is_switched_off(module):
        return run(module, x_BTD, layout), None
    reads = module.read_at if isinstance(module, Mixer) else module.read
    out: tuple[Tensor, Any] = reads(x_BTD, state, layout)  # type: ignore[operator]
    return out


def has_state(module: nn.Module) -> bool:
    """Whether a module, and all in it, can go on from a state."""
    if is_tokenwise(module) or is_switched_off(module):
        return True
    replaced = "forward" in vars(module)  # by somebody's, a window for example, which reading on would pass by
    return isinstance(module, LaidOut) and module.has_state and not replaced


def is_switched_off(module: nn.Module) -> bool:
    """The switch puts a forward of its own into the module object; so may others, who do not switch anything off."""
    return getattr(vars(module).get("forward"), "is_off", False)


def is_tokenwise(module: nn.Module) -> bool:
    """Whether a module is known to treat every token by itself.

    >>> is_tokenwise(nn.GELU()), is_tokenwise(nn.Sequential(nn.Linear(2, 2), nn.RMSNorm(2))), is_tokenwise(nn.LSTM(2, 2))
    (True, True, False)
    """
    if is_switched_off(module):
        return False
    marked = getattr(module, "tokenwise", None)
    if isinstance(marked, bool):
        return marked
    if type(module) is nn.Sequential:
        return all(map(is_tokenwise, module))
    if isinstance(module, (nn.LayerNorm, nn.RMSNorm)) and len(module.normalized_shape) != 1:
        return False  # such a norm looks at several tokens
    # A subclass with another forward may do anything.
    return any(isinstance(module, kind) and type(module).forward is kind.forward for kind in TOKENWISE)


def padded_parts(body: nn.Module) -> list[str]:
    """The parts of a body around which rows of documents are padded, because nothing better is known of them."""
    if is_tokenwise(body) or (isinstance(body, Mixer) and type(body).forward is not Mixer.forward):
        return []
    if isinstance(body, LaidOut) and not isinstance(body, Mixer):
        return [name for part in body.parts for name in padded_parts(part)]
    return [type(body).__name__]
