"""A rule: a small Python function over lists, read as text and carried out line by line. It is never run by Python itself."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any

from lengthlab.errors import LabError, nearest, require
from lengthlab.rules.expression import Frame
from lengthlab.rules.machine import Machine
from lengthlab.rules.step import Trace, kept
from lengthlab.rules.subset import blocks, check
from lengthlab.text_file import read_text

STEPS = 10_000
"""A rule is followed no further: it may be one that does not end."""


@dataclass(frozen=True)
class Rule:
    """`source` is the text of one function; which Python it may be is said in subset.py. Lines count from its `def`.
    `types` are those of its parameters, as they were written, "" where none was; they are no part of what is told.

    >>> rule = Rule.of("def double(xs):\\n    ys = []\\n    while xs:\\n        ys.append(2 * xs.pop(0))\\n    return ys")
    >>> trace = rule.trace([3, 4])
    >>> trace.answer, trace.turns
    ((6, 8), {3: 2})
    >>> trace.steps[2]
    Step(line=4, kind='set', before=(('ys', ()), ('xs', (3, 4))), after=(('ys', (6,)), ('xs', (4,))), value=None, notes=())
    """

    name: str
    source: str
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self.function)
        require(
            len(self.types) in (0, len(self.parameters)),
            f"rule '{self.name}' has {len(self.parameters)} parameters, and {len(self.types)} types",
        )

    @classmethod
    def of(cls, source: str, name: str | None = None) -> Rule:
        """The function of that name in a text, or the only one; what else is there is not looked at."""
        text = dedent(source)
        functions = {each.name: each for each in _parsed(text).body if isinstance(each, ast.FunctionDef)}
        require(bool(functions), "the text of a rule has no function: a rule is one, def name(xs): …")
        if name is None:
            require(len(functions) == 1, f"the text has several functions: say which of {', '.join(functions)}")
            name = next(iter(functions))
        require(name in functions, f"no function is called '{name}'; {nearest(name, functions)}")
        types = tuple(_type(each) for each in functions[name].args.args)
        return cls(name, _lines(functions[name], text), types)

    @classmethod
    def from_reference(cls, reference: str, folder: Path = Path()) -> Rule:
        """What `my_rule.py:name` names, the file looked up from a folder; of a file with one function, its name is enough."""
        file, colon, name = reference.rpartition(":")
        return cls.from_file(folder / file, name) if colon else cls.from_file(folder / reference)

    @classmethod
    def from_file(cls, path: Path, name: str | None = None) -> Rule:
        """A function of a file, which is read and not imported."""
        try:
            return cls.of(read_text(path), name)
        except LabError as error:
            raise LabError(f"{path}: {error}" if not str(error).startswith(str(path)) else str(error)) from None

    @cached_property
    def function(self) -> ast.FunctionDef:
        """Its syntax tree."""
        found = _parsed(self.source).body
        if len(found) != 1 or not isinstance(found[0], ast.FunctionDef) or found[0].name != self.name:
            raise LabError(f"the text of rule '{self.name}' is not that of one function of this name")
        return found[0]

    @cached_property
    def _machine(self) -> Machine:
        return Machine(self.function, self.lines)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        return tuple(self.source.splitlines())

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(each.arg for each in self.function.args.args)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its variables, as they come up."""
        return tuple(dict.fromkeys((*self.parameters, *_assigned(self.function.body))))

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """The lines of its loops."""
        return tuple(sorted(each.lineno for each in ast.walk(self.function) if isinstance(each, (ast.While, ast.For))))

    @cached_property
    def carried(self) -> Mapping[int, tuple[str, ...]]:
        """What each loop that is in no other hands from turn to turn: variables that are there before it, and that it changes.

        >>> Rule.of("def f(xs):\\n    n = 0\\n    for x in xs:\\n        n += x\\n    return n").carried
        {3: ('n',)}
        """
        found = {}
        known = list(self.parameters)
        for top in self.function.body:
            for loop in _outer_loops(top):
                changed = _assigned(loop.body)
                there = [*known, *_assigned(_before(top, loop))]
                found[loop.lineno] = tuple(name for name in dict.fromkeys(there) if name in changed)
            known += _assigned([top])
        return found

    def trace(self, *inputs: Any, limit: int = STEPS, notes: bool = False) -> Trace:
        """Every step on these inputs, which are not changed: lists, whole numbers, texts, truth values. With `notes`, sums
        are written out.
        """
        require(
            len(inputs) == len(self.parameters), f"rule '{self.name}' takes {len(self.parameters)} inputs, not {len(inputs)}"
        )
        variables = dict(zip(self.parameters, map(_input, inputs), strict=True))
        given = tuple((name, kept(value)) for name, value in variables.items())
        frame = Frame(variables, limit, [] if notes else None)
        self._machine.run(frame)
        return Trace(given, tuple(frame.steps))


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise LabError(f"the text of a rule is not Python: {getattr(error, 'msg', error)}{line}") from None


