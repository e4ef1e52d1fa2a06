"""A program as a reader wants it: a line for each name, in the signs that the papers use, none wider than the page."""

from __future__ import annotations

import textwrap
from functools import partial

from lengthlab.theory.primitives import (
    And,
    Choice,
    Compare,
    Constant,
    Difference,
    Expression,
    NamedCount,
    NamedPredicate,
    Not,
    Or,
    Periodic,
    Positions,
    Sum,
    Token,
)
from lengthlab.theory.program import Program

WIDTH = 80
VARIABLES = "ijklmn"
"""The position itself, and those that counts inside counts run over."""
GLUE = "\u00a0"
"""A space at which no line is broken."""
LOOSE = (And, Or, Compare, Sum, Difference)
"""What stands in brackets inside something else."""


def shown(program: Program, width: int = WIDTH) -> list[str]:
    """Its lines.

    >>> from lengthlab.theory.primitives import back, count, token
    >>> after_a = back(token("a")).named("AFTER_a")
    >>> for line in shown(Program({"b": after_a, "c": ~after_a & (count(token("a")) > 2)})):
    ...     print(line)
    AFTER_a(i) := ∃[j = i−1] Q_a(j)
    next is b  := AFTER_a(i)
    next is c  := ¬AFTER_a(i) ∧ #[j ≤ i] Q_a(j) > 2
    """
    lines = [(f"{line.name}(i)", written(line.value)) for line in program.lines]
    lines += [(f"next is {word}", written(predicate)) for word, predicate in program.says.items()]
    wide = min(max(len(name) for name, _ in lines), width // 4)
    return [piece for name, body in lines for piece in _folded(f"{name:<{wide}} := ", body, width)]


def written(expression: Expression, depth: int = 0) -> str:
    """An expression in signs.

    >>> written(Periodic(3, 1) | Token("a"))
    'i ≡ 1 (mod 3) ∨ Q_a(i)'
    """
    i = VARIABLES[depth % len(VARIABLES)]
    match expression:
        case Token(word):
            return f"Q_{word}({i})"
        case Periodic(period, remainder):
            return f"{i} ≡ {remainder} (mod {period})"
        case NamedPredicate(name) | NamedCount(name):
            return f"{name}({i})"
        case Constant(number):
            return str(number)
        case Not(part):
            return f"¬{_inside(part, depth)}"
        case And(parts):
            return " ∧ ".join(_inside(part, depth, keep=Compare) for part in parts) or "true"
        case Or(parts):
            return " ∨ ".join(_inside(part, depth, keep=Compare) for part in parts) or "false"
        case Compare(Positions(where, within), "≥", Constant(1)):
            return f"∃[{_range(within, depth)}] {_inside(where, depth + 1)}"
        case Compare(left, sign, right):
            return f"{written(left, depth)} {sign} {written(right, depth)}"
        case Positions(where, within):
            return f"#[{_range(within, depth)}] {_inside(where, depth + 1)}"
        case Sum(left, right):
            return f"{written(left, depth)} + {_inside(right, depth)}"
        case Difference(left, right):
            return f"{written(left, depth)} − {_inside(right, depth)}"
        case Choice(where, then, otherwise):
            return f"({written(where, depth)} ? {written(then, depth)} : {written(otherwise, depth)})"
    raise TypeError(f"{expression!r} is no part of a program")


def _inside(part: Expression, depth: int, keep: type = type(None)) -> str:
    """A part of something larger, in brackets where it could be misread."""
    text = written(part, depth)
    single = isinstance(part, (And, Or)) and len(part.parts) < 2
    return f"({text})" if isinstance(part, LOOSE) and not isinstance(part, keep) and not single else text


def _range(within: tuple[int, int] | None, depth: int) -> str:
    """Over which positions something is counted."""
    i, j = VARIABLES[depth % len(VARIABLES)], VARIABLES[(depth + 1) % len(VARIABLES)]
    if within is None:
        return f"{j} ≤ {i}"
    near, far = within
    if near == far:
        return f"{j} = {i}−{near}" if near else f"{j} = {i}"
    return f"{i}−{far} ≤ {j} ≤ {i}−{near}" if near else f"{i}−{far} ≤ {j} ≤ {i}"


def _folded(head: str, body: str, width: int) -> list[str]:
    """In several lines where it is too wide, broken outside of brackets if that is enough."""
    hanging = " " * min(len(head), width // 2)
    fold = partial(textwrap.wrap, width=width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    kept = [line.replace(GLUE, " ") for line in fold(head.replace(" ", GLUE) + _glued(body))]
    return kept if max(map(len, kept)) <= width else fold(head + body)


def _glued(text: str) -> str:
    """With spaces that do not break inside brackets, and before a sign that joins.

    >>> _glued("(a ∧ b) ∨ c").replace(GLUE, "~")
    '(a~∧~b)~∨ c'
    """
    depth, glued = 0, ""
    for at, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        joins = text[at + 1 : at + 2] in ("∧", "∨") or text[at - 1 : at] in ("]", "#", "≥", "≤", "=", ">", "<", "+", "−")
        glued += GLUE if sign == " " and (depth or joins) else sign
    return glued
