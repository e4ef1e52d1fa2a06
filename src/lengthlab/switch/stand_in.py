"""What stands in for a module while it is off: how its output looks, found out without running it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError
from lengthlab.switch.module_call import ModuleCall, argument_names
from lengthlab.switch.returns import Returns, returns_of

PROJECTIONS = ("o_proj", "out_proj", "c_proj", "to_out", "wo", "out")
"""What the last map of attention is called. Where its output is not as wide as its input, so is the module's."""
CACHES = ("past_key_values", "past_key_value", "layer_past")
"""What a cache of keys and values is called where it is handed over."""

Forward = Callable[..., Any]


@dataclass(frozen=True)
class StandIn:
    """Gives back what comes in (`keeps`), or zeros of that shape; as the first of `values` where the module gives several.

    A module that has a cache writes empty keys and values into it, so that the cache counts the tokens: other parts read
    their positions from that count.

    >>> import torch
    >>> StandIn(keeps=False, returns=Returns(2))(torch.ones(1, 2))
    (tensor([[0., 0.]]), None)
    """

    keeps: bool
    returns: Returns = Returns()
    first: str = "x"
    """The name of the input that it is made of, where it is handed over by name."""
    width: int | None = None
    layer: int | None = None
    place: int = 0
    """Of that input, where it is not."""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        x = self._input(inputs, named)
        cache = next((named[name] for name in CACHES if named.get(name) is not None), None)
        if not self._crosses(named):
            self._count(x, cache, named.get("layer_idx", self.layer))
        if not self.returns.values:
            return self.alone(x)
        zeros = {place: x.new_zeros(shape) for place, shape in self.returns.zeros}
        others = (cache if each == self.returns.cache else zeros.get(each) for each in range(1, self.returns.values))
        return (self.alone(x), *others)

    def alone(self, x: Tensor) -> Tensor:
        """The first of what is given."""
        if self.keeps:
            return x
        # zeros_like where it will do: of a nested tensor, which torch's transformer makes of a padded batch, there is no shape.
        return torch.zeros_like(x) if self.width in (None, x.size(-1)) else x.new_zeros(*x.shape[:-1], self.width)

    def _input(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        candidates = (named.get(self.first), *inputs[self.place : self.place + 1], *inputs, *named.values())
        found = next((each for each in candidates if isinstance(each, Tensor)), None)
        if found is None:
            raise LabError(
                "a part that is off was called without a tensor: say what it gives with instead=, a function of its inputs"
            )
        return found

    def _crosses(self, named: dict[str, Any]) -> bool:
        """Attention to another sequence, whose keys and values are no tokens of this one."""
        other = named.get("key_value_states"), None if self.keeps else named.get("encoder_hidden_states")
        return any(each is not None for each in other)

    def _count(self, x: Tensor, cache: Any, layer: int | None) -> None:
        cache = getattr(cache, "self_attention_cache", cache)
        if layer is None or not _takes_keys(cache, layer):
            return
        if "attn_state" in inspect.signature(cache.update).parameters:  # that of flash-linear-attention
            nothing = x.new_zeros(len(x), x.shape[1], 1)
            cache.update(attn_state=(nothing, nothing), layer_idx=layer, offset=x.shape[1])
        else:
            nothing = x.new_zeros(len(x), 1, x.shape[1], 1)
            cache.update(nothing, nothing, layer)

    def __str__(self) -> str:
        what = "its input" if self.keeps else "zeros"
        if not self.returns.values:
            return what
        named = {place: "zeros" for place, _ in self.returns.zeros} | {self.returns.cache: "the cache"}
        return f"({', '.join([what, *(named.get(each, 'None') for each in range(1, self.returns.values))])})"


def stand_in_for(name: str, module: nn.Module, keeps: bool) -> StandIn:
    """For a module of this name in its model."""
    layers = [layer for each in module.modules() if isinstance(layer := getattr(each, "layer_idx", None), int)]
    width = None if keeps else _width(module)
    return StandIn(keeps, returns_of(name, module), _first_input(module), width, layers[0] if layers else None)


def recorded_stand_in(module: nn.Module, calls: Sequence[ModuleCall], keeps: str | None = None) -> StandIn | None:
    """As its calls were seen: zeros as its output was, or the input that it is said to keep. None where no input has a shape
    from which that of the output follows.
    """
    alike = {(call.values, call.passed, call.own) for call in calls}
    like = keeps or next((name for name in calls[0].given if all(_tells(call, name) for call in calls)), None)
    if like is None or len(alike) > 1 or calls[0].values < 0:
        return None
    widths = {call.shape[-1] for call in calls if call.shape}
    cache = next((place for place, name in calls[0].passed if name in CACHES), _cache_of(module, calls[0].values))
    layers = [layer for each in module.modules() if isinstance(layer := getattr(each, "layer_idx", None), int)]
    names = argument_names(module)
    return StandIn(
        keeps is not None,
        Returns(calls[0].values, cache, calls[0].own),
        like,
        None if keeps or all(call.shape == call.given[like][0] for call in calls) else widths.pop(),
        layers[0] if layers else None,
        names.index(like) if like in names else 0,
    )


def _cache_of(module: nn.Module, values: int) -> int | None:
    """Which value is the cache, by its code: where there was none to be handed through."""
    try:
        read = returns_of("", module)
    except LabError:
        return None
    return read.cache if read.values == values else None


def _tells(call: ModuleCall, name: str) -> bool:
    """Whether the output has the shape of an input, but for its width."""
    shape = call.given[name][0] if name in call.given else None
    return bool(shape) and call.shape is not None and call.shape[:-1] == shape[:-1] if shape else False


def _takes_keys(cache: Any, layer: int) -> bool:
    """Whether a cache keeps keys and values for a layer; for a recurrent one it keeps a state."""
    layers = getattr(cache, "layers", None)
    kept = layers[layer] if isinstance(layers, list) and layer < len(layers) else cache
    return hasattr(cache, "update") and hasattr(kept, "update")


def _first_input(module: nn.Module) -> str:
    names = [each for each in inspect.signature(type(module).forward).parameters if each != "self"]
    return names[0] if names else "x"


def _width(module: nn.Module) -> int | None:
    """Of what comes out, where there is a last map that tells."""
    last = next((getattr(module, name) for name in PROJECTIONS if isinstance(getattr(module, name, None), nn.Module)), None)
    for size in ("out_features", "nf"):
        if isinstance(getattr(last, size, None), int):
            return int(getattr(last, size))
    return None
