"""What is slowed while a question slips: a probe of the state on the way, and the rates that go by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lengthlab.errors import require, require_number, require_whole
from lengthlab.registry import register
from lengthlab.spec.duration import BLOCK
from lengthlab.spec.rate import Slowed


@dataclass(frozen=True)
class Slips:
    """Rates are multiplied `by` something from a look at which `question` was right in less than `accuracy` of 200 samples kept
    for that until a look at which it is not; looks are `every` so many steps. If no question is named, it is what the task
    calls its state. `by` is one factor for everything but attention, or one for each named part.

    The samples are of `times` times the longest training length: 1 is inside the training range; more is a probe beyond it,
    which decides rates and is never learned from.

    >>> Slips({"lstm": 0.05}, times=2)
    Slips(by={'lstm': 0.05}, question='', accuracy=0.95, times=2, every=100)
    """

    by: Slowed
    question: str = ""
    accuracy: float = 0.95
    times: int = 1
    every: int = 100

    def __post_init__(self) -> None:
        check_slowed(self.by, "slips.by")
        require_number(self.accuracy, "slips.accuracy", above=0, most=1)
        plain = {part: float(each) for part, each in self.by.items()} if isinstance(self.by, Mapping) else float(self.by)
        object.__setattr__(self, "by", plain)
        object.__setattr__(self, "accuracy", float(self.accuracy))  # 1 and 1.0 are one content
        for name in ("times", "every"):
            require_whole(getattr(self, name), f"slips.{name}", 1)
        whole = self.every % BLOCK == 0
        require(whole, f"slips.every must be a multiple of {BLOCK}, the steps made in one go, not {self.every}")


def check_slowed(slowed: Slowed, where: str) -> None:
    """Factors of at least 0, of parts or of everything but attention."""
    parts = slowed if isinstance(slowed, Mapping) else {"": slowed}
    require("rest" not in parts, f"{where} names parts; for everything but attention it is one number, like 0.05")
    for part, factor in parts.items():
        require_number(factor, f"{where}{'.' * bool(part)}{part}", least=0)


register(Slips, "slips", Slips)
