"""Switching parts of any model off, and on again later: the heart of the house.

    delay = delay_attention(model, until=2_000).watch(optimizer)    # attention is off, and opens itself
    ...                                                             # train: first the rest learns, then all of it

closing.py makes a delay, delay.py is the switch, sites.py says where it can be put, attention.py finds attention, stand_in.py
stands in for what is off (returns.py: as what), opening.py opens gently, stages.py opens one part after another. inputs.py is
what a model is tried on, trace.py one forward of it (module_call.py: of a module), probe.py compares two, silence.py lets
attention give nothing, search.py finds it so (found.py: what comes out), check.py tries a delay.
forwards.py keeps our forward in its place, hooks.py are on the modules, watch.py counts steps, guard.py sees that nothing moves
that is off (cause.py: why it did), counters.py knows of optimizers that count by group, wrappers.py of what is put around a
model; agreement.py lets several processes open together, state.py and names.py compare a checkpoint with a model, table.py
prints a delay; copies.py switches copies of the model along, record.py is what a checkpoint says of parts that were off. More
than on and off: layers.py opens layer by layer, chance.py by chance, window.py through a window that grows (band.py: how it
is put on anybody's attention; gradual_delay.py: what the two have in common), opens.py makes such switches of data.
"""

from lengthlab.switch.chance import ChanceDelay, by_chance
from lengthlab.switch.closing import DelayOptions, delay, delay_attention
from lengthlab.switch.delay import Delay, Until
from lengthlab.switch.layers import by_layer
from lengthlab.switch.opening import Opening
from lengthlab.switch.opens import Switch, switch_for
from lengthlab.switch.sites import Instead, Parts, Site, find
from lengthlab.switch.stages import Stages
from lengthlab.switch.stand_in import StandIn
from lengthlab.switch.state import DelayWarning
from lengthlab.switch.window import WindowDelay, by_window

__all__ = [
    "ChanceDelay",
    "Delay",
    "DelayOptions",
    "DelayWarning",
    "Instead",
    "Opening",
    "Parts",
    "Site",
    "Stages",
    "StandIn",
    "Switch",
    "Until",
    "WindowDelay",
    "by_chance",
    "by_layer",
    "by_window",
    "delay",
    "delay_attention",
    "find",
    "switch_for",
]
