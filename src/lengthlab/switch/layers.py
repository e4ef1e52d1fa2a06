"""Attention opened layer by layer, from the bottom or from the top."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Unpack

from torch import nn

from lengthlab.errors import LabError, require, require_whole
from lengthlab.gradual import First
from lengthlab.switch.closing import whole_step
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.gradual_delay import Finding, found, hold
from lengthlab.switch.opening import Opening
from lengthlab.switch.sites import Site, unwrapped
from lengthlab.switch.stages import Stages
from lengthlab.switch.trial import example_for, require_right


def by_layer(
    model: nn.Module,
    until: Sequence[Until] | None = None,
    every: int | None = None,
    first: First = "bottom",
    rate: float = 1.0,
    warm_up: int = 0,
    ramp: int = 0,
    **options: Unpack[Finding],
) -> Stages:
    """Stages of attention, a layer each: the lowest opens first, or the highest with `first="top"`.

    `until` has a step, or a function of metrics, for each layer in the order in which they open; `every=500` stands for 500,
    1000, 1500 and so on. Layers are told apart by the numbers in the names of their modules; those with the same numbers (in an
    encoder and a decoder, say) are one, and what has none, before or after the layers, opens with the first of them.

    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, nhead=2), 2, enable_nested_tensor=False)
    >>> stages = by_layer(model, every=100, first="top")
    >>> [(stage.until, stage.sites[0].name) for stage in stages.delays]
    [(100, 'layers.1.self_attn'), (200, 'layers.0.self_attn')]
    """
    plain = found(model, options)
    example = example_for(unwrapped(model), options.get("batch"))
    layers = layers_of(plain.sites, first)
    steps = steps_of(len(layers), until, every)
    opening = Opening(rate, warm_up, ramp)
    fed = plain.starved, plain.idle  # by the first layer that opens
    stages = Stages(
        *(
            Delay(sites, step, opening, *(((), ()) if number else fed), plain.left, plain.model)
            for number, (sites, step) in enumerate(zip(layers, steps, strict=True))
        )
    )
    for stage in stages.delays:
        hold(stage)
    if example is not None:  # layers above may read something from those below, such as T5's table of relative positions
        require_right(stages.delays, unwrapped(model), example)
    return stages


def layers_of(sites: Iterable[Site], first: First) -> list[tuple[Site, ...]]:
    """Sites by layer, in the order in which they open."""
    require(first in ("bottom", "top"), f"first must be 'bottom' or 'top', not {first!r}")
    ordered = sorted(sites, key=lambda site: layer_of(site.name))
    layers = {layer: tuple(each) for layer, each in groupby(ordered, key=lambda site: layer_of(site.name))}
    beside = layers.pop((), ())
    if not layers:
        name = beside[0].name
        raise LabError(f"'{name}' has no number in its name, so its layer is not known: make Stages(delay(...), delay(...))")
    opens, *later = layers.values() if first == "bottom" else reversed(layers.values())
    return [(*beside, *opens), *later]


def layer_of(name: str) -> tuple[int, ...]:
    """The numbers in the name of a module.

    >>> layer_of("model.layers.3.self_attn"), layer_of("stages.1.blocks.0.attn"), layer_of("block_2.attention")
    ((3,), (1, 0), (2,))
    """
    pieces = (re.fullmatch(r"\D*?(\d+)", piece) for piece in name.split("."))
    return tuple(int(piece[1]) for piece in pieces if piece)


def steps_of(layers: int, until: Sequence[Until] | None, every: int | None) -> list[Until | None]:
    require((until is None) != (every is None), "layers open at the steps of until=, or every= so many steps: say one of them")
    if every is not None:
        require_whole(every, "every", 1)
        return [every * number for number in range(1, layers + 1)]
    listed = isinstance(until, Sequence) and not isinstance(until, str)
    require(listed, f"until is a list of steps, one for each of {layers} layers, not {until!r}")
    assert until is not None
    require(len(until) == layers, f"there are {layers} layers to open, and until has {len(until)} steps")
    return [whole_step(step) for step in until]
