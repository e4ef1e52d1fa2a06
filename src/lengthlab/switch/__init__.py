"""Switching parts of any model off, and on again later: the heart of the house.

    delay = delay_attention(model, until=2_000).watch(optimizer)    # attention is off, and opens itself
    ...                                                             # train: first the rest learns, then all of it

closing.py makes a delay, delay.py is the switch, sites.py says where it can be put, attention.py finds attention, stand_in.py
stands in for what is off (returns.py: as what), opening.py opens gently, stages.py opens one part after another. copies.py
switches copies of the model along, record.py is what a checkpoint says of parts that were off.
"""

from lengthlab.switch.closing import DelayOptions, delay, delay_attention
from lengthlab.switch.delay import Delay, DelayWarning, Until
from lengthlab.switch.opening import Opening
from lengthlab.switch.sites import Instead, Parts, Site, find
from lengthlab.switch.stages import Stages
from lengthlab.switch.stand_in import StandIn

__all__ = [
    "Delay",
    "DelayOptions",
    "DelayWarning",
    "Instead",
    "Opening",
    "Parts",
    "Site",
    "Stages",
    "StandIn",
    "Until",
    "delay",
    "delay_attention",
    "find",
]
