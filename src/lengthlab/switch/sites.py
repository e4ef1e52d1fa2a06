"""Where a model can be switched off: modules by name, by pattern, by predicate, or attention wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from torch import nn

from lengthlab.errors import LabError, a_kind, nearest, require
from lengthlab.switch.attention import is_attention, is_called_attention
from lengthlab.switch.returns import adds_its_input
from lengthlab.switch.stand_in import Forward, stand_in_for

Parts = str | nn.Module | type[nn.Module] | Callable[[str, nn.Module], bool] | Iterable[str | nn.Module]
"""Names of modules, matched from their end, `*` for any one of them; modules; a class of them; or what says of a name and a
module if it is one."""
Instead = Literal["zeros", "input"] | Forward
"""What a module gives while off: zeros, what came in, or whatever a function makes of its inputs."""
# Private: `_orig_mod`, where a compiled model has the plain one; `torch.compile` names its parameters so. If it goes, compiled
# models are found no parts in, and say so.
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
"""Classes that are put around a model, and where they have it. Names are those of the model inside."""
ATTENTION = ("attention", "attend")
"""Names that stand for whatever is softmax attention, in a model that has nothing so named."""


@dataclass(frozen=True)
class Site:
    """One module that can be off, and what stands in for it then."""

    name: str
    module: nn.Module
    stand_in: Forward
    shared: tuple[str, ...] = ()
    """Its parameters that other parts of the model use as well; they go on learning there."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its own."""
        for name, parameter in self.module.named_parameters():
            if name not in self.shared:
                yield parameter


def find(model: nn.Module, *parts: str) -> tuple[Site, ...]:
    """The outermost modules whose names end in one of these; `*` stands for any one name or piece of it."""
    model = unwrapped(model)
    names = {name for part in parts for name in _matching(model, part)}
    return _sites(model, [name for name in _places(model) if name in _outermost(names)], None)


def choose(model: nn.Module, parts: Parts | None, instead: Instead | None = None) -> tuple[Site, ...]:
    """The modules that are meant; attention where nothing is said. One that is meant twice is an error."""
    require(isinstance(model, nn.Module), f"what is delayed is an nn.Module, not {a_kind(model)}")
    model = unwrapped(model)
    meant: dict[str, str] = {}
    for words, names in _asked(model, parts):
        outer = sorted(_outermost(set(names)))
        for name in outer:
            for other in meant:
                if name == other or _inside(name, other) or _inside(other, name):
                    what = f"'{name}'" if name == other else f"'{name}' and '{other}', one inside the other,"
                    raise LabError(f"{what} meant twice, by {meant[other]} and by {words}: name it once")
        meant |= dict.fromkeys(outer, words)
    return _sites(model, [name for name in _places(model) if name in meant], instead)


def unwrapped(model: nn.Module) -> nn.Module:
    while type(model).__name__ in WRAPPERS:
        model = model.get_submodule(WRAPPERS[type(model).__name__])
    return model


def _asked(model: nn.Module, parts: Parts | None) -> list[tuple[str, list[str]]]:
    """What was asked for, in words, and the names that answer to it."""
    places = _places(model)
    if parts is None:
        found = _attention(model)
        require(len(found) > 0, "no softmax attention found in the model; name it: modules=['layers.*.self_attn']")
        return [("the search for attention", found)]
    if isinstance(parts, (str, nn.Module)):
        parts = [parts]
    if isinstance(parts, type):
        kind = parts
        found = [name for name, (_, module) in places.items() if isinstance(module, kind)]
        require(len(found) > 0, f"no module of the model is a {kind.__name__}")
        return [(f"the class {kind.__name__}", found)]
    if callable(parts):
        found = [name for name, (_, module) in places.items() if parts(name, module)]
        require(len(found) > 0, "the predicate is true of no module of the model")
        return [("the predicate", found)]
    require(isinstance(parts, Iterable), f"parts are named by a text or a list of them, not by {parts!r}")
    asked = [(_words(part), _matching(model, part)) for part in parts]
    require(len(asked) > 0, "no part is named")
    return asked


def _attention(model: nn.Module) -> list[str]:
    places = _places(model)
    return [_whole(name, places) for name, (_, module) in places.items() if is_attention(module)]


def _whole(name: str, places: dict[str, tuple[nn.Module, nn.Module]]) -> str:
    """The attention that a module is the inner part of, unless that has a norm: then it may have a residual path, too."""
    outer = name.rpartition(".")[0]
    while outer and is_called_attention(places[outer][1]) and not _has_norm(places[outer][1]):
        name, outer = outer, outer.rpartition(".")[0]
    return name


