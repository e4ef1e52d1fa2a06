"""Tasks, models and schedules to JSON and back. All of them are frozen dataclasses, so one rule serves all.

A dataclass becomes `{"kind": ..., field: ...}`. The kind is the class's name in kebab case for what is built in, and
`FILE.py:CLASS` for a user's own class, whose file then goes along as text. A class or function itself is of kind `code`.
A field that was added later says so (`metadata={"added": "0.2"}`) and is left out where it has its default: older runs keep
their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import FunctionType
from typing import Any

import lengthlab.models
import lengthlab.spec.optimizer
import lengthlab.spec.schedule
import lengthlab.tasks  # noqa: F401  # whoever is imported here has registered what it holds
from lengthlab.errors import LabError, nearest, require
from lengthlab.registry import built_in, is_ours, kebab
from lengthlab.spec import source
from lengthlab.spec.source import Files, Sources

Json = dict[str, Any]
CODE = "code"


def to_json(value: Any, sources: Sources) -> Any:
    """Plain data for `value`; every user's file it needs is noted in `sources`.

    >>> from lengthlab.models import Lstm
    >>> to_json(Lstm(), Sources())
    {'kind': 'lstm', 'layers': 1}
    """
    if is_dataclass(value) and not isinstance(value, type):
        items = fields_to_json(value, sources)
        name = type(value).__name__
        require("kind" not in items, f"a field of {name} is named 'kind', which stands for the class: rename it")
        return {"kind": _kind(type(value), sources), **items}
    if isinstance(value, (type, FunctionType)):
        return {"kind": CODE, "name": _reference(value, sources)}
    if isinstance(value, Mapping):
        bad = [key for key in value if not isinstance(key, str) or key == "kind"]
        require(not bad, f"a table in a run has texts for keys, and none of them is 'kind': {bad[:1]}")
        return {key: to_json(item, sources) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, sources) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise LabError(f"{value!r} cannot be part of a run: use frozen dataclasses, numbers, strings, tuples and dicts of them")


def fields_to_json(value: Any, sources: Sources) -> Json:
    """The fields of a dataclass, but those that came later and have their default."""
    kept = [field.name for field in fields(value) if field.init and not _is_default(value, field)]
    return {name: to_json(getattr(value, name), sources) for name in kept}


def from_json(data: Any, files: Files) -> Any:
    """The value that `to_json` made this of.

    >>> from_json({'kind': 'lstm', 'layers': 1}, {})
    Lstm(layers=1)
    """
    if isinstance(data, list):
        return tuple(from_json(item, files) for item in data)
    if not isinstance(data, dict):
        return data
    if data.get("kind") == CODE:
        return _named(data["name"], files)
    items = {key: from_json(item, files) for key, item in data.items() if key != "kind"}
    if "kind" not in data:
        return items
    kind = _named(data["kind"], files)
    require(isinstance(kind, type) and is_dataclass(kind), f"'{data['kind']}' is no dataclass, and a run is made of those")
    try:
        return kind(**items)
    except TypeError as error:
        raise LabError(f"a '{data['kind']}' cannot be made of {sorted(items)}: {error}") from None


def _is_default(value: object, field: Field[Any]) -> bool:
    """Whether a field that came later has its default."""
    if "added" not in field.metadata:
        return False
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return bool(getattr(value, field.name) == default)


def _kind(kind: type, sources: Sources) -> str:
    name = kebab(kind.__name__)
    return name if built_in().get(name) is kind else _reference(kind, sources)


def _reference(thing: type | FunctionType, sources: Sources) -> str:
    """`FILE.py:NAME` of something that a user wrote."""
    inside = thing.__qualname__ != thing.__name__
    require(not inside, f"{thing.__qualname__} is defined inside something else, so a run with it could not be repeated")
    require(not is_ours(thing), f"{thing.__name__} of {thing.__module__} is not registered, so it cannot be part of a run")
    return sources.add(thing)


def _named(kind: object, files: Files) -> Any:
    known = built_in()
    if str(kind) in known:
        return known[str(kind)]
    file, _, name = str(kind).rpartition(":")
    if file not in files:
        raise LabError(f"unknown kind '{kind}'; {nearest(str(kind), known)}")
    return source.own_member(source.load_text(file, files[file]), name)
