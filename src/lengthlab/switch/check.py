"""Whether a closed delay does in a model what it says, tried on a real batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from torch import nn

from lengthlab.errors import LabError, explain, require
from lengthlab.switch.delay_report import DelayReport, some
from lengthlab.switch.forwards import Switched
from lengthlab.switch.found import UNTRAINABLE
from lengthlab.switch.inputs import as_example
from lengthlab.switch.learning import require_learners_left
from lengthlab.switch.probe import Probe, Silent, blind_rows, moved_outputs, same_outputs, was_at_work
from lengthlab.switch.rest import at_rest
from lengthlab.switch.sites import Site
from lengthlab.switch.stand_in import StandIn
from lengthlab.switch.trace import AttentionCall, Trace, statically_attention

ON = "with everything on the model does not run on this batch", "try it on one that it takes"
OFF = "with its parts off the model does not run", "say with instead= what stands in for one, or name others with modules="
PARTLY = "with some of its parts open the model does not run", "open them in another order"
"""What went wrong, and what to do."""


class Checked(Protocol):
    """As much of a delay as is looked at."""

    is_open: bool
    sites: tuple[Site, ...]
    forwards: list[Switched]
    starved: tuple[nn.Parameter, ...]
    whole: bool

    def modules_left(self) -> list[nn.Module]: ...

    def starve(self, parameters: Iterable[nn.Parameter]) -> None: ...


def check_delays(delays: Sequence[Checked], model: nn.Module, batch: Any) -> DelayReport:
    """Try what is closed of some delays; what fails is an error that names the module and what to do."""
    delays = [each for each in delays if not each.is_open]
    require(len(delays) > 0, "the delay is open: there is nothing to check; check it before it opens")
    example = as_example(batch, model)
    names = _names(tuple(site for delay in delays for site in delay.sites), model)
    with at_rest(model):
        probe = Probe(model, example)
        with _open(delays):
            on = _ran(probe, *ON)
            wanted = probe.forward(0, _inside(tuple(names)), _hushed(names))
            on_gradients = probe.gradients()
        closed = _ran(probe, *OFF)
        _require_called(names, closed[0], on[0])
        _require_shapes(names, closed[0], on[0])
        _require_reach(closed, on, tuple(names))
        if all(isinstance(site.stand_in, StandIn) for site in names.values()):
            _require_same(closed[0], wanted, tuple(names))
        left, unused = _attention_left(probe, closed[0], delays)
        gradients = probe.gradients()
    blind = blind_rows(on, closed)
    if on_gradients is None:
        return DelayReport(tuple(names), left, unused, (), (), blind, trained=False)
    if gradients is None:
        raise LabError(UNTRAINABLE)
    require_learners_left(model, on_gradients, gradients)
    _require_no_gradient(names, gradients)
    lost = [name for name, has in on_gradients.items() if has and not gradients[name] and not name.startswith(_below(names))]
    named = dict(model.named_parameters())
    held = {id(parameter) for delay in delays for parameter in delay.starved}
    fed = [name for name in lost if gradients[name] is False and was_at_work(closed[0], name) and id(named[name]) not in held]
    if fed:
        delays[0].starve(named[name] for name in fed)
    still = tuple(name for name in lost if name in fed or id(named[name]) in held)
    return DelayReport(tuple(names), left, unused, still, tuple(name for name in lost if name not in still), blind)


def check_stages(delays: Sequence[Checked], model: nn.Module, batch: Any) -> DelayReport:
    """`check_delays`, and the same numbers are asked for with the stages opened one after another."""
    report = check_delays(delays, model, batch)
    require_right_on_the_way([each for each in delays if not each.is_open], model, batch)
    return report


def require_right_on_the_way(delays: Sequence[Checked], model: nn.Module, batch: Any) -> None:
    """Now, and after each of these but the last has opened, what is closed is as good as running and giving nothing."""
    with at_rest(model):
        probe = Probe(model, as_example(batch, model))
        with _open(delays):
            _ran(probe, *ON)
        for opened in range(len(delays)):
            later = delays[opened:]
            names = _names(tuple(site for delay in later for site in delay.sites), model)
            with _open(delays[:opened]):
                closed = _ran(probe, *(PARTLY if opened else OFF))[0]
                with _open(later):
                    wanted = probe.forward(0, _inside(tuple(names)), _hushed(names))
            if all(isinstance(site.stand_in, StandIn) for site in names.values()):
                _require_same(closed, wanted, tuple(names))


def _names(sites: tuple[Site, ...], model: nn.Module) -> dict[str, Site]:
    """The sites by their names in this model, which may hold the one in which they were found."""
    places = {module: name for name, module in reversed(list(model.named_modules()))}
    missing = [site.name for site in sites if site.module not in places]
    require(
        not missing, f"'{missing[0] if missing else ''}' is not in the model that is checked: check the one it was found in"
    )
    return {places[site.module]: site for site in sites}


def _ran(probe: Probe, trouble: str, what: str) -> tuple[Trace, Trace]:
    try:
        return probe.both()
    except LabError:
        raise
    except Exception as error:  # whatever a model makes of its input
        raise LabError(f"{trouble} ({explain(error)}): {what}") from error


def _require_called(names: Mapping[str, Site], closed: Trace, on: Trace) -> None:
    for name in names:
        require(
            name in closed.modules or name not in on.modules,
            f"'{name}' is off and is not called any more: another module has taken its place",
        )
        require(
            name in closed.modules,
            f"'{name}' should be off and was never called: the model calls a method of it, or does without it for this batch; "
            f"name with modules= what it does call",
        )


def _require_shapes(names: Mapping[str, Site], closed: Trace, on: Trace) -> None:
    for name in names:
        for real, stand_in in zip(on.modules.get(name, []), closed.modules[name], strict=False):
            require(
                real.shape == stand_in.shape and real.values == stand_in.values,
                f"'{name}' gives {_form(real.shape, real.values)}, and what stands in for it "
                f"{_form(stand_in.shape, stand_in.values)}: "
                f"say with instead= what it gives, a function of its inputs",
            )


def _form(shape: tuple[int, ...] | None, values: int) -> str:
    return f"{'a tensor' if values == 0 else f'{values} values, the first'} of shape {shape}"


def _require_reach(closed: tuple[Trace, Trace], on: tuple[Trace, Trace], names: tuple[str, ...]) -> None:
    moves, moved = moved_outputs(*on), moved_outputs(*closed)
    require(any(moves), "the output of the model is the same for any input, with everything on: check it on another batch")
    changed = "with parts off the model gives another number of outputs: say with instead= what stands in for a module"
    require(len(moves) == len(moved), changed)
    blind = [number for number, (before, now) in enumerate(zip(moves, moved, strict=True)) if before and not now]
    require(
        not blind,
        f"with {some(names)} off, output {blind[0] if blind else ''} of the model is the same for any input: a part that is "
        f"off has the only way there; leave it out of modules=, or say with instead='input' that it hands its input on",
    )


def _require_same(closed: Trace, wanted: Trace, names: tuple[str, ...]) -> None:
    require(
        same_outputs(closed, wanted),
        f"with {some(names)} off the model gives other numbers than with these running and giving nothing: something else "
        f"takes values from one of them (a table of relative positions, shared keys); switch off all that use it, open it "
        f"first, or say with instead= what it gives",
    )


def _require_no_gradient(names: Mapping[str, Site], gradients: Mapping[str, bool | None]) -> None:
    for name, site in names.items():
        for inner, _ in site.module.named_parameters():
            has = gradients.get(f"{name}.{inner}") is not None and inner not in site.shared
            require(not has, f"'{name}.{inner}' is off and has a gradient: it is used from outside its module")


def _attention_left(probe: Probe, closed: Trace, delays: Sequence[Checked]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where attention is still computed: with and without effect on the output. Where it should be off, an error."""
    find = probe.model.get_submodule
    off = {site.module for delay in delays for site in delay.sites}
    kernels = {name: None for name in statically_attention(probe.model, closed) if find(name) not in off}
    calls = dict.fromkeys([call.modules[-1] for call in closed.attention] + list(kernels))
    reach = [name for name in calls if not same_outputs(closed, probe.forward(0, _of(name), _only(name, kernels)))]
    kept = {find(name) for name in reach} & {each for delay in delays for each in delay.modules_left()}
    training = probe.in_training()
    later = dict.fromkeys(
        call.modules[-1] for call in (training.attention if training else ()) if call.modules[-1] not in calls
    )
    by_hand = dict.fromkeys(call.modules[-1] for call in closed.by_hand)
    at_large = [*(name for name in reach if find(name) not in kept), *later, *by_hand]
    where = ", ".join(f"'{name}' ({type(find(name)).__name__})" for name in at_large)
    require(
        not at_large or not any(delay.whole for delay in delays),
        f"attention is still on in {where}: it reaches the output while the rest is off; name with modules= all that should "
        f"be off",
    )
    return tuple(reach), tuple(name for name in calls if name not in reach)


def _of(name: str) -> Silent:
    return lambda call: call.modules[-1] == name


def _only(name: str, kernels: Mapping[str, None]) -> dict[str, None]:
    return {name: None} if name in kernels else {}


def _inside(names: tuple[str, ...]) -> Silent:
    def silent(call: AttentionCall) -> bool:
        return any(name in names for name in call.modules)

    return silent


def _hushed(names: Mapping[str, Site]) -> dict[str, str | None]:
    """Zeros, or the input that a site hands through."""
    return {
        name: site.stand_in.first if site.stand_in.keeps else None
        for name, site in names.items()
        if isinstance(site.stand_in, StandIn)
    }


def _below(names: Mapping[str, Site]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)


@contextmanager
def _open(delays: Sequence[Checked]) -> Iterator[None]:
    """With what the modules do when they are on, for a moment, under whatever is put around it."""
    ours = [(site.module, forward) for delay in delays for site, forward in zip(delay.sites, delay.forwards, strict=True)]
    does = [forward.does for _, forward in ours]
    for module, forward in ours:
        forward.does = forward.real(module)
    try:
        yield
    finally:
        for (_, forward), before in zip(ours, does, strict=True):
            forward.does = before