def _has_norm(module: nn.Module) -> bool:
    """Apart from norms of queries and keys."""
    return any(_is_norm(each) and name.rpartition(".")[2][:1] not in ("q", "k") for name, each in module.named_modules())


def _words(part: str | nn.Module) -> str:
    return f"'{part}'" if isinstance(part, str) else a_kind(part)


def _matching(model: nn.Module, part: str | nn.Module) -> list[str]:
    places = _places(model)
    if isinstance(part, nn.Module):
        found = [name for name, (_, module) in places.items() if module is part]
        require(len(found) > 0, f"the {type(part).__name__} that should be delayed is not in the model")
        return found
    require(isinstance(part, str), f"a part is named by a text or is a module, not {part!r}")
    found = [name for name in places if _ends_in(name, part)] or (_attention(model) if part in ATTENTION else [])
    if not found:
        known = {name.rsplit(".", 1)[-1] for name in places}
        raise LabError(f"no part of the model is named '{part}'; {nearest(part, known)}")
    return found


def _places(model: nn.Module) -> dict[str, tuple[nn.Module, nn.Module]]:
    """Every module below the model by its name, with its parent. One that is in two places has two names."""
    return {
        f"{name}.{child_name}".lstrip("."): (module, child)
        for name, module in model.named_modules()
        for child_name, child in module.named_children()
    }


def _sites(model: nn.Module, names: list[str], instead: Instead | None) -> tuple[Site, ...]:
    places = _places(model)
    modules = {places[name][1]: name for name in reversed(names)}  # the first name of each
    for module, name in modules.items():
        called = type(module).forward is not nn.Module.forward or "forward" in vars(module)
        require(called, f"'{name}' is {a_kind(module)}, which is never called itself; name what is in it: '{name}.*'")
    elsewhere = _elsewhere(model, list(modules))
    return tuple(
        Site(
            name,
            module,
            instead if callable(instead) else stand_in_for(name, module, _keeps(*places[name], instead)),
            tuple(each for each, parameter in module.named_parameters() if id(parameter) in elsewhere),
        )
        for name in names
        for module in [places[name][1]]
        if modules[module] == name
    )


def with_shared(model: nn.Module, sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """The same, each with the names of its parameters that other parts of the model use as well."""
    elsewhere = _elsewhere(model, [site.module for site in sites])
    return tuple(
        replace(site, shared=tuple(name for name, each in site.module.named_parameters() if id(each) in elsewhere))
        for site in sites
    )


def _elsewhere(model: nn.Module, modules: list[nn.Module]) -> set[int]:
    """Parameters that are held outside these modules."""
    inside = {id(each) for module in modules for each in module.modules()}
    return {
        id(parameter)
        for module in model.modules()
        if id(module) not in inside
        for parameter in module.parameters(recurse=False)
    }


def _keeps(parent: nn.Module, module: nn.Module, instead: Instead | None) -> bool:
    """Whether what comes in is what should go out: at a link of a chain and at a block with its own residual path."""
    if instead is not None:
        require(instead in ("zeros", "input"), f"instead must be 'zeros', 'input' or a function, not {instead!r}")
        return instead == "input"
    if adds_its_input(module):
        return True
    if isinstance(parent, nn.Sequential):
        return not _is_branch(parent, module)
    return not is_attention(module) and _is_block(module)


def _is_branch(parent: nn.Sequential, module: nn.Module) -> bool:
    """A chain that begins with a norm, or in which nothing but dropout stands beside the module, is added to something."""
    first, *_ = parent.children()
    others = [type(each) for each in parent.children() if each is not module]
    return (_is_norm(first) and first is not module) or (bool(others) and set(others) <= {nn.Dropout, nn.Identity})


def _is_block(module: nn.Module) -> bool:
    """Attention, or another mixer, with a norm around it: a layer that adds to its input itself."""
    mixers = [child for child in module.children() if next(child.children(), None) is not None]
    return _has_norm(module) and len(mixers) > 0 and not isinstance(module, nn.Sequential)


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower() and next(module.children(), None) is None


def _outermost(names: set[str]) -> set[str]:
    return {name for name in names if not any(_inside(name, other) for other in names)}


def _ends_in(name: str, part: str) -> bool:
    have, want = name.split("."), part.split(".")
    return len(have) >= len(want) and all(map(fnmatchcase, have[-len(want) :], want))


def _inside(name: str, other: str) -> bool:
    return name.startswith(other + ".")
