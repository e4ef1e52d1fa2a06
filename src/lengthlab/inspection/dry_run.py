"""What delaying attention would do to a model, before anything is trained.

Every step is tried on a model made for it, so that the user's own is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

from torch import nn

from lengthlab.errors import LabError, explain, require
from lengthlab.inspection.carry import carries
from lengthlab.inspection.flops import count_flops
from lengthlab.inspection.reading import draw, in_full, logits, require_readable
from lengthlab.inspection.subject import Subject, count_parameters
from lengthlab.switch import Delay, DelayWarning, Site, StandIn, delay, delay_attention
from lengthlab.switch.record import Record
from lengthlab.switch.sites import choose, with_shared
from lengthlab.switch.stand_in import stand_in_for

NOTHING = (
    "with attention off nothing carries information from one token to the next: another token at one place changes no later "
    "output, so there is nothing that could learn to track a state before attention opens"
)


@dataclass(frozen=True)
class Off:
    """A module that would be off."""

    module: str
    parameters: int
    """Those that stand still, without the shared ones."""
    instead: str
    """What is given in its place."""
    shared: tuple[str, ...] = ()
    """Its parameters that go on learning in other parts."""
    problem: str = ""
    """Why it cannot be skipped."""


@dataclass(frozen=True)
class Compute:
    """Floating-point operations of one forward of one sequence."""

    length: int
    open: int
    closed: int

    @property
    def saved(self) -> float:
        """The share that is spared while off."""
        return 1 - self.closed / self.open if self.open else 0.0


@dataclass(frozen=True)
class DryRun:
    """All that can be said in advance."""

    model: str
    parameters: int
    off: tuple[Off, ...]
    parameters_off: int
    """In all; what several of them share counts once."""
    compute: Compute | None
    """None where the model could not be run."""
    carries: bool | None
    """Whether something carries information along the sequence while attention is off; None where that could not be tried."""
    tried_on: str
    """What model that was tried on."""
    checked: str
    """What `delay.check` said, on random tokens; nothing where it could not be tried."""
    notes: tuple[str, ...]
    """What could not be found out, and why."""
    warnings: tuple[str, ...]


def dry_run(subject: Subject, modules: Sequence[str] = (), length: int = 128) -> DryRun:
    """Try `delay_attention(model, modules)`.

    >>> from lengthlab.inspection import find_subject
    >>> tried = dry_run(find_subject("attention-on-lstm"), length=8)
    >>> [each.instead for each in tried.off], tried.carries, tried.warnings
    (['zeros', 'zeros', 'zeros', 'zeros'], True, ())
    """
    network = subject.blueprint()
    require_readable(network, length, subject.name)
    trial = _trial(subject, modules)
    sites = choose(network, modules or None, instead=_anything) if trial is None else _same_sites(network, trial.delay)
    off = tuple(_off(network, site) for site in sites) if trial is None else tuple(map(_as_off, sites))
    still = {id(parameter): parameter.numel() for site in sites for parameter in site.parameters()}
    sizes = (count_parameters(network), off, sum(still.values()))
    warnings = [_saved_closed(record) for record in (subject.config.closed if subject.config else ())]
    warnings += [] if trial is None else list(trial.warnings)
    warnings += [each.problem for each in off if each.problem] + [_shared(each) for each in off if each.shared]
    if any(each.problem for each in off):
        note = "a module cannot be skipped, so compute is not counted, and what carries state is not tested"
        return DryRun(subject.name, *sizes, None, None, "", "", (note,), tuple(warnings))
    try:
        compute, uncounted = _compute(subject, modules, length, trial)
    except LabError as error:
        compute, uncounted = None, "compute is not counted: there is nothing to compare with"
        warnings.append(str(error))
    carried, tried_on, untested = _carried(subject, modules)
    if carried is False:
        warnings.append(f"{NOTHING} (tested on {tried_on})")
    notes = tuple(filter(None, (uncounted, untested)))
    checked = "" if trial is None else trial.checked
    return DryRun(subject.name, *sizes, compute, carried, tried_on, checked, notes, tuple(warnings))


@dataclass(frozen=True)
class _Trial:
    """Attention found and checked by running a model with real weights."""

    delay: Delay
    checked: str
    warnings: tuple[str, ...]


def _trial(subject: Subject, modules: Sequence[str]) -> _Trial | None:
    """None where parts are named, or no model that is small enough can be run: then attention is found by code and names."""
    if modules:
        return None
    try:
        network = subject.network() if not subject.is_large else _narrow(subject)
    except LabError:
        return None
    with catch_warnings(record=True) as said:
        simplefilter("always")
        delay = delay_attention(network)
    if not delay.whole:
        return None
    told = tuple(str(each.message) for each in said if issubclass(each.category, DelayWarning))
    try:
        return _Trial(
            delay, str(delay.check({"input_ids": draw(network, 2, 16)} if subject.config else draw(network, 2, 16))), told
        )
    except LabError as error:
        return _Trial(delay, "", (*told, str(error)))


def _narrow(subject: Subject) -> nn.Module:
    assert subject.config is not None
    return subject.config.small().build()


def _same_sites(network: nn.Module, delay: Delay) -> tuple[Site, ...]:
    """Those of a model with other widths, or of another copy. Where a width is not that of the input, it is read anew."""
    modules = dict(network.named_modules())
    missing = [site.name for site in delay.sites if site.name not in modules]
    require(
        not missing, f"a narrow copy of the model has other modules: {', '.join(missing[:3])}; name with modules= what is off"
    )
    sites = []
    for site in delay.sites:
        stand_in, module = site.stand_in, modules[site.name]
        if isinstance(stand_in, StandIn) and stand_in.width is not None:
            stand_in = replace(stand_in, width=stand_in_for(site.name, module, keeps=False).width)
        sites.append(Site(site.name, module, stand_in))
    return with_shared(network, tuple(sites))


def _as_off(site: Site) -> Off:
    return Off(site.name, sum(parameter.numel() for parameter in site.parameters()), str(site.stand_in), site.shared)


def _off(network: nn.Module, site: Site) -> Off:
    """One of those that are meant, also where it cannot be skipped."""
    size = sum(parameter.numel() for parameter in site.parameters())
    try:
        (alone,) = choose(network, site.module)
    except LabError as error:
        return Off(site.name, size, "cannot be skipped", site.shared, str(error))
    return Off(site.name, size, str(alone.stand_in), site.shared)


def _anything(*inputs: Any, **named: Any) -> None:
    """Stands in for a module that is never run."""


def _shared(off: Off) -> str:
    return f"'{off.module}' shares {', '.join(off.shared)} with parts that stay on; these go on learning there"


def _saved_closed(record: Record) -> str:
    return f"the model was saved with {record}, and loads open; lengthlab.close_again(model) closes it again"


def _compute(subject: Subject, modules: Sequence[str], length: int, trial: _Trial | None) -> tuple[Compute | None, str]:
    """Open against closed, or why the model cannot be run at all. One that runs only while open is an error."""
    try:
        opened = count_flops(subject.blueprint, length)
    except Exception as error:  # a user's own forward
        return None, f"compute is not counted: the model cannot be run on {length} token ids ({explain(error)})"
    held: list[Delay] = []  # a delay lasts as long as somebody has it

    def closed() -> nn.Module:
        network = subject.blueprint()
        if trial is None:
            held.append(delay(network, modules or None))
        else:
            held.append(Delay(_same_sites(network, trial.delay)))
            held[-1].close()
        return network

    try:
        return Compute(length, opened, count_flops(closed, length)), ""
    except Exception as error:  # a stand-in that does not fit
        what = "say with instead= what stands in for it, or name with modules= what should be off"
        raise LabError(f"with attention off the model does not run ({explain(error)}); {what}") from error


def _carried(subject: Subject, modules: Sequence[str]) -> tuple[bool | None, str, str]:
    """Whether anything is carried along the sequence while closed, on what that was tried, or why it was not."""
    try:
        network, what = _to_try(subject, modules)
        held = delay_attention(network, modules or None)
        found = carries(in_full(network))
        held.remove()
    except Exception as error:  # a user's own forward, or a configuration that cannot be narrow
        return None, "", f"whether anything carries state while attention is off is not tested: {explain(error)}"
    return found, what, ""


def _to_try(subject: Subject, modules: Sequence[str]) -> tuple[nn.Module, str]:
    """A model with real weights that is small enough."""
    if subject.config is None or not subject.is_large:
        return subject.network(), "the model itself, its weights disturbed"
    large = "the model is too large to be built here"
    try:
        narrow = subject.config.small().build()
        logits(narrow, draw(narrow, 1, 2))
        names = [[site.name for site in choose(each, modules or None)] for each in (narrow, subject.blueprint())]
    except Exception:  # widths that do not fit each other
        raise LabError(f"{large}, and no narrow copy can be made of its configuration") from None
    require(names[0] == names[1], f"{large}, and a narrow copy has other attention")
    return narrow, f"a copy with the same layers and small widths: {large}"
