"""A rule carried out, each line a step: statements become functions of the frame, which keep what was before and after."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Literal

from lengthlab.errors import LabError
from lengthlab.rules.expression import Expression, Frame, a_list, combined, expression, in_range, scalar, variable
from lengthlab.rules.names import changed_by, names_in, popped_in, read_by
from lengthlab.rules.step import TO_COME, Kind, Step, Value, kept
from lengthlab.rules.subset import is_call

Leave = Literal["", "return", "break", "continue"]
"""How a statement leaves the block that it is in; empty where the next one follows."""
Statement = Callable[[Frame], Leave]
"""Carries a statement out."""

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

        def run(frame: Frame) -> Leave:
            for statement in statements:
                if leave := statement(frame):
                    return leave
            return ""

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
            case ast.Break():
                return self._jump(node, "break")
            case ast.Continue():
                return self._jump(node, "continue")
        act, reads, changed, line = _action(node), read_by(node), changed_by(node), node.lineno

        def run(frame: Frame) -> Leave:
            frame.line = line
            before = _now(frame, reads)
            act(frame)
            self._keep(frame, line, "set", before, _now(frame, changed), None)
            return ""

        return run

    def _if(self, node: ast.If) -> Statement:
        test, reads, changed = expression(node.test), names_in(node.test), popped_in(node.test)
        yes, no, line = self._block(node.body), self._block(node.orelse), node.lineno

        def run(frame: Frame) -> Leave:
            frame.line = line
            before = _now(frame, reads)
            holds = bool(test(frame))
            self._keep(frame, line, "if", before, _now(frame, changed), holds)
            return yes(frame) if holds else no(frame)

        return run

    def _while(self, node: ast.While) -> Statement:
        test, reads, changed = expression(node.test), names_in(node.test), popped_in(node.test)
        body, line = self._block(node.body), node.lineno

        def run(frame: Frame) -> Leave:
            frame.turning[line] = 0
            while True:
                frame.line = line
                before = _now(frame, reads)
                holds = bool(test(frame))
                self._keep(frame, line, "while", before, _now(frame, changed), holds)
                if not holds:
                    break
                frame.turning[line] += 1
                leave = body(frame)
                if leave == "return":
                    return leave
                if leave == "break":
                    break
            del frame.turning[line]
            return ""

        return run

    def _for(self, node: ast.For) -> Statement:
        over, body, line = _sequence(node.iter), self._block(node.body), node.lineno
        numbered = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = [each.id for each in numbered if isinstance(each, ast.Name)]

        def run(frame: Frame) -> Leave:
            frame.line = line
            sequence, place = over(frame), 0
            frame.turning[line] = 0
            while True:
                frame.line = line
                left = sequence[place:]
                before = ((TO_COME, left if isinstance(left, str) else tuple(left)),)
                if not left:
                    self._keep(frame, line, "for", before, (), False)
                    break
                given = (*zip(names, (place, left[0])[-len(names) :], strict=True),)
                frame.variables.update(given)
                self._keep(frame, line, "for", before, given, True)
                frame.turning[line] += 1
                leave = body(frame)
                if leave == "return":
                    return leave
                if leave == "break":
                    break
                place += 1
            del frame.turning[line]
            return ""

        return run

    def _return(self, node: ast.Return, value: Expression) -> Statement:
        reads, line = names_in(node), node.lineno

        def run(frame: Frame) -> Leave:
            frame.line = line
            before = _now(frame, reads)
            self._keep(frame, line, "return", before, (), kept(value(frame)))
            return "return"

        return run

    def _jump(self, node: ast.stmt, leave: Literal["break", "continue"]) -> Statement:
        line = node.lineno

        def run(frame: Frame) -> Leave:
            frame.line = line
            self._keep(frame, line, leave, (), (), next(reversed(frame.turning)))  # the innermost loop began last
            return leave

        return run

    def _keep(self, frame: Frame, line: int, kind: Kind, before: Any, after: Any, value: Value | None) -> None:
        """One step more."""
        if len(frame.steps) >= frame.limit:
            worst = max(frame.turning, key=frame.turning.__getitem__, default=line)
            turns = f", in its turn {frame.turning[worst]:,}" if worst in frame.turning else ""
            told = f"{self._where(worst)}: the loop is not over after {frame.limit:,} steps{turns}"
            raise LabError(f"{told}: change the rule so that it ends, or ends sooner")
        if frame.notes:
            frame.steps.append(Step(line, kind, before, after, value, tuple(frame.notes)))
            frame.notes.clear()
        else:
            frame.steps.append(Step(line, kind, before, after, value))


def _action(node: ast.stmt) -> Callable[[Frame], None]:
    """What a statement without blocks does."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return _assignments(targets, [expression(each) for each in values])
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
        frame.variables[name] = found
        _require_own(frame, name, found)

    return act


def _require_own(frame: Frame, name: str, found: Any) -> None:
    """Refuse a list that another variable holds, too."""
    if type(found) is list:
        for other, held in frame.variables.items():
            if held is found and other != name:
                raise ValueError(f"one list would have two names, '{other}' and '{name}': copy it, {name} = {other}[:]")


def _assignments(targets: Sequence[ast.expr], values: Sequence[Expression]) -> Callable[[Frame], None]:
    """All values are there before the first is given to anything."""
    puts = [_put(target) for target in targets]
    names = [target.id for target in targets if isinstance(target, ast.Name)]

    def act(frame: Frame) -> None:
        found = [value(frame) for value in values]
        for put, each in zip(puts, found, strict=True):
            put(frame, each)
        for name in names:
            _require_own(frame, name, frame.variables[name])

    return act


def _put(target: ast.expr) -> Callable[[Frame, Any], None]:
    if isinstance(target, ast.Name):
        name = target.id
        return lambda frame, found: frame.variables.update({name: found})
    assert isinstance(target, ast.Subscript)
    xs, place = expression(target.value), expression(target.slice)

    def put(frame: Frame, found: Any) -> None:
        a_list(xs(frame))[place(frame)] = scalar(found)

    return put


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
    if isinstance(node, ast.Call) and is_call(node, "enumerate"):
        return expression(node.args[0])
    if not (isinstance(node, ast.Call) and is_call(node, "range")):
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
