"""What can be chosen by name, ours and users': one registry, by type.

A kind is a type (`Task`, `Part`, `Positions`, …); names under it stand for what makes a thing of it, a class or a function.
Rooms register what they hold, users register their own (`ll.register`), and whoever reads a name looks it up here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from lengthlab.errors import LabError, nearest, require

PACKAGE = "lengthlab."
Maker = TypeVar("Maker", bound=Callable[..., Any])

_MAKERS: dict[Any, dict[str, Any]] = {}
_BUILT_IN: dict[str, type] = {}


def register(kind: Any, name: str, maker: Maker | None = None) -> Any:
    """Let `name` stand for `maker` wherever something of type `kind` is chosen; without a maker, to be put before one.

    >>> class Shape: ...
    >>> @register(Shape, "round")
    ... class Round(Shape): ...
    >>> look_up(Shape, "round")
    <class 'lengthlab.registry.Round'>
    >>> look_up(Shape, "rond")
    Traceback (most recent call last):
    lengthlab.errors.LabError: unknown shape 'rond'; did you mean 'round'?
    """
    if maker is None:
        return lambda made: register(kind, name, made)
    require(callable(maker), f"'{name}' is to stand for what makes a {word_for(kind)}, a class or a function, not {maker!r}")
    known = _MAKERS.setdefault(kind, {}).get(name)
    ours = known is not None and known is not maker and is_ours(known)
    require(not ours, f"'{name}' is a {word_for(kind)} of the package: register yours under another name")
    _MAKERS[kind][name] = maker
    if isinstance(maker, type) and is_dataclass(maker) and is_ours(maker):
        _BUILT_IN[kebab(maker.__name__)] = maker
    return maker


def register_all(names: Mapping[Any, Mapping[str, Callable[..., Any]]]) -> None:
    """What a room holds, by kind."""
    for kind, makers in names.items():
        for name, maker in makers.items():
            register(kind, name, maker)


def registered(kind: Any) -> Mapping[str, Callable[..., Any]]:
    """All names of a kind and what they stand for, in the order in which they were registered."""
    return MappingProxyType(_MAKERS.get(kind, {}))


def look_up(kind: Any, name: str) -> Callable[..., Any]:
    """What a name stands for."""
    known = registered(kind)
    if name not in known:
        raise LabError(f"unknown {word_for(kind)} '{name}'; {nearest(name, known or ['nothing'])}")
    return known[name]


def chosen(kind: Any, choice: Any) -> Any:
    """A thing as it is, or the one of that name."""
    return look_up(kind, choice)() if isinstance(choice, str) else choice


def name_of(kind: Any, thing: object) -> str:
    """The name that users type for a thing of this class, or its class's own."""
    return next((name for name, maker in registered(kind).items() if type(thing) is maker), type(thing).__name__)


def kind_of(hint: Any) -> Any:
    """The kind that things of a type are registered under: the type itself, what it was registered as or what it is one of.

    >>> class Color: ...
    >>> @register(Color, "red")
    ... class Red(Color): ...
    >>> [kind_of(each).__name__ for each in (Color, Red)], kind_of(int)
    (['Color', 'Color'], None)
    """
    if hint in _MAKERS:
        return hint
    if isinstance(hint, type) and hint.__module__ == "builtins":  # numbers and texts, of which lists may be long
        return None
    for kind, makers in _MAKERS.items():
        if hint in makers.values() or (isinstance(hint, type) and isinstance(kind, type) and kind in hint.__mro__):
            return kind
    return None


def built_in() -> dict[str, type]:
    """Every registered dataclass of the package by its kebab name, which is its kind in a run's JSON."""
    return _BUILT_IN


def is_ours(thing: object) -> bool:
    """Whether a class or function is the package's own."""
    return str(getattr(thing, "__module__", "")).startswith(PACKAGE)


def word_for(kind: Any) -> str:
    """What a kind is called in a sentence.

    >>> class AnyModel: ...
    >>> word_for(AnyModel)
    'model'
    """
    return kebab(getattr(kind, "__name__", str(kind)).removeprefix("Any"))


def kebab(name: str) -> str:
    """A class's name as users read it.

    >>> kebab("ModuloRecall")
    'modulo-recall'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
