"""Who a parameter is that learns while it is off, and what probably did it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lengthlab.switch.forwards import Switched, is_in_place
from lengthlab.switch.sites import Site


def name_of(parameter: nn.Parameter, sites: Sequence[Site], model: nn.Module | None) -> str:
    """In the model, as far as that is known."""
    places = [(f"{site.name}.", site.module) for site in sites] + ([] if model is None else [("", model)])
    named = (f"{place}{name}" for place, module in places for name, each in module.named_parameters() if each is parameter)
    return next(named, f"a parameter of shape {tuple(parameter.shape)}")


def why(parameter: nn.Parameter, sites: Sequence[Site], forwards: Sequence[Switched]) -> str:
    """What probably gave a gradient to a parameter while it is off."""
    for site, ours in zip(sites, forwards, strict=True):
        if any(each is parameter for each in site.parameters()):
            if not is_in_place(site.module, ours):
                return (
                    f"the forward of '{site.name}' was replaced since; keep the one that is there while it is off, and call it"
                )
            return (
                f"other code than the forward of '{site.name}' uses it (a method of it, or its weights by themselves), or a"
                " gradient was set by hand; delay the module in which that happens: modules=[...]"
            )
    return "something that is on uses it as well, or a gradient was set by hand; delay what uses it: modules=[...]"
