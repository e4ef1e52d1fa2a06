"""Whether the fields of a run's dataclasses hold what their type hints say: one rule for ours and for users' own."""

from __future__ import annotations

import collections.abc
import sys
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from lengthlab.errors import LARGEST, LabError, cut
from lengthlab.registry import word_for

NUMBERS: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "None", None: "None"}


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The type of each field; Any where a hint cannot be read (a name that is imported for the type checker alone, say)."""
    try:
        return typing.get_type_hints(kind)
    except Exception:
        return {}


def argument_hints(maker: Callable[..., Any]) -> dict[str, Any]:
    """The type of each argument of a class or function; none of one that cannot be read. Arguments of a dataclass are its
    fields: each is looked up where its own class was written, which for an inherited one is another file.
    """
    if isinstance(maker, type) and not is_dataclass(maker):
        return hints_of(maker.__init__)  # type: ignore[misc]
    return hints_of(maker)


def check_fields(value: object, where: str) -> None:
    """Refuse a dataclass, or one inside it, with a field of another type than it says. What is equal in its content becomes the
    same (`as_hinted`), so that a run is what it will be when it is read back.

    >>> from lengthlab.spec.schedule import Mastered
    >>> check_fields(Mastered(question=5), "first")
    Traceback (most recent call last):
    lengthlab.errors.LabError: first.question must be a text, not 5
    """
    if is_dataclass(value) and not isinstance(value, type):
        hints = hints_of(type(value))
        for field in fields(value):
            held, hint = getattr(value, field.name), hints.get(field.name, Any)
            check(held, hint, f"{where}.{field.name}" if where else field.name)
            if field.init:
                object.__setattr__(value, field.name, as_hinted(held, hint))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_fields(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            check_fields(item, f"{where}[{number}]")


def check(value: object, hint: Any, where: str) -> None:
    """Refuse a value that is not of the type, or has something in it that is not."""
    check_fields(value, where)
    if type(value) is int and abs(value) > LARGEST:
        raise LabError(f"{where} must be at most {LARGEST:,}, not {cut(str(value))}")
    if not fits(value, hint):
        raise LabError(f"{where} must be {words_for(hint)}, not {cut(repr(value))}")


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type; of one that we cannot judge, it is.

    >>> fits(3, float), fits(3.0, int), fits(True, int), fits((1, 2), tuple[int, ...]), fits([1], tuple[int, ...])
    (True, False, False, True, False)
    >>> fits(10**400, float)
    False
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint in NUMBERS:
        number = isinstance(value, NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
        return number and not (hint is float and isinstance(value, int) and abs(value) > sys.float_info.max)
    if hint in (None, NoneType):
        return value is None
    if origin is Literal:
        return any(value == allowed and type(value) is type(allowed) for allowed in inner)
    if members := members_of(hint):
        return any(fits(value, member) for member in members)
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, inner)
    if hint is list:
        return isinstance(value, (list, tuple))
    if origin in (list, collections.abc.Sequence):
        return isinstance(value, (list, tuple)) and _items_fit(value, (*inner, ...))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(item, inner[1]) for item in value.values())
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return callable(value)
    if missing_of(value, hint):
        return False
    return not isinstance(hint, type) or is_protocol(hint) or hint is object or isinstance(value, hint)


def members_of(hint: Any) -> tuple[Any, ...]:
    """The types of a union; none of any other type."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else ()


def is_protocol(hint: Any) -> bool:
    # Private: Python 3.13 has `typing.is_protocol`; where the mark is gone, a protocol is checked like a class, by isinstance.
    return bool(getattr(hint, "_is_protocol", False))


def missing_of(value: object, hint: Any) -> list[str]:
    """What a protocol asks for and a value does not have."""
    asked = [name for name in vars(hint) if not name.startswith("_")] if is_protocol(hint) else []
    return [name for name in asked if not hasattr(value, name)]


def member_for(value: object, hint: Any) -> Any:
    """The type out of a union that a value is of; a type that is no union as it is."""
    return next((member for member in members_of(hint) if fits(value, member)), Any if members_of(hint) else hint)


def as_hinted(value: Any, hint: Any) -> Any:
    """A value with floats where its type has them, lists where it has them, and tuples elsewhere: JSON does not tell.

    >>> as_hinted([1, -0.0], tuple[float, ...]), as_hinted((1, 2), list[int]), as_hinted([1, 2], Any)
    ((1.0, 0.0), [1, 2], (1, 2))
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) + 0.0 if float in (hint, *members_of(hint)) and fits(value, float) else value
    of = member_for(value, hint)
    if isinstance(value, (list, tuple)):
        items = [as_hinted(item, item_hint(of, number)) for number, item in enumerate(value)]
        return items if list in (of, get_origin(of)) else tuple(items)
    if isinstance(value, dict):
        return {key: as_hinted(item, item_hint(of)) for key, item in value.items()}
    return value


def item_hint(hint: Any, number: int = 0) -> Any:
    """The type of an item of a tuple, list or mapping."""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return inner[1]
    if not inner or not isinstance(origin, type) or not issubclass(origin, Collection):
        return Any
    return inner[0] if origin is not tuple or inner[-1] is ... else inner[min(number, len(inner) - 1)]


def words_for(hint: Any) -> str:
    """A type in words.

    >>> words_for(int | None), words_for(tuple[int, ...]), words_for(Literal["a", "b"])
    ('a whole number or None', 'a tuple (a whole number each)', "'a' or 'b'")
    """
    if hint in WORDS:
        return WORDS[hint]
    if get_origin(hint) is Literal:
        return _listed([repr(allowed) for allowed in get_args(hint)])
    if members := members_of(hint):
        return _listed([words_for(member) for member in members])
    if get_origin(hint) is tuple:
        inner = dict.fromkeys(words_for(each) for each in get_args(hint) if each is not ...)
        return f"a tuple ({_listed(list(inner))} each)"
    if isinstance(hint, type):
        word = word_for(hint) or hint.__name__.lower()
        return f"{'an' if word[0] in 'aeio' else 'a'} {word}"
    return str(hint).replace("typing.", "").replace("collections.abc.", "")


def _items_fit(value: Collection[object], inner: tuple[Any, ...]) -> bool:
    if len(inner) == 2 and inner[1] is ...:
        return all(fits(item, inner[0]) for item in value)
    return len(value) == len(inner) and all(map(fits, value, inner))


def _listed(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
