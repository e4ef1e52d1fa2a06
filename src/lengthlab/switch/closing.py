"""Delays are made here, closed: `delay` for any part, `delay_attention` for attention. If that fails, nothing has changed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from operator import index
from typing import Any, TypedDict, Unpack

from torch import nn

from lengthlab.errors import LabError, a_kind, explain, require
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.delay_report import some
from lengthlab.switch.forwards import passing_on
from lengthlab.switch.found import Found
from lengthlab.switch.hooks import HELD
from lengthlab.switch.inputs import as_example, made_up
from lengthlab.switch.opening import Opening
from lengthlab.switch.probe import runs
from lengthlab.switch.record import entries_for, put_back, take_from_config, warn_of_record
from lengthlab.switch.search import search
from lengthlab.switch.sites import Instead, Parts, choose, unwrapped
from lengthlab.switch.state import DelayWarning
from lengthlab.switch.trial import can_be_tried, example_for, require_right
from lengthlab.switch.wrappers import require_bearable

UNTRIED = "nothing was tried, since no batch could be made up"
BY_NAME = f"attention was found by the names and the code of modules, and {UNTRIED}"


class OpeningOptions(TypedDict, total=False):
    """What `delay` takes beside the model and its parts."""

    until: Until | None
    instead: Instead | None
    rate: float
    warm_up: int
    ramp: int


class DelayOptions(OpeningOptions, total=False):
    """What `delay_attention` takes beside the model, for those who call it later."""

    modules: Parts | None
    batch: Any
    cross: bool


def delay(
    model: nn.Module,
    parts: Parts | None,
    until: Until | None = None,
    instead: Instead | None = None,
    rate: float = 1.0,
    warm_up: int = 0,
    ramp: int = 0,
) -> Delay:
    """Switch these parts of a model off. They open with `open()`, or by themselves: `until` a step or a metric.

    `parts` are names of modules matched from their end (`"layers.*.mlp"`), modules, a class of them, or a predicate of name and
    module; None stands for all softmax attention.
    `instead` says what they give while off, if it is not found out rightly: `"zeros"`, `"input"` or a function of their inputs.
    `rate`, `warm_up` and `ramp` open them gently: see `Opening`.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    >>> later = delay(model, "1", until=2_000)
    >>> later
    Delay, closed until step 2000:
      module  parameters  while off
      1                6  its input
    >>> later.open()
    """
    require_bearable(model)
    return _closed(model, Found(choose(model, parts, instead)), until, Opening(rate, warm_up, ramp), whole=False)


def _closed(model: nn.Module, found: Found, until: Until | None, opening: Opening, whole: bool) -> Delay:
    """A delay of what was found, closed."""
    sites, inner = found.sites, unwrapped(model)
    for site in sites:
        holder = HELD[site.module]() if site.module in HELD else None
        require(holder is None, f"'{site.name}' is delayed already; call remove() on that delay first")
    starved, idle = (tuple(map(inner.get_parameter, names)) for names in (found.starved, found.idle))
    made = Delay(sites, whole_step(until), opening, starved, idle, found.left, inner, whole)
    warn_of_record(model)
    made.followers += entries_for(model, made)
    made.close()
    return made


def delay_attention(
    model: nn.Module,
    modules: Parts | None = None,
    batch: Any = None,
    cross: bool = True,
    **options: Unpack[OpeningOptions],
) -> Delay:
    """`delay` for softmax attention, which is found; recurrent mixers (LSTM, Mamba, linear attention) are left alone.

    It is found by trying: the model runs on `batch`, as its forward takes it, or on one that is made up, and nothing of the
    trial stays. Where none can be made up, it is found by the names and the code of modules, and `delay.check(batch)` is for
    you to call. `cross=False` keeps attention to another sequence on: without it an encoder does not learn. What is named with
    `modules` is tried as well, and refused where something that stays on takes values from it.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2)
    >>> delay_attention(layer)
    Delay, closed:
      module     parameters  while off
      self_attn         288  (zeros, None)
    """
    require(isinstance(model, nn.Module), f"what is delayed is an nn.Module, not {a_kind(model)}")
    require_bearable(model)
    if modules is not None or options.get("instead") is not None:
        require(cross, "modules= and instead= say what is off: leave out cross=")
        return _as_named(model, modules, batch, options)
    found = _free(unwrapped(model), batch, cross)
    if found is None:
        require(cross, "cross=False needs a batch= to tell attention to another sequence from the rest")
        made = delay(model, None, **options)
        if can_be_tried(unwrapped(model)):
            warnings.warn(f"{BY_NAME}: hand over batch=, or call delay.check(batch)", DelayWarning, stacklevel=2)
        return made
    opening = Opening(options.get("rate", 1.0), options.get("warm_up", 0), options.get("ramp", 0))
    made = _closed(model, found, options.get("until"), opening, whole=True)
    for notice in _notices(found):
        warnings.warn(notice, DelayWarning, stacklevel=2)
    return made


def _as_named(model: nn.Module, modules: Parts | None, batch: Any, options: OpeningOptions) -> Delay:
    """A delay of what the user names, which is tried as well: something else may read what one of these modules gives."""
    example = example_for(unwrapped(model), batch)
    made = delay(model, modules, **options)
    if example is not None:
        require_right([made], unwrapped(model), example)
    elif can_be_tried(unwrapped(model)):
        warnings.warn(f"{UNTRIED}: hand over batch=, or call delay.check(batch)", DelayWarning, stacklevel=3)
    return made


def _free(model: nn.Module, batch: Any, cross: bool) -> Found | None:
    """What is found in a model of which other delays may have some parts."""
    held = {name: module for name, module in model.named_modules() if module in HELD and HELD[module]() is not None}
    try:
        with passing_on(module for module in model.modules() if module not in held.values()):
            return _tried(model, batch, cross)
    except LabError:
        require(not held, f"'{next(iter(held), '')}' is delayed already; call remove() on that delay first")
        raise


def _tried(model: nn.Module, batch: Any, cross: bool) -> Found | None:
    """What is found on a batch; None where there is none on which the model runs."""
    if batch is not None:
        try:
            found = search(model, as_example(batch, model), cross)
        except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AssertionError) as error:
            raise LabError(f"the model does not run on the batch ({explain(error)}): hand over one that it takes") from error
        require(found.known, "the model cannot be trained on this batch, not even with its attention on: hand over another")
        return found
    untrained = False
    for example in made_up(model) if can_be_tried(model) else ():
        with suppress(RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError):
            if runs(model, example):
                found = search(model, example, cross)
                if found.known:
                    return found
                untrained = True
    require(not untrained, "the model can be trained on no batch that could be made up: hand over one of yours as batch=")
    return None


def _notices(found: Found) -> Iterator[str]:
    if found.needed:
        yield f"attention stays on in {some(found.needed)}: nothing else brings the input to the output"
    for name in found.unread:
        yield f"'{name}' will not learn while attention is off, since only attention reads it: cross=False keeps that on"
    if found.odd:
        yield (
            f"in {some(found.odd)} values are weighed by a softmax of something else than scores, which stays on: if that is "
            f"attention, name with modules= all that should be off"
        )
    if found.blind:
        yield "some rows of an output, such as a class token's, are the same for any input until attention opens"
    for site in found.sites:
        if any(isinstance(each, nn.RNNBase) for each in site.module.modules()):
            yield f"'{site.name}' is off, and a recurrence is in it: name with modules= what should be off instead"


def delay_as_kept(model: nn.Module, options: DelayOptions, kept: Mapping[str, Any] | None) -> Delay:
    """`delay_attention`, in the state that a checkpoint has of it; where that fails, the model is left as it was."""
    recorded = take_from_config(model) if kept else []  # what the checkpoint has of it is newer
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*{UNTRIED}")  # the first batch will be
            made = delay_attention(model, **options)
    except LabError:
        put_back(recorded)
        raise
    try:
        if kept:
            made.load_state_dict(kept)
    except LabError:
        made.remove()
        raise
    return made


def require_delay_or_until(who: str, given: object, options: DelayOptions) -> None:
    """What a callback must be told: a delay that is made already, or how to make one that opens by itself."""
    until = options.get("until")
    require(given is not None or until is not None, f"{who} needs until=, a step or a function of metrics, or a delay")
    require(given is None or not options, f"{who} is given a delay, which has its options already: leave out the others")


def whole_step(until: Until | None) -> Until | None:
    """A step as an int, whatever kind of whole number it is."""
    if until is None or callable(until):
        return until
    problem = f"until must be a whole number of steps or a function of metrics, not {until!r}"
    require(not isinstance(until, bool), problem)
    try:
        step = index(until)
    except TypeError:
        raise LabError(problem) from None
    require(step >= 1, f"until={step} is in the past: name a step of the optimizer to come")
    return step
