"""A rule on many inputs at once, written straight as tokens: what `Wording` says of each, made with numpy in one go.

All inputs take each statement together; those that a condition parts go on in turns. Each row of tokens has its own end, where
the next word of that input is written. This is for rules of a smaller language: whole numbers from 0 to 19 and truth values,
lists of them; pop() and pop(0), append, insert(0, …), len; no `for`, no elements by place. Of anything else, and of whatever
goes wrong, it says `NotTogether`, and the plain way has to be taken.

Shapes: B inputs, R rows of them that are at a statement, L elements of the longest list, T tokens.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lengthlab.rules.expression import ARITHMETIC, COMPARED
from lengthlab.rules.names import changed_by, names_in, popped_in, read_by
from lengthlab.rules.page import Bools, Column, Ints, Lists, NotTogether, Page, Scalars
from lengthlab.rules.rule import STEPS, Rule
from lengthlab.rules.wording import ASKED, RETURN, THEN, line_word, name_word


class Many:
    """A rule while it is carried out on many inputs, in one of the forms."""

    def __init__(self, rule: Rule, form: str, columns: Mapping[str, Column], page: Page) -> None:
        self.rule, self.form, self.columns, self.page = rule, form, dict(columns), page
        size = len(page.end_B)
        self.known = {name: np.ones(size, np.bool_) for name in columns}
        """Which rows have a variable."""
        self.left = STEPS

    def run(self) -> None:
        """To the end, the answer included."""
        rows_R = np.arange(len(self.page.end_B))
        if len(self._block(self.rule.function.body, rows_R)):
            raise NotTogether

    def _block(self, body: Sequence[ast.stmt], rows_R: Ints) -> Ints:
        """The rows that have not returned."""
        for node in body:
            if len(rows_R):
                rows_R = self._statement(node, rows_R)
        return rows_R

    def _statement(self, node: ast.stmt, rows_R: Ints) -> Ints:
        match node:
            case ast.If():
                holds_R = self._asked(node, rows_R)
                parts = [self._block(node.body, rows_R[holds_R]), self._block(node.orelse, rows_R[~holds_R])]
                return np.sort(np.concatenate(parts))
            case ast.While():
                return self._while(node, rows_R)
            case ast.Return(value=ast.expr() as value):
                self._return(node, value, rows_R)
                return rows_R[:0]
            case ast.Assign() | ast.AugAssign() | ast.Expr():
                self._before(node.lineno, read_by(node), rows_R)
                self._act(node, rows_R)
                self._after(changed_by(node), rows_R)
                return rows_R
        raise NotTogether

    def _while(self, node: ast.While, rows_R: Ints) -> Ints:
        through = [rows_R[:0]]
        while len(rows_R):
            self.left -= 1
            if self.left < 0:
                raise NotTogether
            if self.form == "scratchpad" and node.lineno in self.rule.carried:
                self.page.words(rows_R, line_word(node.lineno))
                for name in self.rule.carried[node.lineno]:
                    self.page.value(rows_R, self._column(name, rows_R))
            holds_R = self._asked(node, rows_R)
            through.append(rows_R[~holds_R])
            rows_R = self._block(node.body, rows_R[holds_R])
        return np.sort(np.concatenate(through))

    def _asked(self, node: ast.If | ast.While, rows_R: Ints) -> Bools:
        """Whether a condition holds."""
        if popped_in(node.test):
            raise NotTogether
        self._before(node.lineno, names_in(node.test), rows_R)
        holds_R = self._truth(node.test, rows_R)
        if self.form == "trace":
            self.page.words(rows_R, ASKED)
            self.page.scalars(rows_R, holds_R.astype(np.int64), truth=True)
        return holds_R

    def _return(self, node: ast.Return, value: ast.expr, rows_R: Ints) -> None:
        if not isinstance(value, ast.Name):
            raise NotTogether
        self._before(node.lineno, names_in(node), rows_R)
        self.page.words(rows_R, RETURN)
        self.page.value(rows_R, self._column(value.id, rows_R))

    def _before(self, line: int, names: Sequence[str], rows_R: Ints) -> None:
        if self.form == "trace":
            self.page.words(rows_R, line_word(line))
            self._told(names, rows_R)

    def _after(self, names: Sequence[str], rows_R: Ints) -> None:
        if self.form == "trace":
            self.page.words(rows_R, THEN)
            self._told(names, rows_R)

    def _told(self, names: Sequence[str], rows_R: Ints) -> None:
        for name in names:
            column = self._column(name, rows_R)  # first: a name that nothing was ever given has no word
            self.page.words(rows_R, name_word(name))
            self.page.value(rows_R, column)

    def _act(self, node: ast.stmt, rows_R: Ints) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                size = len(self.page.end_B)
                self._know(name, Lists(np.zeros((size, 4), np.int64), np.zeros(size, np.int64), truth=False), rows_R)
                self._list(name, rows_R).length_B[rows_R] = 0
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, *self._value(value, rows_R), rows_R)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                work = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                self._assign(name, *self._value(work, rows_R), rows_R)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                self._put(name, False, value, rows_R)
            case ast.Expr(value=ast.Call(ast.Attribute(ast.Name(id=name), "insert"), [ast.Constant(value=0), value])):
                self._put(name, True, value, rows_R)
            case _:
                raise NotTogether

    def _assign(self, name: str, value_R: Ints, truth: bool, rows_R: Ints) -> None:
        column = self._know(name, Scalars(np.zeros_like(self.page.end_B), truth), rows_R)
        if not isinstance(column, Scalars) or column.truth != truth:
            raise NotTogether
        column.value_B[rows_R] = value_R

    def _know(self, name: str, new: Column, rows_R: Ints) -> Column:
        """The column of a variable that these rows are about to have; a new one, if none has it yet."""
        self.known.setdefault(name, np.zeros(len(self.page.end_B), np.bool_))[rows_R] = True
        return self.columns.setdefault(name, new)

    def _put(self, name: str, first: bool, node: ast.expr, rows_R: Ints) -> None:
        value_R, truth = self._value(node, rows_R)
        xs = self._list(name, rows_R)
        if xs.truth != truth:
            raise NotTogether
        if int(xs.length_B.max()) == xs.element_BL.shape[1]:
            xs.element_BL = np.concatenate([xs.element_BL, np.zeros_like(xs.element_BL)], axis=1)
        if first:
            xs.element_BL[rows_R, 1:] = xs.element_BL[rows_R, :-1]
            xs.element_BL[rows_R, 0] = value_R
        else:
            xs.element_BL[rows_R, xs.length_B[rows_R]] = value_R
        xs.length_B[rows_R] += 1

    def _value(self, node: ast.expr, rows_R: Ints) -> tuple[Ints, bool]:
        """The numbers of an expression for these rows, and whether they are truth values."""
        match node:
            case ast.Constant(value=int() as value):
                return np.full(len(rows_R), int(value)), isinstance(value, bool)
            case ast.Name(id=name) if isinstance(column := self._column(name, rows_R), Scalars):
                return column.value_B[rows_R], column.truth
            case ast.BinOp(left=left, op=op, right=right):
                (x_R, _), (y_R, _) = self._value(left, rows_R), self._value(right, rows_R)
                if isinstance(op, (ast.FloorDiv, ast.Mod)) and (y_R == 0).any():
                    raise NotTogether
                return ARITHMETIC[type(op)][1](x_R, y_R), False
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._choice(test, body, other, rows_R)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return self._list(name, rows_R).length_B[rows_R], False
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="pop"), args=[] | [ast.Constant(value=0)]):
                return self._pop(self._list(name, rows_R), bool(node.args), rows_R)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return self._truth(node, rows_R).astype(np.int64), True
        raise NotTogether

    def _choice(self, test: ast.expr, body: ast.expr, other: ast.expr, rows_R: Ints) -> tuple[Ints, bool]:
        holds_R = self._truth(test, rows_R)
        value_R, kinds = np.zeros(len(rows_R), np.int64), set()
        for chosen_R, node in ((holds_R, body), (~holds_R, other)):
            if chosen_R.any():
                value_R[chosen_R], truth = self._value(node, rows_R[chosen_R])
                kinds.add(truth)
        if len(kinds) > 1:
            raise NotTogether
        return value_R, kinds.pop()

    def _pop(self, xs: Lists, first: bool, rows_R: Ints) -> tuple[Ints, bool]:
        length_R = xs.length_B[rows_R]
        if not length_R.all():
            raise NotTogether
        value_R = xs.element_BL[rows_R, 0 if first else length_R - 1]
        if first:
            xs.element_BL[rows_R, :-1] = xs.element_BL[rows_R, 1:]
        xs.length_B[rows_R] -= 1
        return value_R, xs.truth

    def _truth(self, node: ast.expr, rows_R: Ints) -> Bools:
        match node:
            case ast.BoolOp(op=op, values=values) if not popped_in(node):  # all parts are looked at: none changes anything
                parts = [self._truth(each, rows_R) for each in values]
                joined: Any = np.any(parts, axis=0) if isinstance(op, ast.Or) else np.all(parts, axis=0)
                return np.asarray(joined, np.bool_)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._truth(operand, rows_R)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, (ast.In, ast.NotIn)):
                compared: Any = COMPARED[type(op)](self._value(left, rows_R)[0], self._value(right, rows_R)[0])
                return np.asarray(compared, np.bool_)
            case ast.Name(id=name) if isinstance(column := self._column(name, rows_R), Lists):
                return column.length_B[rows_R] > 0
        return self._value(node, rows_R)[0].astype(np.bool_)

    def _column(self, name: str, rows_R: Ints) -> Column:
        """A variable that all these rows have."""
        if name not in self.columns or not self.known[name][rows_R].all():
            raise NotTogether
        return self.columns[name]

    def _list(self, name: str, rows_R: Ints) -> Lists:
        column = self._column(name, rows_R)
        if not isinstance(column, Lists):
            raise NotTogether
        return column


def write_many(
    rule: Rule,
    form: str,
    inputs: Sequence[tuple[Any, ...]],
    token: Mapping[str, int],
    marks: tuple[str, str, str],
    pointed: str = "",
) -> tuple[Ints, Ints, Ints]:
    """tokens_BT, where each answer begins and where it ends: `marks` stand before the prompt, before the answer and after it.
    The list `pointed` is told by a pointer in the answer.

    >>> rule = Rule.of("def count(xs):\\n    n = 0\\n    while xs:\\n        n += xs.pop()\\n    return n")
    >>> from lengthlab.rules.wording import SMALL, TRUTH
    >>> words = ("", "<", ":", ">", "return", "[", "]", *SMALL, *TRUTH, "xs:")
    >>> token = {word: number for number, word in enumerate(words)}
    >>> tokens_BT, begin_B, end_B = write_many(rule, "direct", [([2, 3],), ([4],)], token, ("<", ":", ">"))
    >>> [" ".join(words[token] for token in row) for row in tokens_BT]
    ['< xs: [ 2 3 ] : return 5 >', '< xs: [ 4 ] : return 4 > ']
    """
    page = Page(len(inputs), token)
    columns = {name: _together(column) for name, column in zip(rule.parameters, zip(*inputs, strict=True), strict=True)}
    rows_R = np.arange(len(inputs))
    page.words(rows_R, marks[0])
    for name, column in columns.items():
        page.words(rows_R, name_word(name))
        page.value(rows_R, column)
    page.words(rows_R, marks[1])
    begin_B = page.end_B.copy()
    if isinstance(seen := columns.get(pointed), Lists):
        seen.pointed = True
    Many(rule, form, columns, page).run()
    page.words(rows_R, marks[2])
    return np.ascontiguousarray(page.tokens_BT[:, : page.end_B.max()]), begin_B, page.end_B


def _together(values: Sequence[Any]) -> Column:
    """One parameter of all inputs."""
    if not all(isinstance(each, list) for each in values):
        raise NotTogether
    kinds = {type(each) for value in values for each in value}
    if not kinds <= {int} and not kinds <= {bool}:
        raise NotTogether
    length_B = np.array([len(value) for value in values], np.int64)
    element_BL = np.zeros((len(values), max(1, int(length_B.max()))), np.int64)
    inside_BL = np.arange(element_BL.shape[1]) < length_B[:, None]
    element_BL[inside_BL] = [each for value in values for each in value]
    return Lists(element_BL, length_B, truth=kinds == {bool})
