"""Why a run goes as far as it does, as data: what `lengthlab why` measured and says of it, in one file of the run's folder.

No torch: a report reads it without. The file says of which version it is; another version is measured anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from lengthlab.errors import LabError
from lengthlab.store.folder import Folder

FILE = "why.json"
VERSION = 1

ATTENTION, ZEROS, ANOTHER, RESET = "attention", "zeros", "another", "reset"
"""What was cut where the questions begin: attention to all before; the recurrence's state, which begins anew; the same, and it
is that of another sequence. Where the training range ends: the state begins anew."""
CUTS = (ATTENTION, ANOTHER, ZEROS, RESET)


@dataclass(frozen=True)
class Pathways:
    """Shares of right answers to a question at a length: `whole`, by a blind guess, and with each of `CUTS` that applies."""

    length: int
    question: str
    samples: int
    chance: float
    whole: float
    cut: Mapping[str, float]

    @property
    def attention_share(self) -> float | None:
        """Of what is lost by a cut, attention's part: 1 where attention alone carries the answer, 0 where the state does, a
        half where it takes both. None where there is nothing to lose, or where nothing is lost.

        >>> Pathways(10, "recall", 100, 0.1, 1.0, {"attention": 0.1, "another": 1.0}).attention_share
        1.0
        """
        if ATTENTION not in self.cut or ANOTHER not in self.cut:
            return None if not self.cut else 1.0 if ATTENTION in self.cut else 0.0
        lost, kept = max(0.0, self.whole - self.cut[ATTENTION]), max(0.0, self.whole - self.cut[ANOTHER])
        return lost / (lost + kept) if max(lost, kept) > LEAST_LOSS else None


LEAST_LOSS = 0.1
"""Less than this may be chance: with 200 samples two shares differ by it in one case of fifty."""


@dataclass(frozen=True)
class Aim:
    """Where a head looks when a question is answered. `weight`, `rank` (1: the heaviest) of the right position and `entropy` in
    nats are means over samples. Shares: the heaviest position is the `right` one or beside it; a `wrong` one has more than half
    of all weight; weight is `spread` out.
    """

    length: int
    question: str
    layer: str
    head: int
    samples: int
    weight: float
    rank: float
    entropy: float
    right: float
    wrong: float
    spread: float


@dataclass(frozen=True)
class StateAt:
    """How well a linear probe of the state, fitted within the training range, tells the answer at a length, and q there."""

    length: int
    question: str
    samples: int
    right: float
    q: float


@dataclass(frozen=True)
class Breaking:
    """Where a question is below 0.90: `predicted` from lengths of the training range alone, `measured` from all. None: not in
    sight; of what was measured, not up to `measured_to`. `growth`: q grows like the length to this power.
    """

    question: str
    rule: str
    growth: float
    q: float
    predicted: float | None
    measured: float | None
    measured_to: int


@dataclass(frozen=True)
class Remainder:
    """What answers still tell: how many are right when only `what` of them counts, and by a blind guess."""

    length: int
    question: str
    what: str
    right: float
    chance: float


@dataclass(frozen=True)
class Picture:
    """One sequence: rows of levels from 0 to 9, a digit for each position or, where they are many, for each few of them."""

    kind: str
    question: str
    length: int
    right: bool
    tokens: int
    rows: tuple[tuple[str, str], ...]
    mark: int = -1
    """The column of the right position; none, if negative."""


@dataclass(frozen=True)
class Diagnosis:
    """All that `lengthlab why` knows of a run. `words`: the paragraph on top; `notes`: what could not be measured, and why."""

    run: str
    task: str
    model: str
    trained: tuple[int, int]
    seconds: float
    words: str
    pathways: tuple[Pathways, ...] = ()
    aims: tuple[Aim, ...] = ()
    states: tuple[StateAt, ...] = ()
    breakings: tuple[Breaking, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers have as many digits as anybody reads."""
        data: dict[str, Any] = _rounded(asdict(self))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Diagnosis:
        """ValueError, TypeError or KeyError where it is none."""
        known: dict[str, Any] = {name: tuple(_made(kind, each) for each in data[name]) for name, kind in KINDS.items()}
        known |= {name: str(data[name]) for name in ("run", "task", "model", "words")}
        shortest, longest = map(int, data["trained"])
        if data["version"] != VERSION or not 1 <= shortest <= longest:
            raise ValueError
        notes = tuple(map(str, data["notes"]))
        return cls(trained=(shortest, longest), seconds=float(data["seconds"]), notes=notes, **known)


KINDS: dict[str, Any] = {
    "pathways": Pathways,
    "aims": Aim,
    "states": StateAt,
    "breakings": Breaking,
    "remainders": Remainder,
    "pictures": Picture,
}
T = TypeVar("T")


def _made(kind: type[T], data: Mapping[str, Any]) -> T:
    """One line of the file, checked by the types that are written above."""
    values = {field.name: _read(str(field.type), data[field.name]) for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**values)


def _read(kind: str, value: Any) -> Any:
    if kind == "str":
        return str(value)
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "float | None":
        return None if value is None else float(value)
    if kind == "Mapping[str, float]":
        return {str(name): float(share) for name, share in value.items()}
    return tuple((str(label), _levels(row)) for label, row in value)


def _levels(row: Any) -> str:
    if not isinstance(row, str) or not row.isascii() or not row.isdigit():
        raise ValueError
    return row


def _rounded(data: Any) -> Any:
    if isinstance(data, float):
        return round(data, 4)
    if isinstance(data, Mapping):
        return {key: _rounded(value) for key, value in data.items()}
    return [_rounded(each) for each in data] if isinstance(data, (list, tuple)) else data


def write_diagnosis(folder: Folder, diagnosis: Diagnosis) -> None:
    """Beside the run, whole or not at all."""
    folder.write_json(FILE, diagnosis.to_json())


def read_diagnosis(folder: Folder) -> Diagnosis | None:
    """What is kept of a run; None where it was never asked, or by another version. A foreign file is a `LabError`."""
    path = folder.path / FILE
    if not path.exists():
        return None
    data = folder.read_json(FILE)
    if isinstance(data.get("version"), int) and data["version"] != VERSION:
        return None
    try:
        return Diagnosis.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise LabError(f"{path} is no diagnosis: move it away, and lengthlab why measures anew") from None
