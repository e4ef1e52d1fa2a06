"""Tasks, models and schedules to JSON and back. All of them are frozen dataclasses, so one rule serves all.

A dataclass becomes `{"kind": ..., field: ...}`. The kind is the class's name in kebab case for what is built in, and
`FILE.py:CLASS` for a user's own class, whose file then goes along as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lengthlab import source
from lengthlab.adam import Adam
from lengthlab.errors import LabError, nearest
from lengthlab.models import Attention, CausalLm, Lstm, Mlp, Model
from lengthlab.models.compose import Chain, Named, Parallel, Repeat, Residual, Silent, kebab
from lengthlab.models.positions import POSITIONS
from lengthlab.models.scores import SCORES
from lengthlab.schedule import Epochs, Mastered, Phase, Schedule
from lengthlab.tasks import ModuloRecall

Json = dict[str, Any]
Files = dict[str, str]


KINDS: list[type] = [
    *(ModuloRecall, Schedule, Phase, Epochs, Mastered, Adam),
    *(Model, CausalLm, Chain, Repeat, Parallel, Residual, Named, Silent),
    *(Lstm, Mlp, Attention),
    *POSITIONS.values(),
    *SCORES.values(),
]
BUILT_IN: dict[str, type] = {kebab(kind.__name__): kind for kind in KINDS}


def to_json(value: Any, files: Files) -> Any:
    """Plain data for `value`; the text of every user's file it needs is put into `files`.

    >>> to_json(Lstm(), {})
    {'kind': 'lstm', 'layers': 1}
    """
    if is_dataclass(value) and not isinstance(value, type):
        kind = _kind(type(value), files)
        of_fields = {field.name: to_json(getattr(value, field.name), files) for field in fields(value) if field.init}
        if "kind" in of_fields:
            raise LabError(f"a field of {type(value).__name__} is named 'kind', which stands for the class: rename it")
        return {"kind": kind, **of_fields}
    if isinstance(value, Mapping):
        return {str(key): to_json(item, files) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, files) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise LabError(f"{value!r} cannot be part of a run: use frozen dataclasses, numbers, strings, tuples and dicts of them")


def from_json(data: Any, files: Files) -> Any:
    """The value that `to_json` made this of.

    >>> from_json({'kind': 'lstm', 'layers': 1}, {})
    Lstm(layers=1)
    """
    if isinstance(data, list):
        return tuple(from_json(item, files) for item in data)
    if not isinstance(data, dict):
        return data
    items = {key: from_json(item, files) for key, item in data.items() if key != "kind"}
    if "kind" not in data:
        return items
    try:
        return _class(data["kind"], files)(**items)
    except TypeError as error:
        raise LabError(f"a '{data['kind']}' cannot be made of {sorted(items)}: {error}") from None


def _kind(kind: type, files: Files) -> str:
    name = kebab(kind.__name__)
    if BUILT_IN.get(name) is kind:
        return name
    if kind.__qualname__ != kind.__name__:
        raise LabError(f"{kind.__qualname__} is defined inside something else, so a run with it could not be repeated")
    file, text = source.source_of(kind)
    if files.setdefault(file, text) != text:
        raise LabError(f"two different files of one run are named {file}; give one of them another name")
    return f"{file}:{kind.__name__}"


def _class(kind: str, files: Files) -> Any:
    if kind in BUILT_IN:
        return BUILT_IN[kind]
    file, _, name = str(kind).rpartition(":")
    if file not in files:
        raise LabError(f"unknown kind '{kind}'; {nearest(str(kind), BUILT_IN)}")
    return source.member(source.load_text(file, files[file]), name)