def _lines(function: ast.FunctionDef, text: str) -> str:
    """The lines of a function, without comments on lines of their own, empty ones, types and a text at its top."""
    body = function.body
    told = body[0] if ast.get_docstring(function, clean=False) is not None else None
    require(told is None or len(body) > 1, f"rule '{function.name}' does nothing")
    lines = dict(enumerate(text.splitlines()[: function.end_lineno], start=1))
    untyped = {function.lineno: f"def {function.name}({ast.unparse(_bare(function.args))}):"}
    for each in ast.walk(function):
        if isinstance(each, ast.AnnAssign) and each.value is not None:
            indent = lines[each.lineno][: each.col_offset]
            untyped[each.lineno] = f"{indent}{ast.unparse(each.target)} = {ast.unparse(each.value)}"
    head = range(function.lineno + 1, body[0].lineno)  # of a definition that takes several lines
    skipped = {*head, *(range(told.lineno, (told.end_lineno or told.lineno) + 1) if told else ())}
    chosen = [number for number in lines if number >= function.lineno and number not in skipped]
    written = [untyped.get(number, lines[number]).rstrip() for number in chosen]
    return "\n".join(line for line in written if line and not line.lstrip().startswith("#"))


def _type(parameter: ast.arg) -> str:
    """What stands behind the colon of a parameter, in quotes or without."""
    match parameter.annotation:
        case None:
            return ""
        case ast.Constant(value=str() as text):
            return text
        case other:
            return ast.unparse(other)


def _bare(arguments: ast.arguments) -> ast.arguments:
    """Without types."""
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return arguments


def _assigned(body: Sequence[ast.AST]) -> list[str]:
    """The variables that statements change, as they come up."""
    found: list[ast.Name] = []
    for each in (inner for top in body for inner in ast.walk(top)):
        match each:
            case ast.Name(ctx=ast.Store()):
                found.append(each)
            case ast.Subscript(value=ast.Name() as base, ctx=ast.Store()) | ast.Attribute(value=ast.Name() as base):
                found.append(base)
    ordered = sorted(found, key=lambda each: (each.lineno, each.col_offset))
    return list(dict.fromkeys(each.id for each in ordered))


def _outer_loops(node: ast.AST) -> list[ast.While | ast.For]:
    if isinstance(node, (ast.While, ast.For)):
        return [node]
    return [loop for inner in blocks(node) for loop in _outer_loops(inner)]


def _before(top: ast.AST, loop: ast.stmt) -> list[ast.stmt]:
    """The statements inside another that stand before a loop in it."""
    inner = [each for each in ast.walk(top) if isinstance(each, ast.stmt) and each is not top]
    return [each for each in inner if (each.end_lineno or each.lineno) < loop.lineno]


def _input(value: Any) -> Any:
    """A copy of what a rule is given, if it is what a rule can work on."""
    flat = list(value) if isinstance(value, (list, tuple)) else value
    elements = flat if isinstance(flat, list) else [flat]
    fits = all(isinstance(each, (int, str)) for each in elements)
    require(fits, f"a rule works on whole numbers, texts, True, False and lists of them, not on {value!r}")
    return flat
