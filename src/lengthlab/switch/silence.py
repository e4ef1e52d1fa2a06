"""Attention that gives nothing for a moment: calls of it, modules that are a kernel, and modules that are stood in for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lengthlab.switch.probe import Silent
from lengthlab.switch.sites import Site
from lengthlab.switch.trace import AttentionCall

Unit = AttentionCall | str
"""Attention that can be silenced: a call of it, or the name of a module that is a kernel of somebody's own."""


def these(units: Sequence[Unit]) -> Silent:
    chosen = set(units)
    return lambda call: call in chosen


def made_in(name: str) -> Silent:
    return lambda call: call.modules[-1] == name


@contextmanager
def standing_in(sites: Sequence[Site]) -> Iterator[None]:
    """With these modules replaced, for a moment."""
    before = [vars(site.module).get("forward") for site in sites]
    for site in sites:
        site.module.forward = site.stand_in
    try:
        yield
    finally:
        for site, own in zip(sites, before, strict=True):
            del site.module.forward
            if own is not None:
                site.module.forward = own
