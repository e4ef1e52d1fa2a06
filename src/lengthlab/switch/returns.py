"""What a module gives back, read from the source of its forward: how many values, and whether its input is added to them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from lengthlab.errors import LabError

PAIRS = (nn.MultiheadAttention, nn.LSTM, nn.GRU, nn.RNN)
"""Modules whose output is the first of a pair, written in another way than can be read here."""
CACHE = re.compile(r"past|cache|present")
"""What a cache of keys and values is called where it is given back."""
MANY = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Starred)
"""Several values in a form that is not read."""


@dataclass(frozen=True)
class Returns:
    """How many values a forward gives (0: one, and not in a tuple), and which of them is the cache that it was given.

    `zeros`: which are a parameter of the module, and its shape.
    """

    values: int = 0
    cache: int | None = None
    zeros: tuple[tuple[int, tuple[int, ...]], ...] = ()


def returns_of(name: str, module: nn.Module, method: str = "forward", inside: frozenset[str] = frozenset()) -> Returns:
    """Of a module of this name in its model. `inside`: methods that are being read, which say nothing new."""
    if any(type(module).forward is pair.forward for pair in PAIRS):
        return Returns(2)
    body = _body(module, method)
    if body is None:
        return Returns()  # written in a notebook's cell that is gone, or not in Python
    inside |= {method}
    found = {_read(name, module, value, inside) for value in _returned(body) if _own_name(value) not in inside}
    if len(found) > 1:
        raise _unclear(name, module)
    return found.pop() if found else Returns()


def adds_its_input(module: nn.Module) -> bool:
    """Whether what is given back is visibly a sum with what came in, as of a block with a residual path."""
    body = _body(module, "forward")
    if body is None or not body.args.args[1:]:
        return False
    first = body.args.args[1].arg
    same = {first} | {
        target.id
        for node in _nodes(body, ast.Assign)
        for target in _targets(node)
        if isinstance(node.value, ast.Name) and node.value.id == first
    }
    sums = [node for value in _returned(body) for node in ast.walk(value) if isinstance(node, ast.BinOp)]
    added = [side for node in sums if isinstance(node.op, ast.Add) for side in (node.left, node.right)]
    return any(isinstance(side, ast.Name) and side.id in same for side in added)


def _body(module: nn.Module, method: str) -> ast.FunctionDef | None:
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(type(module), method))))
        body = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    return body if isinstance(body, ast.FunctionDef) else None


def _returned(body: ast.FunctionDef) -> list[ast.expr]:
    """What is returned, in either case of `a if b else c`; a variable stands for what it was set to last."""
    assigned = {target.id: node.value for node in _nodes(body, ast.Assign) for target in _targets(node)}
    for node in _nodes(body, ast.AnnAssign):
        assigned |= {node.target.id: node.value} if isinstance(node.target, ast.Name) and node.value else {}
    for node in _nodes(body, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            before = assigned.get(node.target.id, node.target)
            assigned[node.target.id] = ast.BinOp(before, node.op, node.value)
    values = [node.value for node in _nodes(body, ast.Return) if node.value is not None]
    said = [assigned.get(value.id, value) if isinstance(value, ast.Name) else value for value in values]
    return [case for value in said for case in _cases(value)]


def _cases(value: ast.expr) -> list[ast.expr]:
    return [*_cases(value.body), *_cases(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _read(name: str, module: nn.Module, value: ast.expr, inside: frozenset[str]) -> Returns:
    """Where an inner module or another method makes what is returned, theirs."""
    own = _own_name(value)
    inner = getattr(module, own, None) if own else None
    if isinstance(inner, nn.Module):
        return returns_of(name, inner)
    if own and inspect.isfunction(getattr(type(module), own, None)):
        return returns_of(name, module, own, inside)
    if isinstance(value, ast.Tuple) and not any(isinstance(each, MANY) for each in value.elts):
        caches = [place for place, each in enumerate(value.elts) if place and CACHE.search(ast.unparse(each))]
        return Returns(len(value.elts), caches[0] if caches else None)
    if _is_unclear(value):
        raise _unclear(name, module)
    return Returns()


def _is_unclear(value: ast.expr) -> bool:
    """Several values in a form that is not read: a dict, a list, a tuple put together, an object."""
    if isinstance(value, ast.BinOp):
        return any(isinstance(side, ast.Tuple) or _is_unclear(side) for side in (value.left, value.right))
    made = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    return isinstance(value, (*MANY, ast.Tuple, ast.IfExp)) or made in ("tuple", "list", "dict") or made[:1].isupper()


def _unclear(name: str, module: nn.Module) -> LabError:
    return LabError(
        f"cannot tell what '{name}' gives back while off: the forward of {type(module).__name__} returns several values in a "
        f"way that cannot be read from its source; say it with instead=, a function of the module's inputs"
    )


def _nodes(node: ast.AST, kind: type[Any]) -> Iterator[Any]:
    """All of a kind in a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, kind):
            yield child
        if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield from _nodes(child, kind)


def _targets(assignment: ast.Assign) -> list[ast.Name]:
    return [target for target in assignment.targets if isinstance(target, ast.Name)]


def _own_name(value: ast.expr) -> str | None:
    """`attend`, of `self.attend(...)`."""
    called = value.func if isinstance(value, ast.Call) else None
    mine = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
    return called.attr if isinstance(called, ast.Attribute) and mine else None
