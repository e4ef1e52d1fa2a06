"""What can be chosen by name, read from the text of the rooms that register it: nobody waits for torch to see a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lengthlab

SENTENCE = re.compile(r".*?[.](?= [A-Z“`]|$)|.*")
TABLE = "NAMES"
"""What a room registers, by kind: a dictionary of dictionaries that is written out."""


def names_in(room: str, kind: str) -> dict[str, str]:
    """The names of a kind that a room registers, each with the first line of what its docstring says.

    >>> names_in("tasks", "Task")["modulo"]
    "The same sequences with the state-tracking question alone (the paper's Table 2)."
    """
    tree = _tree(f"{lengthlab.__name__}.{room}")
    tables = {name: value for name, value in _assigned(tree) if isinstance(value, ast.Dict)}
    kinds = {ast.unparse(key): value for key, value in zip(tables[TABLE].keys, tables[TABLE].values, strict=True) if key}
    makers = dict(_written(kinds[kind], tables))
    places = {(alias.asname or alias.name): (node.module, alias.name) for node in _imports(tree) for alias in node.names}
    return {name: _about(*places[maker]) for name, maker in makers.items()}


def _written(table: ast.expr, tables: dict[str, ast.Dict]) -> Iterator[tuple[str, str]]:
    """Name and maker of each line of a table; `**OTHER` stands for the lines of another."""
    assert isinstance(table, ast.Dict)
    for key, value in zip(table.keys, table.values, strict=True):
        if key is None:
            yield from _written(tables[ast.unparse(value)], tables)
        else:
            yield ast.literal_eval(key), ast.unparse(value)


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target), node.value


def _imports(tree: ast.Module) -> list[ast.ImportFrom]:
    return [node for node in tree.body if isinstance(node, ast.ImportFrom)]


def _about(module: str | None, name: str) -> str:
    """The first sentence of the docstring of a class or function."""
    for node in _tree(str(module)).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            paragraph = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            return SENTENCE.match(paragraph)[0]  # type: ignore[index]
    return ""


@cache
def _tree(module: str) -> ast.Module:
    path = Path(lengthlab.__file__).parent.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
