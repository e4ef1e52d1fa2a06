"""The task or model that a user names: in a file of their own, one of ours, or a Hugging Face configuration on this disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from lengthlab.errors import LabError, a_kind, explain, nearest, require
from lengthlab.memory import FLOAT_BYTES, require_memory
from lengthlab.models import AnyModel
from lengthlab.models.module import Module, makes_module, needs_vocabulary
from lengthlab.registry import look_up, registered
from lengthlab.spec.blueprint import blueprint_of
from lengthlab.spec.hints import argument_hints
from lengthlab.spec.seeds import seed_for
from lengthlab.spec.source import is_reference, load_reference
from lengthlab.spec.toml import chosen_table, make
from lengthlab.tasks import ModuloRecall, Task

if TYPE_CHECKING:
    from lengthlab.integrations.configs import Config

TASK = ModuloRecall()
"""Whose vocabulary a model of ours is built with, as `lengthlab models` does."""
LARGEST = 100_000_000
"""Parameters of a configuration that is still built with real weights."""


@dataclass(frozen=True)
class Subject:
    """A model that can be made as often as it is needed, so that whatever is tried on it leaves the user's own alone.

    >>> subject = find_subject("lstm")
    >>> type(subject.network()).__name__, subject.is_large
    ('Network', False)
    """

    name: str
    maker: Callable[[], Any]
    """Makes the module as its author does."""
    model: AnyModel | None = None
    """Where it is a model of ours."""
    config: Config | None = None
    """Where it is a configuration."""

    def network(self, seed: int = 0) -> nn.Module:
        """A fresh one with weights that the seed determines; the global random state is left as it was."""
        require(
            not self.is_large, f"{self.name} has {self.size:,} parameters, too many to build it here: make its config smaller"
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("weights", seed))
            return self.make()

    def blueprint(self) -> nn.Module:
        """The same to look at: of a configuration its shapes alone, whatever its size."""
        return self.network() if self.config is None else self.config.blueprint()

    def make(self) -> nn.Module:
        made = _made(self.name, self.maker)
        if not isinstance(made, nn.Module):
            known = "a task (derived from lengthlab.tasks.Task), an nn.Module or a model with 'build'"
            raise LabError(f"{self.name} made {a_kind(made)}, which is none of these: {known}")
        return made

    @cached_property
    def size(self) -> int:
        """Parameters of a configuration, without building it."""
        return 0 if self.config is None else count_parameters(self.config.blueprint())

    @property
    def is_large(self) -> bool:
        return self.size > LARGEST


def count_parameters(network: nn.Module) -> int:
    """All of them, shared ones once.

    >>> count_parameters(nn.Linear(2, 3))
    9
    """
    return sum(parameter.numel() for parameter in network.parameters())


def find_task(name: str, choices: Sequence[str] = ()) -> Task | None:
    """The task of that name, `my_task.py:Task` or `modulo-recall`, made with `keys=8` and the like; None if it is none.

    >>> find_task("modulo", ["modulus=3"])
    ModuloRecall(modulus=3, values=10, keys=128, questions=('modulo',), key_tokens=1)
    >>> find_task("lstm") is None
    True
    """
    if is_reference(name):
        found = load_reference(name, Path())
        if isinstance(found, Task):
            require(not choices, f"{name} is a task that is made already: --set needs its class, or a function that makes it")
            return found
        if not _makes_task(found):
            return None
    elif name not in registered(Task):
        return None
    task: Task = make(Task, chosen_table(name, choices))
    return task


def _makes_task(found: object) -> bool:
    """A class of tasks, or a function that says it returns one."""
    if isinstance(found, type):
        return issubclass(found, Task)
    returned = argument_hints(found).get("return") if callable(found) else None
    return isinstance(returned, type) and issubclass(returned, Task)


def find_subject(name: str, choices: Sequence[str] = ()) -> Subject:
    """`my_model.py:make`, `attention-on-lstm`, or a `config.json` or its folder; made with `width=64` and the like."""
    if choices and (is_reference(name) or name in registered(AnyModel)):
        return _ours(name, make(AnyModel, chosen_table(name, choices)))
    require(not choices, f"--set: {name} is a configuration, which says itself what it is made with")
    if is_reference(name):
        return _own(name, load_reference(name, Path()))
    if name in registered(AnyModel):
        return _ours(name, _made(name, look_up(AnyModel, name)))
    path = Path(name)
    if name and (path.is_dir() or path.suffix == ".json"):
        return _configured(name, path)
    kinds = "a file and what makes the model in it (my_model.py:make), a folder with a config.json, or a model of ours"
    close = nearest(name, registered(AnyModel))
    raise LabError(f"'{name}' is no model here, and nothing is downloaded: name {kinds} ({close})")


def _own(name: str, found: Any) -> Subject:
    """A function that makes an nn.Module or a model with `build`, or such a model itself."""
    if isinstance(found, nn.Module):
        raise LabError(f"{name} is a module that is made already: name a function that makes it, so that it can be made afresh")
    if hasattr(found, "build") and not isinstance(found, type):
        return _ours(name, found)
    require(callable(found), f"{name} is {a_kind(found)}: name a function that makes the model")
    if makes_module(found) and needs_vocabulary(found):
        return _ours(name, Module(found))
    with torch.random.fork_rng(devices=[]):
        made = _made(name, found)
    return _ours(name, made) if hasattr(made, "build") and not isinstance(made, nn.Module) else Subject(name, found)


def _made(name: str, maker: Callable[[], Any]) -> Any:
    try:
        made = maker()
    except LabError:
        raise
    except Exception as error:  # a user's own maker
        raise LabError(f"{name} cannot be made: {explain(error)}") from error
    require(not isinstance(made, type), f"{name} gives a class, {made!r}, and not a model: call it there")
    return made


def _ours(name: str, model: AnyModel) -> Subject:
    numbers = count_parameters(blueprint_of(model, TASK.vocabulary))
    require_memory(FLOAT_BYTES * numbers, f"{name}, with {numbers:,} parameters,")
    return Subject(name, partial(model.build, TASK.vocabulary), model=model)


def _configured(name: str, path: Path) -> Subject:
    try:
        from lengthlab.integrations.configs import read_config
    except ImportError:
        raise LabError(f"reading {name} needs transformers: pip install 'lengthlab[huggingface]'") from None
    config = read_config(path)
    return Subject(name, config.build, config=config)
