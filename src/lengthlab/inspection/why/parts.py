"""The two pathways by which a network can know what it read before: attention and recurrences, found by what they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torch import nn

from lengthlab.models.attention.hierarchical import _HierarchicalAttention
from lengthlab.models.attention.local import _LocalAttention
from lengthlab.models.attention.softmax import _Attention
from lengthlab.models.mixer import Mixer, is_switched_off
from lengthlab.models.model import Network

RECURRENT = re.compile(
    r"(mamba\d?|mixer|mamba\d?layer|recurrentblock|deltanet|shortconv|lightningattention|linearattention|timemix|retention|kda)$",
    re.IGNORECASE,
)
"""How the names of classes end that are recurrences, in models that are not of this package."""


@dataclass(frozen=True)
class Parts:
    """By name. `weighed`: attention whose weights can be seen; `blocks`: other attention; `others`: mixers that are neither."""

    weighed: dict[str, _Attention] = field(default_factory=dict)
    blocks: dict[str, nn.Module] = field(default_factory=dict)
    recurrences: dict[str, nn.Module] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    foreign: bool = False
    """Whether the network is not of this package, so that its attention is found while it runs."""


def parts_of(network: nn.Module) -> Parts:
    """Those that are at work; what is switched off is none.

    >>> from lengthlab.models import hybrid_block
    >>> parts = parts_of(hybrid_block(width=8, blocks=1, heads=2).build(vocabulary=5))
    >>> list(parts.recurrences), list(parts.weighed)
    (['body.residual.lstm'], ['body.attention.0.residual.attend'])
    """
    working = dict(_working(network, ""))
    if not isinstance(network, Network):
        recurrent = {name: module for name, module in working.items() if _is_recurrent(module)}
        outer = {
            name: module for name, module in recurrent.items() if not any(name.startswith(f"{each}.") for each in recurrent)
        }
        return Parts(recurrences=outer, foreign=True)
    mixers = {name: module for name, module in working.items() if isinstance(module, Mixer)}
    weighed = {name: module for name, module in mixers.items() if isinstance(module, _Attention)}
    blocks = {n: module for n, module in mixers.items() if isinstance(module, (_LocalAttention, _HierarchicalAttention))}
    rest = {name: module for name, module in mixers.items() if name not in weighed and name not in blocks}
    recurrences = {name: module for name, module in rest.items() if module.has_state}
    return Parts(weighed, dict(blocks), dict(recurrences), tuple(name for name in rest if name not in recurrences))


def _working(module: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    """Every module that is not in something that is off."""
    if is_switched_off(module):
        return []
    children = [(f"{name}.{child}".lstrip("."), each) for child, each in module.named_children()]
    return [(name, module), *(found for child, each in children for found in _working(each, child))]


def _is_recurrent(module: nn.Module) -> bool:
    return isinstance(module, nn.RNNBase) or bool(RECURRENT.search(type(module).__name__))
