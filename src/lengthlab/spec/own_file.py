"""Whether a user's file can travel with a run: it is what this process loaded, and it needs no file beside it."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib.machinery import SourceFileLoader
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from lengthlab.errors import LabError

PACKAGES = [Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")]
"""Where packages are installed."""


def check_unedited(module: ModuleType, text: str) -> None:
    """Refuse a file that was edited after it was loaded: its text would not be what is trained."""
    loader = getattr(module, "__loader__", None)
    if type(loader) is not SourceFileLoader:  # one that rewrites what it loads, as that of pytest
        return
    compiled = compile(text, str(module.__file__), "exec", dont_inherit=True)
    if _is_recompiled(module) or _functions_differ(module, compiled) or _constants_differ(module, ast.parse(text)):
        raise LabError(f"{Path(str(module.__file__)).name} was edited after it was loaded: start this program again")


def check_alone(file: str, text: str, path: Path | None) -> None:
    """Refuse a file that imports one beside it, which would not travel with the run."""
    what = f"{file} is kept with the run and has to stand alone"
    for name, line in _imported(text):
        if name == ".":
            raise LabError(f"{what}, but has a relative import in line {line}: import what is installed, or put it into {file}")
        if name not in sys.stdlib_module_names and (home := _home_of(name)) and not _is_installed(name, home):
            beside = "a file beside it" if _is_beside(home, path) else "a file of your own"
            raise LabError(f"{what}, but imports '{name}', {beside}: put what it needs into {file}, or install it")


def _is_recompiled(module: ModuleType) -> bool:
    """Whether the file is not the one that Python compiled for its cache when it was imported."""
    cached = getattr(module, "__cached__", None)
    if not cached or sys.dont_write_bytecode or not os.access(Path(cached).parent, os.W_OK):
        return False  # then an old one may lie there that nobody replaced
    try:
        head, stat = Path(cached).read_bytes()[:16], Path(str(module.__file__)).stat()
    except OSError:
        return False
    by_time = int.from_bytes(head[4:8], "little") == 0
    seen = int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")
    return by_time and seen != (int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)


def _functions_differ(module: ModuleType, compiled: CodeType) -> bool:
    """Whether a function of the module is not one of the text."""
    written: dict[str, list[CodeType]] = {}
    for code in _codes(compiled):
        written.setdefault(code.co_qualname, []).append(code)
    for function in _functions(vars(module), module.__name__):
        code = function.__code__
        if code.co_filename == module.__file__ and code not in written.get(code.co_qualname, []):
            return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _functions(names: dict[str, object], module: str) -> Iterator[FunctionType]:
    """Those of a module or class, methods and properties included."""
    for value in list(names.values()):
        if isinstance(value, type):
            if value.__module__ == module and "<locals>" not in value.__qualname__:
                yield from _functions(dict(vars(value)), module)
            continue
        wrapped = value.fget if isinstance(value, property) else value.func if isinstance(value, cached_property) else value
        wrapped = unwrap(getattr(wrapped, "__func__", wrapped))  # type: ignore[arg-type]
        if isinstance(wrapped, FunctionType) and wrapped.__module__ == module:
            yield wrapped


def _constants_differ(module: ModuleType, tree: ast.Module) -> bool:
    """Whether a name that the text gives a plain value, once and at the top of the file or of a class, has another."""
    given = [each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    places: list[tuple[list[ast.stmt], object]] = [(tree.body, module)]
    places += [(each.body, vars(module).get(each.name)) for each in tree.body if isinstance(each, ast.ClassDef)]
    for body, holder in places:
        for name, written in _constants(body):
            held = getattr(holder, "__dict__", {})
            # An enumeration, or a class with slots, holds something else under that name than its text gives.
            plain = name in held and given.count(name) == 1 and type(held[name]) is type(written)
            if plain and repr(held[name]) != repr(written):
                return True
    return False


def _constants(body: list[ast.stmt]) -> Iterator[tuple[str, object]]:
    """Names and what they are given, where that is written out."""
    for each in body:
        target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
        if isinstance(target, ast.Name) and isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value:
            with suppress(ValueError, TypeError):  # what is computed, or may have been changed since, says nothing
                value = ast.literal_eval(each.value)
                hash(value)
                yield target.id, value


def _imported(text: str) -> Iterator[tuple[str, int]]:
    """The packages that a file imports when it runs, and where; a relative import as `.`"""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else str(node.module).split(".")[0], node.lineno
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            waiting += ast.iter_child_nodes(node)


def _home_of(name: str) -> Path | None:
    """The folder in which this process finds a package; None where it finds none, or none that is a file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    inside = list(spec.submodule_search_locations or []) if spec else []
    if spec is None or (not inside and (not spec.origin or not Path(spec.origin).exists())):
        return None
    return (Path(inside[0]) if inside else Path(str(spec.origin))).parent.resolve()


def _is_beside(home: Path, path: Path | None) -> bool:
    """Whether that is the folder of the file, of the script that runs, or of the process."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    beside = [Path(), *(Path(each).parent for each in (path, script) if each)]
    return home in {folder.resolve() for folder in beside}


@lru_cache(maxsize=64)
def _is_installed(name: str, home: Path) -> bool:
    """Whether any process would find a package, wherever it is started. Outside the usual homes (a checkout, say) only another
    process knows.
    """
    if home in PACKAGES:
        return True
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([sys.executable, "-P", "-c", code], cwd="/", capture_output=True).returncode == 0
