"""A switch for a way of opening that is written down as data (`lengthlab.gradual`)."""

from __future__ import annotations

from torch import nn

from lengthlab.errors import LabError
from lengthlab.gradual import Chance, Gradual, Layers, Window
from lengthlab.switch.chance import ChanceDelay
from lengthlab.switch.delay import Delay
from lengthlab.switch.layers import layers_of, steps_of
from lengthlab.switch.sites import find
from lengthlab.switch.stages import Stages
from lengthlab.switch.window import WindowDelay

Switch = Delay | Stages


def switch_for(opens: Gradual, model: nn.Module, seed: int = 0) -> Switch:
    """What opens the parts of a model so; not closed yet.

    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, nhead=2), 2, enable_nested_tensor=False)
    >>> switch = switch_for(Layers(every=10, parts=("self_attn",)), model)
    >>> [stage.until for stage in switch.delays]
    [10, 20]
    """
    sites = find(model, *opens.parts)
    if isinstance(opens, Layers):
        layers = layers_of(sites, opens.first)
        steps = steps_of(len(layers), opens.until or None, opens.every or None)
        return Stages(*(Delay(each, step) for each, step in zip(layers, steps, strict=True)))
    if isinstance(opens, Chance):
        return ChanceDelay(sites, opens.p, opens.until or None, seed)
    if isinstance(opens, Window):
        return WindowDelay(sites, opens.windows, opens.until or None, opens.p, seed)
    raise LabError(f"{type(opens).__name__} is no way of opening that is known here: use Layers, Chance or Window")
