"""The forward that stands on the object of a delayed module, and how it is found again under what others put around it.

accelerate's hooks, `attn.forward = torch.compile(attn.forward)` and the like keep the forward that they found and call it.
Ours, kept inside, is told what to do now, and so opens under any of them. One that was put in its place and does not call
it cannot be opened by us, and `open` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import nn

from lengthlab.errors import a_kind, require
from lengthlab.switch.stand_in import Forward

MOST = 500
"""Objects that are looked at in search of our forward; a wrapper is a few."""


class Switched:
    """The forward of a module that is off, or opened under a wrapper, and the one that somebody had set on the module object
    before, if any. Whoever finds it there, its delay gone, can put that back.
    """

    def __init__(self, stand_in: Forward) -> None:
        self.stand_in = stand_in
        self.does: Forward = stand_in
        """What a call does now."""
        self.found: Forward | None = None

    @property
    def is_off(self) -> bool:
        """Tells it from a forward that somebody else has set on a module object."""
        return self.does is self.stand_in or bool(getattr(self.does, "is_off", False))

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.does(*inputs, **named)

    def real(self, module: nn.Module) -> Forward:
        """What the module does when nobody delays it."""
        if self.found is not None:
            return self.found
        forward: Forward = type(module).forward.__get__(module)
        return forward


def is_in_place(module: nn.Module, ours: Switched) -> bool:
    """Whether a call of the module comes to our forward, as far as can be seen."""
    return any(each is ours for each in _kept(module))


def put(module: nn.Module, ours: Switched, does: Forward) -> None:
    """Our forward in its place, doing this; where it is there already, under whatever else, it is only told."""
    ours.does = does
    if is_in_place(module, ours):
        return
    own = vars(module).get("forward")
    for stale in _kept(module):  # that of a copied model, or of a delay that is gone: it passes on
        stale.does = stale.real(module)
    ours.found = own.found if isinstance(own, Switched) else own
    module.forward = ours


def take_away(module: nn.Module, ours: Switched) -> None:
    """The forward that was found; where ours is under a wrapper it stays there, and passes on."""
    if vars(module).get("forward") is ours:
        del module.forward
        vars(module).update({} if ours.found is None else {"forward": ours.found})
        ours.does = ours.stand_in
    else:
        ours.does = ours.real(module)


@contextmanager
def passing_on(modules: Iterable[nn.Module]) -> Iterator[None]:
    """With forwards of ours that came with a copy, or whose delay is gone, passing on; for good, unless there is an error."""
    stale = [(each, module, each.does) for module in modules for each in _kept(module)]
    for each, module, _ in stale:
        each.does = each.real(module)
    try:
        yield
    except BaseException:
        for each, _, does in stale:
            each.does = does
        raise


def require_ours(name: str, module: nn.Module, ours: Switched) -> None:
    """Refuse to open what would stay as it is: a forward is in place that never calls ours."""
    own = vars(module).get("forward")
    plain = own is None or own == ours.found or getattr(own, "__func__", None) is type(module).forward
    require(
        plain or is_in_place(module, ours),
        f"the forward of '{name}' was replaced by {_words(own)} while it was off, and that does not call the one it replaced:"
        f" it cannot be opened; replace it before the delay is made, or keep the old one and call it",
    )


def _kept(module: nn.Module) -> list[Switched]:
    """All forwards of ours that the one in place can come to: in closures, partials, objects and what they wrap."""
    waiting: list[Any] = [vars(module).get("forward")]
    seen: dict[int, Any] = {}
    while waiting and len(seen) < MOST:
        each = waiting.pop()
        if id(each) not in seen:
            seen[id(each)] = each
            waiting += _parts(each)
    return [each for each in seen.values() if isinstance(each, Switched)]


def _parts(each: Any) -> Iterator[Any]:
    if isinstance(each, (list, tuple)):
        yield from each[:MOST]
    elif isinstance(each, CellType):
        yield from _content(each)
    elif isinstance(each, partial):
        yield from (each.func, *each.args, *each.keywords.values())
    elif isinstance(each, MethodType):
        yield from (each.__func__, each.__self__)
    elif isinstance(each, FunctionType):
        yield from (*(each.__closure__ or ()), *(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values())
    if not isinstance(each, type):
        # accelerate keeps the old forward on the module, torch.compile and functools.wraps on the function.
        yield from getattr(each, "__dict__", {}).values()


def _content(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing in it yet
        return ()


def _words(forward: Any) -> str:
    name = getattr(forward, "__qualname__", None)
    return f"'{name}'" if name else a_kind(forward)
