"""Which Python a rule may be written in, so that it can be carried out line by line without running anybody's code.

    values       whole numbers, True and False, texts, lists of these (no lists in lists)
    statements   x = …, x += …, xs[i] = …, x, y = …, …, xs.append(…), if / elif / else, while, for x in …, for i, x in
                 enumerate(xs), break, continue, return …
    lists        xs[i], xs[i:j], xs[i:j:k]; pop, also in expressions; insert, append, extend, reverse, sort, remove, clear
    expressions  + - * // %, == != < <= > >=, in, and, or, not, a if c else b
    functions    len, min, max, sum, abs, sorted; range in the head of a for loop

Nothing else is: no imports, attributes, other calls, functions in functions, loops with else. A statement stands on one line,
because a line is what a trace recites; `if xs: xs.pop(0)` may. A text at the top is no part of the rule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NoReturn

from lengthlab.errors import LabError, cut

FUNCTIONS = ("len", "min", "max", "sum", "abs", "sorted")
METHODS = ("pop", "insert", "append", "extend", "reverse", "sort", "remove", "clear")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
PARTS = (
    *(ast.Name, ast.List, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice),
    *(ast.Load, ast.Store, ast.And, ast.Or, ast.Not, ast.USub, *OPERATORS, *COMPARISONS),
)
"""Expressions that are allowed with whatever is in them."""
DEEPEST = 50
"""Expressions in expressions, blocks in blocks."""


def check(function: ast.FunctionDef) -> None:
    """Refuse what is not in the language of rules, with its line.

    >>> check(ast.parse("def f(xs):\\n    return open(xs)").body[0])
    Traceback (most recent call last):
    lengthlab.errors.LabError: rule 'f', line 2: `open(xs)` is nothing that a rule may say (lengthlab.rules.subset has the list)
    """
    given = function.args
    plain = not (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults)
    if not plain or not given.args or function.decorator_list:
        raise LabError(f"rule '{function.name}', line 1: a rule has plain parameters, at least one, and nothing around it")
    for statement in function.body:
        _check_statement(statement, function.name, 0)


def _check_statement(node: ast.stmt, rule: str, depth: int, looped: bool = False) -> None:
    if depth > DEEPEST:
        raise LabError(f"rule '{rule}', line {node.lineno}: blocks in blocks, more than {DEEPEST} deep")
    heads: list[ast.expr] = []
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            heads = [*values, *(inner for each in targets for inner in _target(each, node, rule))]
        case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
            heads = [value, *_target(target, node, rule)]
            if isinstance(node, ast.AugAssign) and not isinstance(node.op, OPERATORS):
                _refuse(node, rule)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(), attr=method), args=heads, keywords=[])):
            if method not in METHODS:
                _refuse(node, rule)
        case ast.If(test=test) | ast.While(test=test, orelse=[]):
            heads = [test]
        case ast.For(target=ast.Tuple(elts=[ast.Name(), ast.Name()]), iter=ast.Call(args=[over]) as call, orelse=[]):
            if not is_call(call, "enumerate"):
                _refuse(node, rule)
            heads = [over]
        case ast.For(target=ast.Name(), iter=over, orelse=[]):
            heads = [*over.args] if isinstance(over, ast.Call) and is_call(over, "range") else [over]
        case ast.Break() | ast.Continue():
            if not looped:
                _refuse(node, rule)
        case ast.Return(value=ast.expr() as value):
            heads = [value]
        case _:
            _refuse(node, rule)
    if max([node.lineno, *(_last_line(head) for head in heads)]) > node.lineno:
        raise LabError(f"rule '{rule}', line {node.lineno}: a statement of a rule stands on one line")
    for head in heads:
        _check_expression(head, rule, 0)
    for inner in blocks(node):
        _check_statement(inner, rule, depth + 1, looped or isinstance(node, (ast.While, ast.For)))


def _target(target: ast.expr, node: ast.stmt, rule: str) -> list[ast.expr]:
    """What is in the brackets of the left side of an assignment."""
    if isinstance(target, ast.Name):
        return []
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or isinstance(target.slice, ast.Slice):
        _refuse(node, rule)
    return [target.slice]


def _check_expression(node: ast.AST, rule: str, depth: int) -> None:
    if depth > DEEPEST:
        raise LabError(f"rule '{rule}', line {getattr(node, 'lineno', 1)}: brackets in brackets, more than {DEEPEST} deep")
    match node:
        case ast.Constant(value=int() | str()):
            pass
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            for each in node.args:
                _check_expression(each, rule, depth + 1)
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="pop"), keywords=[]):
            for each in node.args:
                _check_expression(each, rule, depth + 1)
            return
        case _ if not isinstance(node, PARTS):
            _refuse(node, rule)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.operator, ast.unaryop)) and not isinstance(child, PARTS):
            _refuse(node, rule)  # a sign alone has neither line nor text
        _check_expression(child, rule, depth + 1)


def blocks(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements inside a statement.

    >>> loop = ast.parse("while xs:\\n    xs.pop()\\n    n = n + 1").body[0]
    >>> [each.lineno for each in blocks(loop)]
    [2, 3]
    """
    yield from getattr(node, "body", [])
    yield from getattr(node, "orelse", [])


def is_call(node: ast.expr, name: str) -> bool:
    """Whether an expression calls a function of that name, without keywords."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name and not node.keywords


def _last_line(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _refuse(node: ast.AST, rule: str) -> NoReturn:
    said = cut(ast.unparse(node), 60)
    line = getattr(node, "lineno", 1)
    raise LabError(f"rule '{rule}', line {line}: `{said}` is nothing that a rule may say (lengthlab.rules.subset has the list)")
