"""Anyone's `nn.Module`, from token ids (B, T) to logits (B, T, V), as a run's model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from lengthlab.errors import LabError, a_kind, require
from lengthlab.registry import kebab

VOCABULARY = ("vocabulary", "vocab_size", "vocab")
"""The parameter that is given the number of tokens is named one of these."""


@dataclass(frozen=True)
class Module:
    """A class or function of a user's own and what it is called with; `ll.models.module` makes one.

    What a run keeps of it is where it is found (`my_model.py:Net`), the text of that file and the arguments.
    """

    maker: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(callable(self.maker), f"a model is made by a class or a function, not by {self.maker!r}")
        name, known = self._vocabulary(), ", ".join(VOCABULARY)
        require(
            name is not None, f"{self._maker} has no parameter for the size of the task's vocabulary: name it one of {known}"
        )
        require(name not in self.arguments, f"{self._maker}: leave '{name}' out, it is the task's")

    @property
    def name(self) -> str:
        return kebab(self._maker)

    def build(self, vocabulary: int) -> nn.Module:
        made = self.maker(**{str(self._vocabulary()): vocabulary}, **self.arguments)
        if not isinstance(made, nn.Module):
            raise LabError(f"{self._maker} made {a_kind(made)}, which is not an nn.Module")
        return made

    @property
    def _maker(self) -> str:
        return str(getattr(self.maker, "__name__", repr(self.maker)))

    def _vocabulary(self) -> str | None:
        taken = inspect.signature(self.maker).parameters
        named = [name for name in VOCABULARY if name in taken]
        loose = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
        return named[0] if named else VOCABULARY[0] if loose else None


def module(maker: Callable[..., nn.Module], **arguments: Any) -> Module:
    """A class of yours, or a function that returns a module, as a run's model.

    >>> def bigrams(vocabulary: int) -> nn.Module:
    ...     return nn.Embedding(vocabulary, vocabulary)
    >>> module(bigrams).build(vocabulary=4)
    Embedding(4, 4)
    """
    return Module(maker, arguments)


def makes_module(maker: object) -> bool:
    """Whether it is an nn.Module class, or a function that says it returns one or wants the size of a vocabulary."""
    if isinstance(maker, type):
        return issubclass(maker, nn.Module)
    if not callable(maker):
        return False
    try:
        signature = inspect.signature(maker, eval_str=True)
    except Exception:  # a hint that cannot be read says nothing
        signature = inspect.signature(maker)
    returned = signature.return_annotation
    if isinstance(returned, type) and returned is not inspect.Signature.empty:
        return issubclass(returned, nn.Module)
    return any(name in signature.parameters for name in VOCABULARY)


def needs_vocabulary(maker: Callable[..., Any]) -> bool:
    """Whether nothing can be made without the size of a vocabulary."""
    taken = inspect.signature(maker).parameters
    return any(name in taken and taken[name].default is inspect.Parameter.empty for name in VOCABULARY)
