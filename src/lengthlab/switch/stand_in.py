"""What stands in for a module while it is off: how its output looks, found out without running it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lengthlab.errors import LabError

PAIRS = (nn.MultiheadAttention, nn.RNNBase)
"""Modules whose output is the first of a pair; while off, the second is None."""
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
    >>> StandIn(keeps=False, values=2)(torch.ones(1, 2))
    (tensor([[0., 0.]]), None)
    """

    keeps: bool
    values: int = 0
    """How many values the module gives; 0: one, and not in a tuple."""
    first: str = "x"
    """The name of the input that comes first, where it is handed over by name."""
    width: int | None = None
    layer: int | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        x = self._input(inputs, named)
        cache = next((named[name] for name in CACHES if named.get(name) is not None), None)
        self._count(x, cache, named.get("layer_idx", self.layer))
        if self.values == 3:  # by custom: what comes out, the weights, the cache
            return self.alone(x), None, cache
        return (self.alone(x), *(None for _ in range(self.values - 1))) if self.values else self.alone(x)

    def alone(self, x: Tensor) -> Tensor:
        """The first of what is given."""
        if self.keeps:
            return x
        # zeros_like where it will do: of a nested tensor, which torch's transformer makes of a padded batch, there is no shape.
        return torch.zeros_like(x) if self.width in (None, x.size(-1)) else x.new_zeros(*x.shape[:-1], self.width)

    def _input(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        candidates = (*inputs, named.get(self.first), *named.values())
        found = next((each for each in candidates if isinstance(each, Tensor)), None)
        if found is None:
            raise LabError(
                "a part that is off was called without a tensor: say what it gives with instead=, a function of its inputs"
            )
        return found

    def _count(self, x: Tensor, cache: Any, layer: int | None) -> None:
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
        return what if self.values == 0 else f"({', '.join([what, *['None'] * (self.values - 1)])})"


def stand_in_for(name: str, module: nn.Module, keeps: bool) -> StandIn:
    """For a module of this name in its model."""
    values = _values(name, module)
    layers = [layer for each in module.modules() if isinstance(layer := getattr(each, "layer_idx", None), int)]
    width = None if keeps else _width(module)
    return StandIn(keeps, values, _first_input(module), width, layers[0] if layers else None)


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


def _values(name: str, module: nn.Module, method: str = "forward") -> int:
    """How many values a method returns, read from its source; 0: one, and not in a tuple."""
    if isinstance(module, PAIRS):
        return 2
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(type(module), method))))
        body = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return 0  # written in a notebook's cell that is gone, or not in Python
    assigned = {target.id: node.value for node in _nodes(body, ast.Assign) for target in _names(node)}
    returned = [node.value for node in _nodes(body, ast.Return) if node.value is not None]
    meant = [assigned.get(value.id, value) if isinstance(value, ast.Name) else value for value in returned]
    found = {_length(name, module, value) for value in meant if _own_name(value) != method}
    if len(found) > 1:
        raise LabError(
            f"cannot tell what '{name}' gives back while off: the forward of {type(module).__name__} returns one value in one "
            f"place and several in another; say it with instead=, a function of the module's inputs"
        )
    return found.pop() if found else 0


def _nodes(node: ast.AST, kind: type[Any]) -> Iterator[Any]:
    """All of a kind in a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, kind):
            yield child
        if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield from _nodes(child, kind)


def _names(assignment: ast.Assign) -> list[ast.Name]:
    return [target for target in assignment.targets if isinstance(target, ast.Name)]


def _length(name: str, module: nn.Module, value: ast.expr) -> int:
    """Of what is returned; where that is what an inner module or another method returns, theirs."""
    own = _own_name(value)
    inner = getattr(module, own, None) if own else None
    if isinstance(inner, nn.Module):
        return _values(name, inner)
    if own and inspect.isfunction(getattr(type(module), own, None)):
        return _values(name, module, own)
    return len(value.elts) if isinstance(value, ast.Tuple) else 0


def _own_name(value: ast.expr) -> str | None:
    """`attend`, of `self.attend(...)`."""
    called = value.func if isinstance(value, ast.Call) else None
    mine = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
    return called.attr if isinstance(called, ast.Attribute) and mine else None
