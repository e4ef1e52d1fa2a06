"""More than on and off, as data: how attention opens over the steps of a phase (`Phase(opens=...)`).

Layer by layer, by chance, or through a window that grows. Steps count from the start of the phase. `lengthlab.switch` makes
switches of it; here is no torch, because schedules are read without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import index
from typing import Any, Literal

from lengthlab.errors import LabError, cut, require, require_names, require_number, require_whole
from lengthlab.registry import register

First = Literal["bottom", "top"]
Course = tuple[tuple[int, float], ...]
"""From that step on, that value; nothing before the first."""


class Gradual:
    """A way of opening. `parts`: names of the modules that open, as in `off`. `until`: the step from which on they are on for
    good; with 0 the end of the phase.
    """

    parts: tuple[str, ...]  # in each kind after what makes it that kind

    def __post_init__(self) -> None:
        require_names(self.parts, "opens.parts")
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) > 0, "opens.parts names no part")


@dataclass(frozen=True)
class Layers(Gradual):
    """Layer after layer, from the `first`, "bottom" or "top": `every` so many steps one, or `until` the steps in a list.

    >>> Layers(every=500)
    Layers(every=500, until=(), first='bottom', parts=('attend',))
    """

    every: int = 0
    until: tuple[int, ...] = ()
    first: First = "bottom"
    parts: tuple[str, ...] = ("attend",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self.every, "opens.every", 0)
        listed = isinstance(self.until, (list, tuple))
        require(listed, f"opens.until of layers is a list of steps, one for each layer, not {self.until!r}")
        object.__setattr__(self, "until", tuple(self.until))
        for step in self.until:
            require_whole(step, "opens.until", 1)
        one = bool(self.every) != bool(self.until)
        require(one, "layers open every so many steps, or at the steps of a list: say one of opens.every and opens.until")
        require(self.first in ("bottom", "top"), f"opens.first must be 'bottom' or 'top', not {self.first!r}")
        require(list(self.until) == sorted(self.until), f"layers open one after another, not at steps {list(self.until)}")


@dataclass(frozen=True)
class Chance(Gradual):
    """On with probability `p` in each step: a number, or pairs of a step and the number from there on. Off before the first.

    >>> Chance(p=[[0, 0.1], [500, 0.25]], until=1_000).p
    ((0, 0.1), (500, 0.25))
    """

    p: float | tuple[tuple[int, float], ...] = 0.5
    parts: tuple[str, ...] = ("attention",)
    until: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = course(self.p, "opens.p", most=1.0)
        object.__setattr__(self, "p", pairs if isinstance(self.p, (list, tuple)) else pairs[0][1])
        require_whole(self.until, "opens.until", 0)


@dataclass(frozen=True)
class Window(Gradual):
    """To the last positions only: `windows` is a number of them, or pairs of a step and the number from there on. Off before
    the first. With `p` below 1 only in that share of the steps, drawn at random, and full attention in the others.

    >>> Window([[0, 8], [500, 32]], until=1_000).windows
    ((0, 8), (500, 32))
    """

    windows: int | tuple[tuple[int, int], ...] = 16
    parts: tuple[str, ...] = ("attend",)
    until: int = 0
    p: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = course(self.windows, "opens.windows", most=0, whole=True)
        object.__setattr__(self, "windows", pairs if isinstance(self.windows, (list, tuple)) else pairs[0][1])
        require_whole(self.until, "opens.until", 0)
        require_number(self.p, "opens.p", above=0, most=1)
        object.__setattr__(self, "p", float(self.p))


def course(given: Any, name: str, most: float, whole: bool = False) -> Course:
    """What a user wrote: one number for all steps, or pairs of a step and the number that holds from there on.

    >>> course(0.5, "p", 1.0), course([(0, 0.25), (1_000, 0.5)], "p", 1.0)
    (((0, 0.5),), ((0, 0.25), (1000, 0.5)))
    """
    pairs = given if isinstance(given, Sequence) and not isinstance(given, str) else [(0, given)]
    paired = len(pairs) > 0 and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs)
    require(paired, f"{name} is a number, or pairs of a step and a number, like [[0, {1 if whole else 0.5}]], not {given!r}")
    made = tuple((_step(step, name), _value(value, name, most, whole)) for step, value in pairs)
    steps = [step for step, _ in made]
    require(steps == sorted(set(steps)), f"the steps of {name} go up from pair to pair, not {steps}")
    return made


def value_at(pairs: Course, step: int) -> float:
    """
    >>> [value_at(((10, 0.5), (20, 1.0)), step) for step in (9, 10, 25)]
    [0.0, 0.5, 1.0]
    """
    return next((value for start, value in reversed(pairs) if step >= start), 0.0)


def draw(seed: int, step: int) -> float:
    """A number from 0 up to 1 of a seed and a step alone: every process draws the same, and so does one that is resumed.

    >>> draw(0, 7) == draw(0, 7), draw(0, 7) == draw(0, 8)
    (True, False)
    """
    digest = sha256(f"{seed}/{step}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def whole_seed(seed: Any) -> int:
    require(isinstance(seed, int) and not isinstance(seed, bool), f"seed must be a whole number, not {cut(repr(seed))}")
    return int(seed)


def _step(step: Any, name: str) -> int:
    try:
        made = index(step)
    except TypeError:
        raise LabError(f"a step of {name} must be a whole number, not {step!r}") from None
    require(made >= 0, f"a step of {name} must be at least 0, not {made}")
    return made


def _value(value: Any, name: str, most: float, whole: bool) -> float:
    number = isinstance(value, int) if whole else isinstance(value, (int, float))
    require(number and not isinstance(value, bool), f"{name} must be a {'whole ' * whole}number, not {value!r}")
    fits = (value >= 1) if whole else (0 <= value <= most)
    require(fits, f"{name} must be {'at least 1' if whole else f'from 0 to {most:g}'}, not {value}")
    return int(value) if whole else float(value)


register(Gradual, "layers", Layers)
register(Gradual, "chance", Chance)
register(Gradual, "window", Window)
