"""What stands in for a module while it is off: how its output looks, found out without running it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
        self._count(x, named)
        return self.instead_of(x)

    def instead_of(self, x: Tensor) -> Any:
        """What is given for this input."""
        out = self.alone(x)
        return (out, *(None for _ in range(self.values - 1))) if self.values else out

    def alone(self, x: Tensor) -> Tensor:
        """The first of what is given."""
        return x if self.keeps else x.new_zeros(*x.shape[:-1], self.width or x.shape[-1])

    def _input(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        candidates = (*inputs, named.get(self.first), *named.values())
        return next(each for each in candidates if isinstance(each, Tensor))

    def _count(self, x: Tensor, named: dict[str, Any]) -> None:
        cache = next((named[name] for name in CACHES if named.get(name) is not None), None)
        layer = named.get("layer_idx", self.layer)
        if layer is not None and cache is not None and hasattr(cache, "update"):
            nothing = x.new_zeros(len(x), 1, x.shape[1], 1)
            cache.update(nothing, nothing, layer)

    def __str__(self) -> str:
        what = "its input" if self.keeps else "zeros"
        return what if self.values == 0 else f"({', '.join([what, *['None'] * (self.values - 1)])})"


def stand_in_for(name: str, module: nn.Module, keeps: bool) -> StandIn:
    """For a module of this name in its model."""
    values = 2 if isinstance(module, PAIRS) else _values(name, module)
    layer = getattr(module, "layer_idx", None)
    width = None if keeps else _width(module)
    return StandIn(keeps, values, _first_input(module), width, layer if isinstance(layer, int) else None)


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


def _values(name: str, module: nn.Module) -> int:
    """How many values `forward` returns, read from its source; 0: one, and not in a tuple."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(type(module).forward)))
        body = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return 0  # written in a notebook's cell that is gone, or not in Python
    assigned = {target.id: node.value for node in _nodes(body, ast.Assign) for target in _names(node)}
    found = {_length(assigned.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value)
             for node in _nodes(body, ast.Return) if node.value is not None}  # fmt: skip
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


def _length(value: ast.expr) -> int:
    return len(value.elts) if isinstance(value, ast.Tuple) else 0
