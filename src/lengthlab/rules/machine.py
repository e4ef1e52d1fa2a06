"""A rule carried out, each line a step: statements become functions of the frame, which keep what was before and after."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from lengthlab.errors import LabError
from lengthlab.rules.expression import Expression, Frame, a_list, combined, expression, in_range, scalar, variable
from lengthlab.rules.names import changed_by, names_in, popped_in, read_by
from lengthlab.rules.step import TO_COME, Kind, Step, Value, kept

Statement = Callable[[Frame], bool]
"""Carries a statement out; true if it returned."""

WRONG = (IndexError, TypeError, ValueError, ZeroDivisionError)
"""What Python says of an operation that cannot be."""


class Machine:
    """The statements of a function that was checked, ready to be carried out on any input."""

    def __init__(self, function: ast.FunctionDef, lines: Sequence[str]) -> None:
        self.name, self.lines = function.name, lines
        self._body = self._block(function.body)

    def run(self, frame: Frame) -> None:
        """To the end: the last step returns."""
        try:
            returned = self._body(frame)
        except WRONG as error:
            raise LabError(f"{self._where(frame.line)}: {error}") from None
        if not returned:
            raise LabError(f"rule '{self.name}' came to its end without a return")

    def _where(self, line: int) -> str:
        return f"rule '{self.name}', line {line} (`{self.lines[line - 1].strip()}`)"

    def _block(self, body: Sequence[ast.stmt]) -> Statement:
        statements = [self._statement(each) for each in body]

        def run(frame: Frame) -> bool:
            for statement in statements:  # noqa: SIM110 - any() would make a generator of every block
                if statement(frame):
                    return True
            return False

        return run

    def _statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.If():
                return self._if(node)
            case ast.While():
                return self._while(node)
            case ast.For():
                return self._for(node)
            case ast.Return(value=ast.expr() as value):
                return self._return(node, expression(value))
        act, reads, changed, line = _action(node), read_by(node), changed_by(node), node.lineno

        def run(frame: Frame) -> bool:
            frame.line = line
            before = _now(frame, reads)
            act(frame)
            self._keep(frame, line, "set", before, _now(frame, changed), None)
            return False

        return run

    def _if(self, node: ast.If) -> Statement:
        test, reads, changed = expression(node.test), names_in(node.test), popped_in(node.test)
        yes, no, line = self._block(node.body), self._block(node.orelse), node.lineno

        def run(frame: Frame) -> bool:
            frame.line = line
            before = _now(frame, reads)
            holds = bool(test(frame))
            self._keep(frame, line, "if", before, _now(frame, changed), holds)
            return yes(frame) if holds else no(frame)

        return run

    def _while(self, node: ast.While) -> Statement:
        test, reads, changed = expression(node.test), names_in(node.test), popped_in(node.test)
        body, line = self._block(node.body), node.lineno

        def run(frame: Frame) -> bool:
            frame.turning[line] = 0
            while True:
                frame.line = line
                before = _now(frame, reads)
                holds = bool(test(frame))
                self._keep(frame, line, "while", before, _now(frame, changed), holds)
                if not holds:
                    del frame.turning[line]
                    return False
                frame.turning[line] += 1
                if body(frame):
                    return True

        return run

    def _for(self, node: ast.For) -> Statement:
        over, body, line = _sequence(node.iter), self._block(node.body), node.lineno
        assert isinstance(node.target, ast.Name)
        name = node.target.id

        def run(frame: Frame) -> bool:
            frame.line = line
            sequence, place = over(frame), 0
            frame.turning[line] = 0
            while True:
                frame.line = line
                left = sequence[place:]
                before = ((TO_COME, left if isinstance(left, str) else tuple(left)),)
                if not left:
                    self._keep(frame, line, "for", before, (), False)
                    del frame.turning[line]
                    return False
                frame.variables[name] = left[0]
                self._keep(frame, line, "for", before, ((name, left[0]),), True)
                frame.turning[line] += 1
                if body(frame):
                    return True
                place += 1

        return run

    def _return(self, node: ast.Return, value: Expression) -> Statement:
        reads, line = names_in(node), node.lineno

        def run(frame: Frame) -> bool:
            frame.line = line
            before = _now(frame, reads)
            self._keep(frame, line, "return", before, (), kept(value(frame)))
            return True

        return run

    def _keep(self, frame: Frame, line: int, kind: Kind, before: Any, after: Any, value: Value | None) -> None:
        """One step more."""
        if len(frame.steps) >= frame.limit:
            worst = max(frame.turning, key=frame.turning.__getitem__, default=line)
            told = (
                f"{self._where(worst)}: the loop does not end: {frame.turning.get(worst, 0):,} turns in {frame.limit:,} steps"
            )
            raise LabError(f"{told}; change the rule, or give it more steps")
        if frame.notes:
            frame.steps.append(Step(line, kind, before, after, value, tuple(frame.notes)))
            frame.notes.clear()
        else:
            frame.steps.append(Step(line, kind, before, after, value))


def _action(node: ast.stmt) -> Callable[[Frame], None]:
    """What a statement without blocks does."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _assignment(name, expression(value))
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=place)], value=value):
            return _placement(name, expression(place), expression(value))
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            return _assignment(name, expression(ast.BinOp(ast.Name(name, ast.Load()), op, value)))
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name), slice=place), op=op, value=value):
            return _change(name, expression(place), combined(op), expression(value))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=args)):
            return _method(name, method, [expression(each) for each in args])
    raise AssertionError(ast.dump(node))


def _assignment(name: str, value: Expression) -> Callable[[Frame], None]:
    def act(frame: Frame) -> None:
        found = value(frame)
        if type(found) is list:
            for other, held in frame.variables.items():
                if held is found and other != name:
                    raise ValueError(f"one list would have two names, '{other}' and '{name}': copy it, {name} = {other}[:]")
        frame.variables[name] = found

    return act


def _placement(name: str, place: Expression, value: Expression) -> Callable[[Frame], None]:
    xs = variable(name)

    def act(frame: Frame) -> None:
        found = scalar(value(frame))
        a_list(xs(frame))[place(frame)] = found

    return act


def _change(name: str, place: Expression, combine: Callable[[Any, Any], Any], value: Expression) -> Callable[[Frame], None]:
    held = variable(name)

    def act(frame: Frame) -> None:
        xs, at = a_list(held(frame)), place(frame)
        old = xs[at]
        xs[at] = combine(old, value(frame))

    return act


def _method(name: str, method: str, args: Sequence[Expression]) -> Callable[[Frame], None]:
    held = variable(name)

    def act(frame: Frame) -> None:
        xs = a_list(held(frame))
        given = [each(frame) for each in args]
        if method != "extend":
            given = [scalar(each) for each in given]
        getattr(xs, method)(*given)
        in_range(xs)

    return act


def _sequence(node: ast.expr) -> Expression:
    """What a `for` loop goes through."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"):
        return expression(node)
    args = [expression(each) for each in node.args]

    def value(frame: Frame) -> range:
        numbers = range(*[each(frame) for each in args])
        if len(numbers) > frame.limit:
            raise ValueError(f"{len(numbers):,} turns are more than {frame.limit:,} steps")
        return numbers

    return value


def _now(frame: Frame, names: Sequence[str]) -> tuple[tuple[str, Value], ...]:
    """These variables as they are; those that have no value yet are left out."""
    variables = frame.variables
    if not names:
        return ()
    return tuple([(name, kept(variables[name])) for name in names if name in variables])
