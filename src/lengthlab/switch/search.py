"""Attention found by trying: the model runs on an example, without its biases, and with attention giving zeros. Whatever gives
zeros then, and did not before, is made of attention alone. The outermost modules of which that is true can be off.

A block that adds its input itself is not, but its last map is. Where its output is then what came in, the whole block is off
and hands its input through.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lengthlab.errors import require
from lengthlab.switch.found import Found, nothing_to_skip
from lengthlab.switch.inputs import Example
from lengthlab.switch.learning import Learning, what_learns
from lengthlab.switch.module_call import ModuleCall
from lengthlab.switch.probe import Probe, blind_rows, same_outputs
from lengthlab.switch.rest import at_rest
from lengthlab.switch.silence import Silence, callers, made_in, standing_in
from lengthlab.switch.sites import Site, with_shared
from lengthlab.switch.stand_in import recorded_stand_in
from lengthlab.switch.trace import Trace

DEPTH = 6
"""So many times what cannot be skipped as a whole is looked into."""


def search(model: nn.Module, example: Example, cross: bool = True) -> Found:
    """Everything that is made of attention alone in a model."""
    with at_rest(model, biases=False):
        return _Search(Silence(model, Probe(model, example), cross)).found()


class _Search:
    """From attention that is silent to the modules that can be off, step by step."""

    def __init__(self, silence: Silence) -> None:
        self.silence, self.probe = silence, silence.probe
        self.model, self.modules, self.on = silence.model, silence.modules, silence.on
        self.alone = silence.alone()

    def found(self) -> Found:
        sites = self._complete(self._fitting(self._outermost("")))
        learning = what_learns(self.probe, sites)
        whole = self._kept_whole(sites, learning) if learning else sites
        if whole is not sites:
            sites, learning = whole, what_learns(self.probe, whole)
        beside = with_shared(self.model, sites), *self.silence.left()
        odd = tuple(dict.fromkeys(call.modules[-1] for call in self.on[0].odd if call.modules))
        blind = blind_rows(self.on, self.silence.off)
        if learning is None:
            return Found(*beside, known=False)
        lost = learning.lost(sites)
        idle = learning.idle(lost, [call.modules[-1] for call in self.on[0].attention])
        return Found(*beside, learning.starved(lost), idle, unread=self._unread(learning, lost), odd=odd, blind=blind)

    def _complete(self, sites: tuple[Site, ...]) -> tuple[Site, ...]:
        """Where attention still reaches the output, what only passes it on is off as well, a dropout; or an error."""
        links = tuple(self._site(name, keeps) for name, keeps in self.silence.links.items() if name in self.silence.units)
        sites = (*sites, *links)
        leaks = self._leaks(sites)
        if leaks:
            sites = self._with_blocks(sites, leaks)
            leaks = self._leaks(sites)
        if leaks:
            passing = [name for caller in leaks for name in self._outermost(caller, bare=True)]
            names = [site.name for site in sites if site.name not in self.silence.links]
            sites = (*self._fitting(list(dict.fromkeys(names + passing))), *links)
            leaks = self._leaks(sites)
        require(not leaks and len(sites) > 0, nothing_to_skip(self.model, leaks or callers(self.silence.every)))
        return sites

    def _with_blocks(self, sites: tuple[Site, ...], leaks: Sequence[str]) -> tuple[Site, ...]:
        """And the modules that add attention to their input and have nothing in them that could be off."""
        kept = {name: keeps for name in leaks if name and (keeps := _keeps(self.silence.off, name))}
        chosen = (*sites, *(self._site(name, keeps) for name, keeps in kept.items()))
        return chosen if kept and self._same_closed(chosen, self.silence.off[0]) else sites

    def _leaks(self, sites: tuple[Site, ...]) -> tuple[str, ...]:
        """Modules whose attention changes the output, though it should be off, while these are."""
        silent, off = self.silence.calls, [site.name for site in sites]
        with standing_in(sites):
            closed = self.probe.forward(0)
            if same_outputs(closed, self.probe.forward(0, silent, self.silence.hushed(off))):
                return ()
            calls = dict.fromkeys(call.modules[-1] for call in closed.attention if silent(call))
            reach = [name for name in calls if not same_outputs(closed, self.probe.forward(0, made_in(name)))]
        return tuple(reach) or tuple(calls)

    def _outermost(self, root: str, bare: bool = False) -> list[str]:
        """Modules below this one that are made of attention alone, can be skipped, and have something to skip; `bare`: or have
        nothing.
        """
        found: list[str] = []
        for child, module in self.modules[root].named_children():
            name = f"{root}.{child}".lstrip(".")
            if name not in self.modules:  # a second name of a module that has its place elsewhere
                continue
            calls = self.on[0].modules.get(name, [])
            skips = bare or next(module.parameters(), None) is not None or self._attends(name)
            if name in self.alone and skips and recorded_stand_in(module, calls) is not None:
                found.append(name)
            else:
                found += self._outermost(name, bare)
        return found

    def _attends(self, name: str) -> bool:
        return name in self.silence.every or any(name in call.modules for call in self.on[0].attention)

    def _site(self, name: str, keeps: str | None = None) -> Site:
        module = self.modules[name]
        stand_in = recorded_stand_in(module, self.on[0].modules[name], keeps)
        assert stand_in is not None
        return Site(name, module, stand_in)

    def _fitting(self, names: list[str]) -> tuple[Site, ...]:
        """Those that the rest of the model takes for the real ones; where it does not, what is inside them."""
        for _ in range(DEPTH):
            sites = tuple(self._site(name) for name in names)
            if not sites or self._fits(sites):
                return sites
            wrong = [site.name for site in sites if not self._fits((site,), sites)]
            names = [inner for name in names for inner in (self._outermost(name) if name in (wrong or names) else [name])]
        return ()

    def _fits(self, sites: tuple[Site, ...], hushed: tuple[Site, ...] | None = None) -> bool:
        """Whether standing in for these is the same as running them and taking zeros for what they give."""
        zeros: dict[str, str | None] = {site.name: None for site in hushed or sites}
        wanted = self.probe.forward(0, self.silence.calls, self.silence.hushed() | zeros)
        mine = {site.name for site in sites}
        others = {name: None for name in zeros if name not in mine}
        try:
            with standing_in(sites):
                had = self.probe.forward(0, self.silence.calls, self.silence.hushed(mine) | others)
        except Exception:  # whatever a model makes of what it did not expect
            return False
        return same_outputs(had, wanted)

    def _kept_whole(self, sites: tuple[Site, ...], learning: Learning) -> tuple[Site, ...]:
        """Blocks around sites that hand their input through while these are off, instead of the sites in them."""
        with standing_in(sites):
            closed = self.probe.both(self.silence.calls)
        off = {site.name for site in sites}
        bare = [call for call in self.on[0].attention if off.isdisjoint(call.modules)]  # computed for nothing
        around = [name for name in self._around(sites) if any(name in call.modules for call in bare)]
        idle = [name for name in around if not learning.inside(name)]
        whole = {name: keeps for name in idle if (keeps := _keeps(closed, name))}
        outer = [name for name in whole if not any(name.startswith(f"{other}.") for other in whole)]
        rest = [site for site in sites if not any(site.name.startswith(f"{name}.") for name in outer)]
        blocks = [self._site(name, whole[name]) for name in outer]
        chosen = tuple(sorted((*rest, *blocks), key=lambda site: list(self.modules).index(site.name)))
        return chosen if blocks and self._same_closed(chosen, closed[0]) else sites

    def _unread(self, learning: Learning, lost: Sequence[str]) -> tuple[str, ...]:
        """The outermost modules beside cross-attention that is off, in which something has lost its gradient and nothing has
        one.
        """
        crossing = list(self.silence.crossing())
        if not any(call in self.silence.units for call in crossing):
            return ()
        others = set(self.on[0].modules) - {"", *(name for call in crossing for name in call.modules)}
        matrices = [name for name in lost if self.model.get_parameter(name).dim() > 1]  # more than a norm
        dead = [
            name
            for name in sorted(others, key=len)
            if any(each.startswith(f"{name}.") for each in matrices) and not learning.inside(name)
        ]
        return tuple(name for name in dead if not any(name.startswith(f"{other}.") for other in dead))

    def _around(self, sites: tuple[Site, ...]) -> set[str]:
        """Modules that have sites in them and are no list of modules."""
        pieces = [site.name.split(".") for site in sites]
        outer = {".".join(each[:depth]) for each in pieces for depth in range(1, len(each))}
        return {name for name in outer if name in self.on[0].modules and name not in self.alone and self.on[0].modules[name]}

    def _same_closed(self, sites: tuple[Site, ...], wanted: Trace) -> bool:
        try:
            with standing_in(sites):
                return same_outputs(self.probe.forward(0, self.silence.calls), wanted)
        except Exception:  # whatever a model makes of what it did not expect
            return False


def _keeps(closed: tuple[Trace, Trace], name: str) -> str | None:
    """Which input of a module is what it gives, in every call."""
    calls = [call for trace in closed for call in trace.modules.get(name, [])]
    names = [each for each in (calls[0].given if calls else ()) if all(_is_handed_through(call, each) for call in calls)]
    return names[0] if names and all(call.values >= 0 for call in calls) else None


def _is_handed_through(call: ModuleCall, name: str) -> bool:
    return name in call.given and call.given[name][1] == call.mark
