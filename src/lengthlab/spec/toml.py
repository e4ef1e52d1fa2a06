"""A TOML value as what a parameter wants. A name stands for something registered, or for something in one's own file
(`my_models.py:three_lstms`).

What a table means is decided by the type of the parameter that it goes to, never by the parameter's name.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from torch import nn

from lengthlab.errors import LabError, a_kind, cut, explain, nearest, require
from lengthlab.models.model import AnyModel
from lengthlab.models.module import VOCABULARY, Module, makes_module, needs_vocabulary
from lengthlab.registry import kind_of, look_up, registered, word_for
from lengthlab.rules import Rule
from lengthlab.spec import source
from lengthlab.spec.hints import argument_hints, fits, is_protocol, item_hint, members_of, missing_of, words_for
from lengthlab.spec.schedule import Epochs, Mastered

SEEDS = {"seed", "seeds"}
"""Whoever gives one of them means it for both."""


def make(kind: Any, value: Any, folder: Path = Path(), where: str = "") -> Any:
    """Something of that kind: `"lstm"`, `{name = "lstm", width = 64}`, `"my_models.py:three_lstms"`.

    A thing that has a name of its own says what it is by `kind` instead: `{kind = "named", name = "attention", part = ...}`.
    """
    where = where or word_for(kind)
    table = {"name": value} if isinstance(value, str) else value
    named = isinstance(table, dict) and isinstance(table.get("kind", table.get("name")), str)
    require(named, f"{where} must be a name, or a table with a 'name', not {value!r}")
    key = "kind" if "kind" in table else "name"
    name = table[key]
    maker = source.load_reference(name, folder) if source.is_reference(name) else look_up(kind, name)
    made_already = isinstance(maker, nn.Module)
    require(not made_already, f"{where}: {name} is a module that is made already: name its class, or a function that makes it")
    if not callable(maker):
        raise LabError(f"{where}: {name} is {a_kind(maker)}, and has to be what makes a {word_for(kind)}")
    given = {word: item for word, item in table.items() if word != key}
    made = _call(maker, given, where, name, folder, kind is AnyModel and makes_module(maker))
    lacks = f": it lacks {' and '.join(map(repr, missing_of(made, kind)))}" if missing_of(made, kind) else ""
    if word_for(kind) == "task":
        lacks = ": derive its class from lengthlab.tasks.Task"
    require(fits(made, kind), f"{name} made {a_kind(made)}, which is not a {word_for(kind)}{lacks}")
    return made


def _call(maker: Callable[..., Any], given: Mapping[str, Any], where: str, name: str, folder: Path, plain: bool = False) -> Any:
    """What a maker makes of a table; `plain` if that is an nn.Module."""
    taken = parameters(maker)
    loose = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(maker).parameters.values()) and not taken
    hints = {word: hint for word, hint in taken.items() if not plain or word not in VOCABULARY}
    for word in given:
        if word not in hints and not loose:  # not `require`: to look for what is near takes its time
            raise LabError(f"unknown key '{where}.{word}' for {name}; {nearest(word, hints or ['no key'])}")
    signed = inspect.signature(maker).parameters
    arguments = {
        word: read(item, hints.get(word, Any), f"{where}.{word}", folder, signed[word].default if word in signed else None)
        for word, item in given.items()
    }
    if "name" in hints and "name" not in arguments and "name" in _needed(maker):
        arguments["name"] = name.rpartition(":")[2]
    if not plain or needs_vocabulary(maker):
        lacking = [word for word in _needed(maker) if word in hints and word not in arguments]
        written = ", ".join(f"{word} = …" for word in lacking)
        require(not lacking, f"{where} '{name}' needs {' and '.join(map(repr, lacking))}: write {written}")
    try:
        return Module(maker, arguments) if plain else maker(**arguments)
    except LabError as error:
        told = str(error)
        raise LabError(told if told.startswith(where) or "." in where else f"{where}: {told}" if plain else told) from None
    except Exception as error:  # a user's own maker
        raise LabError(f"{where} '{name}' cannot be made: {explain(error)}") from error


def _needed(maker: Callable[..., Any]) -> list[str]:
    """What it is not made without."""
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    taken = inspect.signature(maker).parameters.items()
    return [word for word, each in taken if each.default is each.empty and each.kind not in loose]


def parameters(maker: Callable[..., Any]) -> dict[str, Any]:
    """Names and types of what a maker takes, those of `**choices: Unpack[...]` included.

    >>> from lengthlab.models import transformer
    >>> {"width", "positions", "scores"} <= set(parameters(transformer))
    True
    """
    hints = argument_hints(maker)
    taken: dict[str, Any] = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            for choices in get_args(hints.get(name)):
                taken |= get_type_hints(choices)
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            taken[name] = hints.get(name, Any)
    return taken


def read(value: Any, hint: Any, where: str, folder: Path, default: Any = None) -> Any:
    """A TOML value as what a parameter of that type wants; `default` is what it has otherwise."""
    members = [each for each in members_of(hint) or (hint,) if each is not NoneType]
    kinds = [kind for kind in map(kind_of, members) if kind is not None]
    if Epochs in members and (Mastered not in members or not isinstance(value, dict)):
        return _duration(value, where, members)
    if isinstance(value, dict):
        return _table(value, members, kinds, where, folder, default)
    if isinstance(value, list):
        return _list(value, members, where, folder)
    if isinstance(value, str) and Rule in members:  # a file with a rule is read, and not run as others are
        return Rule.from_reference(value, folder) if source.is_reference(value) else value
    if kinds and not any(fits(value, each) for each in members if each is not str):
        data = [each for each in members if is_dataclass(each)]
        require(
            not data or isinstance(value, str), f"{where} must be {_example(data[0]) if data else ''}, not {cut(repr(value))}"
        )
        return make(kinds[0], value, folder, where)
    if isinstance(value, str) and source.is_reference(value) and any(map(_is_own, members)):
        return make(next(filter(_is_own, members)), value, folder, where)
    for each in members:
        if fits(value, each):
            return float(value) if each is float else value
    raise LabError(f"{where} must be {_wanted(members)}, not {cut(repr(value))}")


def _table(value: dict[str, Any], members: list[Any], kinds: list[Any], where: str, folder: Path, default: Any) -> Any:
    """A table is something with a name, the fields of a dataclass (of the default's, where there is a choice), or a table of
    values.
    """
    named = "name" in value or "kind" in value
    data: list[Any] = [each for each in members if is_dataclass(each) and _can_be_made(each)]
    if not data and kind_of(type(default)) in kinds:
        data = [type(default)]
    mappings = [each for each in members if isinstance(get_origin(each), type) and issubclass(get_origin(each), Mapping)]
    own = [each for each in members if _is_own(each)]
    if named and kinds:
        return make(kinds[0], value, folder, where)
    if named and own and source.is_reference(str(value.get("kind", value.get("name")))):
        return make(own[0], value, folder, where)
    if data:
        return _fields(max(data, key=lambda kind: _likeness(kind, value)), value, where, folder)
    if mappings:
        return {key: read(item, item_hint(mappings[0]), f"{where}.{key}", folder) for key, item in value.items()}
    if kinds:
        return make(kinds[0], value, folder, where)
    require(Any in members or dict in members, f"{where} must be {_wanted(members)}, not {value!r}")
    return value


def _can_be_made(kind: Any) -> bool:
    """Whether a dataclass is not just what several others have in common."""
    return kind_of(kind) is None or kind in registered(kind_of(kind)).values()


def _likeness(kind: Any, table: Mapping[str, Any]) -> tuple[int, bool]:
    """How well a table fits a dataclass: the fields it names, and whether it names all that have to be."""
    needed = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}
    return len({each.name for each in fields(kind)} & set(table)), needed <= set(table)


def _fields(kind: Any, value: dict[str, Any], where: str, folder: Path) -> Any:
    """A table without a name, where a dataclass is wanted."""
    try:
        return _call(kind, value, where, kind.__name__, folder)
    except LabError as error:
        said = str(error)
        raise LabError(said if where in said else f"{where}: {said}") from None


def _list(value: list[Any], members: list[Any], where: str, folder: Path) -> Any:
    lists = [each for each in members if get_origin(each) in (tuple, list, Sequence) or each in (tuple, list)]
    if not lists:
        kinds = [kind for kind in map(kind_of, members) if kind is not None]
        require(not kinds, f"{where} must be a name, or a table with a 'name', not {value!r}")
        require(Any in members, f"{where} must be {_wanted(members)}, not {value!r}")
        return value
    items = [read(item, item_hint(lists[0], number), where, folder) for number, item in enumerate(value)]
    return tuple(items) if lists[0] is tuple or get_origin(lists[0]) is tuple else items


def _duration(value: Any, where: str, members: list[Any]) -> Any:
    """Steps, or `"500 epochs"`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    words = str(value).split()
    try:
        require(len(words) == 2 and words[1] in ("epochs", "epoch"), "")
        return Epochs(float(words[0]))
    except (LabError, ValueError):
        until = ', "500 epochs" or { question = "modulo" }' if Mastered in members else ' or "500 epochs"'
        kinds = f"a number of steps{until}"
        raise LabError(f"{where} must be {kinds}, not {value!r}") from None


def _is_own(hint: Any) -> bool:
    """A type that a user may have written for what a user may have written."""
    return isinstance(hint, type) and (is_protocol(hint) or is_dataclass(hint) or hint.__module__ != "builtins")


def _wanted(members: list[Any]) -> str:
    """What a value has to be, as one writes it in TOML."""
    written = {tuple: "a list", list: "a list", Sequence: "a list", Mapping: "a table", dict: "a table"}
    listed = [written.get(get_origin(each)) or words_for(each) for each in members if each is not str]
    return " or ".join(dict.fromkeys(listed)) if listed else "a text in quotes"


def _example(kind: Any) -> str:
    return f"a table with {', '.join(each.name for each in fields(kind))}"


def chosen_table(name: str, choices: Sequence[str]) -> dict[str, Any]:
    """The table of something that is named on the command line, with what it is to be made with.

    >>> chosen_table("lstm", ["width=64"])
    {'name': 'lstm', 'width': 64}
    """
    table: dict[str, Any] = {"name": name}
    for choice in choices:
        override_value(table, choice)
    return table


def made_otherwise(made: Any, choices: Sequence[str], where: str = "task") -> Any:
    """A dataclass with other values of its fields, as they are named on the command line; `where` is what it is called there.

    >>> from lengthlab.tasks import ModuloRecall
    >>> made_otherwise(ModuloRecall(), ["keys=40"]).keys
    40
    """
    given: dict[str, Any] = {}
    for choice in choices:
        override_value(given, choice)
    hints = parameters(type(made))
    for word in given:
        require(word in hints, f"unknown key '{where}.{word}'; {nearest(word, hints or ['no key'])}")
    values = {word: read(item, hints[word], f"{where}.{word}", Path(), getattr(made, word)) for word, item in given.items()}
    return replace(made, **values)


def override_value(table: dict[str, Any], override: str) -> None:
    """Put one `key.key=value` into a run's table; what it says is checked where the table is read."""
    path, equals, text = override.partition("=")
    require(bool(equals and path), f"--set {override}: write it as key=value, like task.modulus=7")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
        require(len(text.splitlines()) <= 1, f"--set {override}: give each key a --set of its own")
    except (tomllib.TOMLDecodeError, RecursionError):
        value = text
    *outer, last = path.strip().split(".")
    for key in outer:
        inner = table.get(key, {})
        named = isinstance(inner, str) and key not in ("name", "kind")
        require(named or isinstance(inner, dict), f"--set {override}: {key} is {inner!r}, which has no keys")
        table[key] = {"name": inner} if named else dict(inner)
        table = table[key]
    for key in SEEDS if not outer and last in SEEDS else ():
        table.pop(key, None)
    table[last] = value
