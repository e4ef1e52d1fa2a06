"""Attention that gives nothing for a moment: calls of it, modules that are a kernel, and modules that are stood in for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from lengthlab.errors import require
from lengthlab.switch.attention import is_called_attention
from lengthlab.switch.found import all_needed, nothing_to_skip, require_attention, require_seen
from lengthlab.switch.module_call import ModuleCall, gave_nothing
from lengthlab.switch.probe import Probe, Silent, moved_outputs
from lengthlab.switch.sites import Site
from lengthlab.switch.trace import AttentionCall, statically_attention

Unit = AttentionCall | str
"""Attention that can be silenced: a call of it, or the name of a module (a kernel of somebody's own, a link of a chain)."""
OTHERS = ("key_value_states", "encoder_hidden_states", "memory", "cross_attention_states", "context")
"""What another sequence is called where it is handed to attention."""


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


class Silence:
    """Which attention of a model can be silent: all of it, but for what an output needs, and for what is to be kept."""

    def __init__(self, model: nn.Module, probe: Probe, cross: bool) -> None:
        self.model, self.probe = model, probe
        self.modules = dict(model.named_modules())
        self.on = probe.both()
        self._require_steady()
        self.asked = moved_outputs(*self.on)
        require(any(self.asked), "the output of the model is the same for any input: give it another batch=")
        kernels = statically_attention(model, self.on[0])
        require_attention(model, self.on[0], bool(kernels))
        require_seen(model, self.on[0], probe.in_training())
        self.links = self._links()
        calls = [call for call in self.on[0].attention if not any(name in self.links for name in call.modules)]
        self.every: list[Unit] = [*calls, *(name for name in kernels if name not in self.links), *self.links]
        self.kept = () if cross else tuple(self.crossing())
        self.units = self._silenceable([each for each in self.every if each not in self.kept])
        self.calls = these(self.units)
        self.off = probe.both(self.calls, self.hushed())
        self._require_silence()

    def alone(self) -> set[str]:
        """Modules made of attention alone: they give nothing now, and gave something before."""
        on, off = self.on[0].modules, self.off[0].modules
        return {name for name, calls in off.items() if name and gave_nothing(calls) and not gave_nothing(on.get(name, []))}

    def hushed(self, but: Collection[str] = ()) -> dict[str, str | None]:
        """The modules that are silent, each with the input that it hands on."""
        return self._hushed(self.units, but)

    def left(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Who calls attention that stays on, and whose of it does because it is needed."""
        left = [each for each in self.every if each not in self.units]
        return callers(left), callers([each for each in left if each not in self.kept])

    def crossing(self) -> Iterator[AttentionCall]:
        """Attention to another sequence."""
        for call in self.on[0].attention:
            inner = [name for name in call.modules if is_called_attention(self.modules[name])]
            named = any(_given_another(each) for name in inner for each in self.on[0].modules.get(name, []))
            if call.crosses or named:
                yield call

    def _require_steady(self) -> None:
        """What exchanges its modules would not be found off in training."""
        now = dict(self.model.named_modules())
        gone = [name for name, module in self.modules.items() if now.get(name) is not module]
        require(
            not gone,
            f"the model exchanges '{gone[0] if gone else ''}' for another module while it runs, as BigBird does for short "
            f"sequences: settle that first (set_attention_type), or hand over a batch= like those it will be trained on",
        )

    def _require_silence(self) -> None:
        """What weighs by nothing has to give nothing, or what else came in; a constant in its place would be neither."""
        for call in (each for each in self.units if isinstance(each, AttentionCall)):
            for name in reversed(call.modules):
                one, other = (trace.modules.get(name, []) for trace in self.off)
                if gave_nothing(one):
                    continue
                constant = [a.mark for a in one] == [b.mark for b in other] and _is_fed(one, other)
                heard = [a.mark for a in self.on[0].modules[name]] != [b.mark for b in self.on[1].modules[name]]
                require(not (constant and heard), nothing_to_skip(self.model, [name]))
                break

    def _links(self) -> dict[str, str]:
        """Links of chains with attention in them that have the only way to the output, and the input that each hands on."""
        found: dict[str, str] = {}
        silent = self.probe.both(lambda call: True)
        if not self._lacks(moved_outputs(*silent)):
            return found
        for name in dict.fromkeys(name for call in self.on[0].attention for name in call.modules if name):
            inside = any(name.startswith(f"{other}.") for other in found)
            like = self._like(name)
            if inside or like is None or not self._is_link(name) or not gave_nothing(silent[0].modules.get(name, [])):
                continue
            blind = [moved_outputs(*self.probe.both(hushed={name: each})) != self.asked for each in (None, like)]
            found |= {name: like} if blind == [True, False] else {}
        return found

    def _like(self, name: str) -> str | None:
        """Which input of a module has the shape of what it gives."""
        call = self.on[0].modules[name][0]
        return next((each for each, (shape, _) in call.given.items() if shape == call.shape), None)

    def _is_link(self, name: str) -> bool:
        """Of a chain, and not its first."""
        parent = self.modules[name.rpartition(".")[0]]
        return isinstance(parent, nn.Sequential) and next(iter(parent.children())) is not self.modules[name]

    def _hushed(self, units: Sequence[Unit], but: Collection[str] = ()) -> dict[str, str | None]:
        return {each: self.links.get(each) for each in units if isinstance(each, str) and each not in but}

    def _silenceable(self, units: list[Unit]) -> list[Unit]:
        """As many as can be without an output becoming blind: the earlier ones first, so that the last ones stay."""
        if not self._is_blind(units):
            return units
        if len(units) > 1 and not self._is_blind(units[:-1]):
            return units[:-1]
        taken: list[Unit] = []
        for each in units:
            if not self._is_blind([*taken, each]):
                taken.append(each)
        require(bool(taken), all_needed(callers(self.every)))
        return taken

    def _is_blind(self, units: Sequence[Unit]) -> bool:
        return self._lacks(moved_outputs(*self.probe.both(these(units), self._hushed(units))))

    def _lacks(self, moved: tuple[bool, ...]) -> bool:
        """Whether an output that the input changes is not changed by it any more."""
        if len(moved) != len(self.asked):
            return True
        return any(before and not now for before, now in zip(self.asked, moved, strict=True))


def callers(units: Sequence[Unit]) -> tuple[str, ...]:
    """The modules that call them, each once."""
    return tuple(dict.fromkeys(each if isinstance(each, str) else each.modules[-1] for each in units))


def _is_fed(one: Sequence[ModuleCall], other: Sequence[ModuleCall]) -> bool:
    """Whether the first input of a module depends on that of the model."""
    firsts = [[next(iter(call.given.values()), None) for call in calls] for calls in (one, other)]
    return firsts[0] != firsts[1]


def _given_another(call: ModuleCall) -> bool:
    """Whether attention was given another sequence for its keys and values."""
    apart = "query" in call.given and "key" in call.given and call.given["query"] != call.given["key"]
    return apart or any(name in call.given for name in OTHERS)
