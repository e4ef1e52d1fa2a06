"""Of a script, the definitions that a run needs: a script that trains is not run again where its classes are needed.

What travels with a run is the class and what it refers to, transitively: imports, definitions, assignments. What the script
does besides, training for one, stays behind.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterator, Mapping
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


def check_whole(text: str, file: str, values: Mapping[str, object]) -> None:
    """Refuse a part of a script that does not make what the script made: a table that is filled where nobody can read it, by
    `fill(TABLE)` say, or a value that depends on how the script was called.
    """
    statements = _statements(text)
    touched = [name for statement in statements for name in statement.gives | statement.changes]
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for name in [target.id for target in targets if isinstance(target, ast.Name) and touched.count(target.id) == 1]:
            require(
                _is_written(node, values.get(name)),
                f"{name} is changed where {file} is run, and its text does not show how: write out what is in it",
            )
        attributes = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        outside = ", ".join(sorted(attributes & {"sys.argv", "os.environ"}))
        require(not outside, f"what is trained depends on {outside}, which the run does not know: make it a field ({file})")


def _is_written(node: ast.stmt, value: object) -> bool:
    """Whether an assignment that is written out gives this value; one that is computed may."""
    try:
        return repr(ast.literal_eval(getattr(node, "value", None) or ast.Name("computed"))) == repr(value)
    except (ValueError, TypeError):
        return True


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


def _changed(node: ast.AST) -> set[str]:
    """Names of what a statement changes inside: `TABLE["a"] = 1`, `TABLE.append(2)`, alone or in a loop or condition."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()  # nothing is changed before somebody calls it
    blocks = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler))]
    found = {name for block in blocks for name in _changed(block)}
    targets: list[ast.expr] = node.targets if isinstance(node, ast.Delete) else []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        targets = [node.value.func]
    for target in targets:
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


def _is_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
