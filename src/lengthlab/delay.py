"""Switching a part of any model off, and on again later. The heart of the house.

Off means skipped: the part's forward does not run, its parameters get no gradient, and so no optimizer moves, decays or keeps
state for them. Where the part stands in a chain, what comes in goes out unchanged; where its output would be added to
something, nothing is added.

    delay = delay_parts(model, "attention")     # or "layers.*.self_attn": names of modules, matched from their end
    ...                                         # train: the rest of the model learns
    delay.open()                                # train: all of it learns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from lengthlab.errors import LabError, nearest

Instead = Callable[..., object]

PAIRS = (nn.MultiheadAttention, nn.RNNBase)
"""Modules whose output is the first of a pair; while off, the second is None."""


def identity(*inputs: Tensor, **named: Tensor) -> Tensor:
    """What replaces a link of a chain."""
    return next(iter((*inputs, *named.values())))


def nothing(*inputs: Tensor, **named: Tensor) -> Tensor:
    """What replaces a summand."""
    return torch.zeros_like(identity(*inputs, **named))


def identity_and_none(*inputs: Tensor, **named: Tensor) -> tuple[Tensor, None]:
    """`identity` for a module that gives a pair."""
    return identity(*inputs, **named), None


def nothing_and_none(*inputs: Tensor, **named: Tensor) -> tuple[Tensor, None]:
    """`nothing` for a module that gives a pair."""
    return nothing(*inputs, **named), None


INSTEADS = (identity, nothing, identity_and_none, nothing_and_none)


def _untouched(module: nn.Module, inputs: object) -> None:
    """A hook that does nothing."""


@dataclass(frozen=True)
class Site:
    """One module that can be off, and what stands in for it then."""

    name: str
    module: nn.Module
    instead: Instead


class Delay:
    """A set of sites that are off or on together. Made closed by `delay_parts`.

    While closed, the `forward` of each module object is replaced (its class, its weights and the names in its state dict are
    untouched); `open` puts it back.
    """

    def __init__(self, sites: tuple[Site, ...]) -> None:
        self.sites = sites
        self.is_open = True
        self._own_forward: dict[str, object] = {}
        self._hooks: list[RemovableHandle] = []

    def close(self) -> None:
        if not self.is_open:
            return
        for site in self.sites:
            # Some libraries set `forward` on the object themselves: keep theirs, so that opening restores it.
            own = vars(site.module).get("forward")
            if own is not None and own not in INSTEADS:
                self._own_forward[site.name] = own
            site.module.forward = site.instead
            # torch's fused transformer layer never calls its attention module, unless that has a hook.
            self._hooks.append(site.module.register_forward_pre_hook(_untouched))
        for parameter in self.parameters():
            parameter.grad = None
        self.is_open = False

    def open(self) -> None:
        if self.is_open:
            return
        for site in self.sites:
            vars(site.module).pop("forward", None)
            if site.name in self._own_forward:
                site.module.forward = self._own_forward.pop(site.name)  # type: ignore[assignment]
        while self._hooks:
            self._hooks.pop().remove()
        self.is_open = True

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that stand still while closed."""
        for site in self.sites:
            yield from site.module.parameters()

    def forget(self, optimizer: torch.optim.Optimizer) -> None:
        """Drop what the optimizer remembers of these parameters, so that they start afresh when they are opened."""
        for parameter in self.parameters():
            optimizer.state.pop(parameter, None)

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        rows = [
            f"  {site.name}: {sum(p.numel() for p in site.module.parameters()):,} parameters, {site.instead.__name__} while off"
            for site in self.sites
        ]
        return "\n".join([f"Delay, {state}:", *rows])


def delay_parts(model: nn.Module, *parts: str) -> Delay:
    """Switch the named parts of a model off; `open()` on what comes back switches them on.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    >>> delay = delay_parts(model, "1")
    >>> delay
    Delay, closed:
      1: 6 parameters, identity while off
    >>> delay.open()
    """
    delay = Delay(find(model, *parts))
    delay.close()
    return delay


def find(model: nn.Module, *parts: str) -> tuple[Site, ...]:
    """The outermost modules whose names end in one of these; `*` stands for any one name or piece of it."""
    sites: dict[str, Site] = {}
    for part in parts:
        found = [site for site in _sites(model) if _ends_in(site.name, part)]
        if not found:
            names = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules() if name}
            raise LabError(f"no part of the model is named '{part}'; {nearest(part, names)}")
        sites |= {site.name: site for site in found}
    return tuple(site for name, site in sites.items() if not any(_inside(name, other) for other in sites))


def _sites(model: nn.Module) -> Iterator[Site]:
    for name, module in model.named_modules():
        for child_name, child in module.named_children():
            alone, paired = (identity, identity_and_none) if isinstance(module, nn.Sequential) else (nothing, nothing_and_none)
            instead: Instead = paired if isinstance(child, PAIRS) else alone
            yield Site(f"{name}.{child_name}".lstrip("."), child, instead)


def _ends_in(name: str, part: str) -> bool:
    have, want = name.split("."), part.split(".")
    return len(have) >= len(want) and all(map(fnmatchcase, have[-len(want) :], want))


def _inside(name: str, other: str) -> bool:
    return name.startswith(other + ".")
