"""Copies of a model, as an average of weights keeps one: the same parts of them are off, as long as those of the model are."""

from __future__ import annotations

from typing import Protocol

from torch import nn

from lengthlab.errors import a_kind, nearest, require
from lengthlab.switch.sites import Site


class Switch(Protocol):
    """As much of a delay as a copy has to know."""

    is_open: bool
    steps: int

    @property
    def is_settled(self) -> bool: ...

    opened_at: int | None

    def open(self) -> None: ...
    def close(self) -> None: ...
    def go_to(self, steps: int) -> None: ...
    def remove(self) -> None: ...


class Follower(Protocol):
    """What is told of a delay."""

    def follow(self, delay: Switch) -> None:
        """It has opened, closed, or counted a step."""

    def end(self) -> None:
        """It is removed."""


class Mirror:
    """The delay of a copy, which does what that of the model does."""

    def __init__(self, copy: Switch) -> None:
        self.copy = copy

    def follow(self, delay: Switch) -> None:
        if self.copy.is_open != delay.is_open:
            (self.copy.open if delay.is_open else self.copy.close)()
        self.copy.opened_at = delay.opened_at  # a contribution that grows is as large in both
        self.copy.go_to(delay.steps)

    def end(self) -> None:
        self.copy.remove()


def same_sites(sites: tuple[Site, ...], copy: nn.Module) -> tuple[Site, ...]:
    """The modules of these names in a copy. It may have the model inside, and so a longer name for each."""
    require(isinstance(copy, nn.Module), f"a copy of the model is an nn.Module, not {a_kind(copy)}")
    modules = dict(copy.named_modules())
    first = sites[0].name
    outer = [name.removesuffix(first) for name in modules if f".{name}".endswith(f".{first}")]
    whole = [prefix for prefix in outer if all(prefix + site.name in modules for site in sites)]
    require(len(whole) > 0, f"the copy has no module '{first}', or not all the others; {nearest(first, modules)}")
    return tuple(_same(site, modules[min(whole, key=len) + site.name]) for site in sites)


def _same(site: Site, module: nn.Module) -> Site:
    require(module is not site.module, f"'{site.name}' of the copy is that of the model itself: copy.deepcopy makes a copy")
    kinds = a_kind(module), a_kind(site.module)
    require(type(module) is type(site.module), f"'{site.name}' of the copy is {kinds[0]}, and of the model {kinds[1]}")
    return Site(site.name, module, site.stand_in, site.shared)
