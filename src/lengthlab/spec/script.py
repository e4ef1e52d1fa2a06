"""Of a script, the definitions that a run needs: a script that trains is not run again where its classes are needed.

What travels with a run is the class and what it refers to, transitively: imports, definitions, assignments. What the script
does besides, training for one, stays behind.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from lengthlab.errors import require


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a file: its text, the names it gives a value, changes or needs."""

    text: str
    gives: frozenset[str]
    changes: frozenset[str]
    needs: frozenset[str]
    imports: bool
    always: bool
    """Whatever the file is needed for."""


def definitions(text: str, file: str, names: Collection[str]) -> str:
    """The part of a script that makes these names.

    >>> script = "import os, re\\nSIZE = 3\\ndef size(): return SIZE\\nclass Net:\\n    width = size()\\nprint(Net().width)\\n"
    >>> print(definitions(script, "net.py", ["Net"]), end="")
    SIZE = 3
    def size(): return SIZE
    class Net:
        width = size()
    """
    statements = _statements(text)
    needed, given = set(names), {name for statement in statements for name in statement.gives}
    for name in names:
        require(name in given, f"{name} is not defined in {file}: {TYPED_IN}")
    while True:
        kept = [statement for statement in statements if _is_kept(statement, needed, statements)]
        more = {name for statement in kept for name in statement.needs} & given
        if more <= needed:
            return "".join(f"{statement.text}\n" for statement in kept)
        needed |= more


TYPED_IN = "what was typed into a notebook, a shell or a command goes into a .py file first, to be imported from there"


def _is_kept(statement: Statement, needed: set[str], statements: Collection[Statement]) -> bool:
    if statement.always or statement.gives & needed:
        return True
    changed = statement.changes & needed
    return any(name in other.gives and not other.imports for name in changed for other in statements)


@lru_cache(maxsize=16)
def _statements(text: str) -> tuple[Statement, ...]:
    lines = text.split("\n")
    return tuple(_statement(node, lines) for node in ast.parse(text).body if not _is_guard(node))


def _statement(node: ast.stmt, lines: list[str]) -> Statement:
    decorators = getattr(node, "decorator_list", [])
    text = "\n".join(lines[min([node.lineno, *(each.lineno for each in decorators)]) - 1 : node.end_lineno])
    if node.col_offset or lines[node.lineno - 1].count(";"):  # several in one line
        text = ast.unparse(node)
    top = symtable.symtable(text, "<statement>", "exec")
    gives = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inside = {symbol.get_name() for table in _inside(top) for symbol in table.get_symbols() if symbol.is_global()}
    imports = isinstance(node, (ast.Import, ast.ImportFrom))
    always = isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*")
    needs = read | inside | _in_texts(node)
    return Statement(text, frozenset(gives), frozenset(_changed(node)), frozenset(needs), imports, always)


def _inside(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inside(child)


def _in_texts(node: ast.stmt) -> set[str]:
    """Names in type hints that are written in quotes."""
    hints = [each.annotation for each in ast.walk(node) if isinstance(each, (ast.AnnAssign, ast.arg))]
    hints += [each.returns for each in ast.walk(node) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found: set[str] = set()
    for text in (each.value for hint in hints if hint for each in ast.walk(hint) if isinstance(each, ast.Constant)):
        try:
            found |= {each.id for each in ast.walk(ast.parse(str(text), mode="eval")) if isinstance(each, ast.Name)}
        except SyntaxError:
            continue
    return found


def _changed(node: ast.stmt) -> set[str]:
    """Names of what a statement changes inside: `TABLE["a"] = 1`, `TABLE.append(2)`."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        targets = [node.value.func]
    found = set()
    for target in targets:
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


def _is_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
