"""Delays are made here, closed: `delay` for any part, `delay_attention` for attention. If that fails, nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, TypedDict, Unpack
from weakref import ref

from torch import nn

from lengthlab.errors import LabError, require
from lengthlab.switch.delay import HELD, Delay, Until, require_unused_are_found
from lengthlab.switch.opening import Opening
from lengthlab.switch.sites import Instead, Parts, choose


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
    sites = choose(model, parts, instead)
    for site in sites:
        holder = HELD[site.module]() if site.module in HELD else None
        require(holder is None, f"'{site.name}' is delayed already; call remove() on that delay first")
    require_unused_are_found(model)
    made = Delay(sites, whole(until), Opening(rate, warm_up, ramp))
    made.close()
    HELD.update({site.module: ref(made) for site in sites})
    return made


def delay_attention(model: nn.Module, modules: Parts | None = None, **options: Unpack[OpeningOptions]) -> Delay:
    """`delay` for softmax attention, which is found; recurrent mixers (LSTM, Mamba, linear attention) are left alone.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2)
    >>> delay_attention(layer)
    Delay, closed:
      module     parameters  while off
      self_attn         288  (zeros, None)
    """
    return delay(model, modules, **options)


def delay_as_kept(model: nn.Module, options: DelayOptions, kept: Mapping[str, Any] | None) -> Delay:
    """`delay_attention`, in the state that a checkpoint has of it; where that fails, the model is left as it was."""
    made = delay_attention(model, **options)
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


def whole(until: Until | None) -> Until | None:
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
