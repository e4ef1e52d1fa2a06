"""Expressions of a rule: each is turned once into a function of the frame, and called whenever its line is carried out.

They come to what Python's own would, on real Python values; the tests hold one against the other. What would grow without
end is refused: numbers of more than 18 digits, lists and texts of more than 10,000 elements. Whatever is refused is a
ValueError here; the machine adds the line.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lengthlab.errors import a_kind
from lengthlab.rules.step import Step

MOST = 10**18
LONGEST = 10_000

ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda x, xs: x in xs,
    ast.NotIn: lambda x, xs: x not in xs,
}
CALLED: dict[str, Callable[..., Any]] = {"len": len, "min": min, "max": max, "sum": sum, "abs": abs, "sorted": sorted}


@dataclass(slots=True)
class Frame:
    """A rule while it is carried out: its variables and the steps so far; `notes` of the line it is at, if they are wanted."""

    variables: dict[str, Any]
    limit: int
    notes: list[str] | None
    steps: list[Step] = field(default_factory=list)
    line: int = 1
    """Where it is."""
    turning: dict[int, int] = field(default_factory=dict)
    """The loops that it is in, by line, with the turns they have begun."""


Expression = Callable[[Frame], Any]


def expression(node: ast.expr) -> Expression:
    """What computes an expression that was checked.

    >>> expression(ast.parse("xs[0] + 2", mode="eval").body)(Frame({"xs": [5]}, limit=1, notes=None))
    7
    """
    match node:
        case ast.Constant(value=value):
            return lambda frame: value
        case ast.Name(id=name):
            return variable(name)
        case ast.List(elts=elements):
            parts = [expression(each) for each in elements]
            return lambda frame: [scalar(part(frame)) for part in parts]
        case ast.BinOp():
            return _arithmetic(node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = expression(operand)
            return lambda frame: not inner(frame)
        case ast.UnaryOp(operand=operand):
            inner = expression(operand)
            return lambda frame: -inner(frame)
        case ast.BoolOp(op=op, values=values):
            return _together(values, isinstance(op, ast.Or))
        case ast.Compare():
            return _comparison(node)
        case ast.IfExp(test=test, body=body, orelse=other):
            asked, yes, no = expression(test), expression(body), expression(other)
            return lambda frame: yes(frame) if asked(frame) else no(frame)
        case ast.Subscript(value=base, slice=place):
            return _element(expression(base), place)
        case ast.Call(func=ast.Name(id=name), args=args):
            function, given = CALLED[name], [expression(each) for each in args]
            return lambda frame: function(*[each(frame) for each in given])
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args):
            xs, given = variable(name), [expression(each) for each in args]
            return lambda frame: a_list(xs(frame)).pop(*[each(frame) for each in given])
    raise AssertionError(ast.dump(node))


def variable(name: str) -> Expression:
    """What it holds."""

    def value(frame: Frame) -> Any:
        try:
            return frame.variables[name]
        except KeyError:
            raise ValueError(f"'{name}' has no value yet") from None

    return value


def _element(base: Expression, place: ast.expr) -> Expression:
    if not isinstance(place, ast.Slice):
        at = expression(place)
        return lambda frame: base(frame)[at(frame)]
    low, high, step = (expression(end) if end else None for end in (place.lower, place.upper, place.step))
    return lambda frame: base(frame)[slice(low and low(frame), high and high(frame), step and step(frame))]


def _together(values: list[ast.expr], either: bool) -> Expression:
    """`and`, `or`: as in Python, what comes after the part that decides is not looked at."""
    parts = [(ast.unparse(each), expression(each)) for each in values]

    def value(frame: Frame) -> Any:
        for text, part in parts:
            found = part(frame)
            if frame.notes is not None:
                frame.notes.append(f"{text} is {bool(found)}")
            if bool(found) == either:
                break
        return found

    return value


def _comparison(node: ast.Compare) -> Expression:
    first, others = expression(node.left), [expression(each) for each in node.comparators]
    compared = [COMPARED[type(each)] for each in node.ops]
    if len(others) == 1:
        (holds,), (other,) = compared, others
        return lambda frame: holds(first(frame), other(frame))

    def value(frame: Frame) -> bool:
        left = first(frame)
        for holds, other in zip(compared, others, strict=True):
            right = other(frame)
            if not holds(left, right):
                return False
            left = right
        return True

    return value


def _arithmetic(node: ast.BinOp) -> Expression:
    work = _work(node)

    def value(frame: Frame) -> Any:
        found, text = work(frame)
        if frame.notes is not None and type(found) is int:
            frame.notes.append(f"{text} = {found}")
        return found

    return value


def _work(node: ast.expr) -> Callable[[Frame], tuple[Any, str]]:
    """The value of an expression, and how it is written with values in the place of names."""
    if not isinstance(node, ast.BinOp):
        inner = expression(node)

        def plain(frame: Frame) -> tuple[Any, str]:
            found = inner(frame)
            return found, repr(found) if frame.notes is not None else ""

        return plain
    sign = ARITHMETIC[type(node.op)][0]
    left, right, combine = _work(node.left), _work(node.right), combined(node.op)
    binds = isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod))
    form = f"{_bracketed(node.left, binds)} {sign} {_bracketed(node.right, True)}"

    def value(frame: Frame) -> tuple[Any, str]:
        (x, one), (y, other) = left(frame), right(frame)
        return combine(x, y), "" if frame.notes is None else form.format(one, other)

    return value


def _bracketed(node: ast.expr, wanted: bool) -> str:
    """Where the text of an operand goes, with brackets around it if they are wanted and it is a sum itself."""
    return "{}" if not (wanted and isinstance(node, ast.BinOp)) else "({})"


def combined(op: ast.operator) -> Callable[[Any, Any], Any]:
    """The operation of a sign: all of them for whole numbers, + for lists and texts as well; too much is refused."""
    sign, operation = ARITHMETIC[type(op)]
    joins = sign == "+"

    def value(x: Any, y: Any) -> Any:
        if isinstance(x, int) and isinstance(y, int):
            return in_range(operation(x, y))
        if not joins or type(x) is not type(y):
            raise ValueError(f"{sign} is not for {a_kind(x)} and {a_kind(y)} in a rule")
        return in_range(x + y)

    return value


def in_range(value: Any) -> Any:
    """The value, unless it is too large."""
    if isinstance(value, int):
        if not -MOST < value < MOST:
            raise ValueError("the number has more than 18 digits")
    elif len(value) > LONGEST:
        raise ValueError(f"there are more than {LONGEST:,} elements")
    return value


def scalar(value: Any) -> Any:
    """What may be an element of a list."""
    if isinstance(value, list):
        raise ValueError("a list in a list is more than a rule may have")
    return value


def a_list(value: Any) -> list[Any]:
    """What can be changed in place."""
    if not isinstance(value, list):
        raise ValueError(f"pop, insert, append and the like are for lists, not for {a_kind(value)}")
    return value
