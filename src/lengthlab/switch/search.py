"""Attention found by trying: the model runs on an example, without its biases, and with attention giving zeros. Whatever gives
zeros then, and did not before, is made of attention alone. The outermost modules of which that is true can be off.

A block that adds its input itself is not, but its last map is. Where its output is then what came in, the whole block is off
and hands its input through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from torch import nn

from lengthlab.errors import require
from lengthlab.switch.attention import is_called_attention
from lengthlab.switch.found import NOTHING_LEARNS, UNTRAINABLE, Found, require_attention
from lengthlab.switch.inputs import Example
from lengthlab.switch.module_call import ModuleCall
from lengthlab.switch.probe import Probe, at_rest, moved_outputs, same_outputs, was_at_work
from lengthlab.switch.silence import Unit, made_in, standing_in, these
from lengthlab.switch.sites import Site, with_shared
from lengthlab.switch.stand_in import recorded_stand_in
from lengthlab.switch.trace import AttentionCall, Trace, statically_attention

OTHERS = ("key_value_states", "encoder_hidden_states", "memory", "cross_attention_states")
"""What another sequence is called where it is handed to attention."""
DEPTH = 6
"""So many times what cannot be skipped as a whole is looked into."""


def search(model: nn.Module, example: Example, cross: bool = True) -> Found:
    """Everything that is made of attention alone in a model."""
    with at_rest(model, biases=False):
        return _Search(model, example, cross).found()


class _Search:
    """The steps of a search, in order."""

    def __init__(self, model: nn.Module, example: Example, cross: bool) -> None:
        self.model, self.probe = model, Probe(model, example)
        self.modules = dict(model.named_modules())
        self.on = self.probe.both()
        self._require_steady()
        require(any(moved_outputs(*self.on)), "the output of the model is the same for any input: give it another batch=")
        kernels = statically_attention(model, self.on[0])
        require_attention(model, self.on[0], bool(kernels))
        self.links = self._links()
        calls = [call for call in self.on[0].attention if not any(name in self.links for name in call.modules)]
        self.units: list[Unit] = [*calls, *(name for name in kernels if name not in self.links), *self.links]
        self.kept = () if cross else tuple(self._crossing())
        self.silenced = self._silenceable([each for each in self.units if each not in self.kept])
        self.off = self.probe.both(these(self.silenced), self._hushed(self.silenced))
        off = self.off[0]
        self.alone = {name for name, calls in off.modules.items() if _is_nothing(calls) and _is_something(self.on[0], name)}

    def found(self) -> Found:
        sites = self._kept_whole(self._complete(self._fitting(self._outermost(""))))
        starved, idle, unread = self._starved(sites)
        left = [each for each in self.units if each not in self.silenced]
        needed = [each for each in left if each not in self.kept]
        beside = self._callers(left), self._callers(needed), starved, idle, self.trained
        return Found(with_shared(self.model, sites), *beside, unread)

    def _links(self) -> dict[str, str]:
        """Links of chains with attention in them that have the only way to the output, and the input that each hands on."""
        asked = moved_outputs(*self.on)
        found: dict[str, str] = {}
        silent = self.probe.both(lambda call: True)
        if all(now or not before for before, now in zip(asked, moved_outputs(*silent), strict=False)):
            return found
        for name in dict.fromkeys(name for call in self.on[0].attention for name in call.modules if name):
            calls, parent = self.on[0].modules[name], self.modules[name.rpartition(".")[0]]
            like = next((each for each, (shape, _) in calls[0].given.items() if shape == calls[0].shape), None)
            inside = any(name.startswith(f"{other}.") for other in found) or not _is_nothing(silent[0].modules.get(name, []))
            if (
                like is None
                or inside
                or not isinstance(parent, nn.Sequential)
                or next(iter(parent.children())) is self.modules[name]
            ):
                continue
            blind = [self._moves({name: each}) != asked for each in (None, like)]
            found |= {name: like} if blind == [True, False] else {}
        return found

    def _moves(self, hushed: dict[str, str | None]) -> tuple[bool, ...]:
        return moved_outputs(*self.probe.both(hushed=hushed))

    def _hushed(self, units: Sequence[Unit], but: Collection[str] = ()) -> dict[str, str | None]:
        """The modules among them, each with what it hands on."""
        return {each: self.links.get(each) for each in units if isinstance(each, str) and each not in but}

    def _callers(self, units: Sequence[Unit]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each if isinstance(each, str) else each.modules[-1] for each in units))

    def _require_steady(self) -> None:
        """What exchanges its modules would not be found off in training."""
        now = dict(self.model.named_modules())
        gone = [name for name, module in self.modules.items() if now.get(name) is not module]
        require(
            not gone,
            f"the model exchanges '{gone[0] if gone else ''}' for another module while it runs, as BigBird does for short "
            f"sequences: settle that first (set_attention_type), or hand over a batch= like those it will be trained on",
        )

    def _crossing(self) -> Iterator[AttentionCall]:
        for call in self.on[0].attention:
            inner = [name for name in call.modules if is_called_attention(self.modules[name])]
            if any(_given_another(each) for name in inner for each in self.on[0].modules.get(name, [])):
                yield call

    def _silent_run(self, units: Sequence[Unit]) -> tuple[Trace, Trace]:
        return self.probe.both(these(units), self._hushed(units))

    def _silenceable(self, units: list[Unit]) -> list[Unit]:
        """As many as can be without an output becoming blind: the earlier ones first, so that the last ones stay."""
        asked = moved_outputs(*self.on)
        if not self._is_blind(units, asked):
            return units
        if len(units) > 1 and not self._is_blind(units[:-1], asked):
            return units[:-1]
        taken: list[Unit] = []
        for each in units:
            if not self._is_blind([*taken, each], asked):
                taken.append(each)
        require(bool(taken), self._all_needed())
        return taken

    def _is_blind(self, units: Sequence[Unit], asked: tuple[bool, ...]) -> bool:
        moved = moved_outputs(*self._silent_run(units))
        return any(before and not now for before, now in zip(asked, moved, strict=False))

    def _complete(self, sites: tuple[Site, ...]) -> tuple[Site, ...]:
        """Where attention still reaches the output, what only passes it on is off as well, a dropout; or an error."""
        links = tuple(self._site(name, keeps) for name, keeps in self.links.items() if name in self.silenced)
        sites = (*sites, *links)
        leaks = self._leaks(sites)
        if leaks:
            sites = self._with_blocks(sites, leaks)
            leaks = self._leaks(sites)
        if leaks:
            passing = [name for caller in leaks for name in self._outermost(caller, bare=True)]
            names = [site.name for site in sites if site.name not in self.links]
            sites = (*self._fitting(list(dict.fromkeys(names + passing))), *links)
            leaks = self._leaks(sites)
        require(not leaks and len(sites) > 0, self._nothing_to_skip(leaks or self._callers(self.units)))
        return sites

    def _with_blocks(self, sites: tuple[Site, ...], leaks: Sequence[str]) -> tuple[Site, ...]:
        """And the modules that add attention to their input and have nothing in them that could be off."""
        kept = {name: keeps for name in leaks if name and (keeps := _keeps(self.off, name))}
        chosen = (*sites, *(self._site(name, keeps) for name, keeps in kept.items()))
        return chosen if kept and self._same_closed(chosen, self.off[0]) else sites

    def _leaks(self, sites: tuple[Site, ...]) -> tuple[str, ...]:
        """Modules whose attention changes the output, though it should be off, while these are."""
        silent, off = these(self.silenced), [site.name for site in sites]
        with standing_in(sites):
            closed = self.probe.forward(0)
            if same_outputs(closed, self.probe.forward(0, silent, self._hushed(self.silenced, off))):
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
        return name in self.units or any(name in call.modules for call in self.on[0].attention)

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
        wanted = self.probe.forward(0, these(self.silenced), self._hushed(self.silenced) | zeros)
        mine = {site.name for site in sites}
        others = {name: None for name in zeros if name not in mine}
        try:
            with standing_in(sites):
                had = self.probe.forward(0, these(self.silenced), self._hushed(self.silenced, mine) | others)
        except Exception:  # whatever a model makes of what it did not expect
            return False
        return same_outputs(had, wanted)

    def _kept_whole(self, sites: tuple[Site, ...]) -> tuple[Site, ...]:
        """Blocks around sites that hand their input through while these are off, instead of the sites in them."""
        with standing_in(sites):
            closed = self.probe.both(these(self.silenced))
            gradients = self.probe.gradients()
        require(gradients is not None or self.probe.gradients() is None, UNTRAINABLE)
        if gradients is None:
            return sites
        learn = tuple(name for name, has in gradients.items() if has)
        off = {site.name for site in sites}
        bare = [call for call in self.on[0].attention if off.isdisjoint(call.modules)]  # computed for nothing
        around = [name for name in self._around(sites) if any(name in call.modules for call in bare)]
        idle = [name for name in around if not any(each.startswith(f"{name}.") for each in learn)]
        whole = {name: keeps for name in idle if (keeps := _keeps(closed, name))}
        outer = [name for name in whole if not any(name.startswith(f"{other}.") for other in whole)]
        rest = [site for site in sites if not any(site.name.startswith(f"{name}.") for name in outer)]
        blocks = [self._site(name, whole[name]) for name in outer]
        chosen = tuple(sorted((*rest, *blocks), key=lambda site: list(self.modules).index(site.name)))
        return chosen if blocks and self._same_closed(chosen, closed[0]) else sites

    def _around(self, sites: tuple[Site, ...]) -> set[str]:
        """Modules that have sites in them and are no list of modules."""
        pieces = [site.name.split(".") for site in sites]
        outer = {".".join(each[:depth]) for each in pieces for depth in range(1, len(each))}
        return {name for name in outer if name in self.on[0].modules and name not in self.alone and self.on[0].modules[name]}

    def _same_closed(self, sites: tuple[Site, ...], wanted: Trace) -> bool:
        try:
            with standing_in(sites):
                return same_outputs(self.probe.forward(0, these(self.silenced)), wanted)
        except Exception:  # whatever a model makes of what it did not expect
            return False

    def _starved(self, sites: tuple[Site, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Parameters outside the sites that have a gradient while attention is on and a zero, or none, while it is off."""
        inside = tuple(f"{site.name}." for site in sites)
        open_ = self.probe.gradients()
        with standing_in(sites):
            closed = [found for which in (0, 1) if (found := self.probe.gradients(which)) is not None]
            ran = self.probe.forward(0)
        self.trained = open_ is not None
        if open_ is None:
            return (), (), ()
        require(len(closed) == 2, UNTRAINABLE)
        frozen = any(not each.requires_grad for each in self.model.parameters())
        require(not frozen or any(closed[0].values()) or not any(open_.values()), NOTHING_LEARNS)
        lost = [
            name
            for name, has in open_.items()
            if has and not any(each[name] for each in closed) and not name.startswith(inside) and was_at_work(ran, name)
        ]
        none = {name for name in lost if all(each[name] is None for each in closed)}
        callers = tuple(f"{call.modules[-1]}.".lstrip(".") for call in self.on[0].attention)
        idle = tuple(name for name in lost if name in none and name.startswith(callers))
        learn = tuple(name for name, has in closed[0].items() if has)
        return tuple(name for name in lost if name not in none), idle, self._unread(sites, lost, learn)

    def _unread(self, sites: tuple[Site, ...], lost: list[str], learn: tuple[str, ...]) -> tuple[str, ...]:
        """The outermost modules around sites in which something has lost its gradient and nothing has one."""
        if not any(call in self.silenced for call in self._crossing()):
            return ()
        crossing = {name for call in self._crossing() for name in call.modules}
        around = sorted(self._around(sites) - crossing, key=len)
        dead = [
            name
            for name in around
            if any(
                each.startswith(f"{name}.") and self.model.get_parameter(each).dim() > 1 for each in lost
            )  # more than a norm
            and not any(each.startswith(f"{name}.") for each in learn)
        ]
        return tuple(name for name in dead if not any(name.startswith(f"{other}.") for other in dead))

    def _all_needed(self) -> str:
        names = ", ".join(f"'{name}'" for name in self._callers(self.units)[:3] if name)
        which = f" ({names})" if names else ""
        return (
            f"without its attention{which} the output of the model is the same for any input: nothing else brings the input "
            f"there, so nothing can be delayed; name with modules= what should be off in spite of that"
        )

    def _nothing_to_skip(self, callers: Sequence[str]) -> str:
        root = f"the forward of {type(self.model).__name__}"
        where = ", ".join(f"'{name}'" if name else root for name in callers[:3])
        return (
            f"attention is computed in {where}, and no module in it can be left out: put what is added to the residual "
            f"path into a module of its own, or name with modules= what should be off and with instead= what it gives"
        )


def _is_nothing(calls: Sequence[ModuleCall]) -> bool:
    return all(call.nothing for call in calls)


def _is_something(trace: Trace, name: str) -> bool:
    return bool(name) and not _is_nothing(trace.modules.get(name, []))


def _keeps(closed: tuple[Trace, Trace], name: str) -> str | None:
    """Which input of a module is what it gives, in every call."""
    calls = [call for trace in closed for call in trace.modules.get(name, [])]
    names = [each for each in (calls[0].given if calls else ()) if all(_is_handed_through(call, each) for call in calls)]
    return names[0] if names and all(call.values >= 0 for call in calls) else None


def _given_another(call: ModuleCall) -> bool:
    """Whether attention was given another sequence for its keys and values."""
    apart = "query" in call.given and "key" in call.given and call.given["query"] != call.given["key"]
    return apart or any(name in call.given for name in OTHERS)


def _is_handed_through(call: ModuleCall, name: str) -> bool:
    return name in call.given and call.given[name][1] == call.mark
