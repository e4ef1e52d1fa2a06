"""Which variables a statement reads, and which it changes: what a step tells of before and after."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def names_in(node: ast.AST) -> tuple[str, ...]:
    """The variables that are read in an expression or a statement, in the order of the text.

    >>> names_in(ast.parse("n + len(xs) + n", mode="eval"))
    ('n', 'xs')
    """
    found = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    ordered = sorted((each for each in found if id(each) not in called), key=lambda each: (each.lineno, each.col_offset))
    return _unique(*(each.id for each in ordered))


def popped_in(node: ast.AST) -> tuple[str, ...]:
    """The lists that an expression takes something from.

    >>> popped_in(ast.parse("xs.pop() + xs.pop(0)", mode="eval"))
    ('xs',)
    """
    return _unique(*_pops(node))


def changed_by(node: ast.stmt) -> tuple[str, ...]:
    """The variables that a statement without blocks changes, the one it is about first.

    >>> changed_by(ast.parse("n = xs.pop()").body[0]), changed_by(ast.parse("xs[0], n = n, 1").body[0])
    (('n', 'xs'), ('xs', 'n'))
    """
    match node:
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            return _unique(*map(_base, targets), *popped_in(node))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return _unique(name, *popped_in(node))
    raise AssertionError(ast.dump(node))


def read_by(node: ast.stmt) -> tuple[str, ...]:
    """The variables that a statement without blocks reads; what it changes in place is among them.

    >>> read_by(ast.parse("xs.append(n)").body[0]), read_by(ast.parse("n += 1").body[0])
    (('xs', 'n'), ('n',))
    """
    in_place = not (isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Name, ast.Tuple)))
    return _unique(*(changed_by(node)[:1] if in_place else ()), *names_in(node))


def _base(target: ast.expr) -> str:
    """The variable that is changed where something is assigned."""
    base = target.value if isinstance(target, ast.Subscript) else target
    assert isinstance(base, ast.Name)
    return base.id


def _pops(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and isinstance(each.func.value, ast.Name):
            yield each.func.value.id


def _unique(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
