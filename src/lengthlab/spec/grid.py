"""Many runs at once: every choice of one setting with every choice of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from lengthlab.errors import LabError, explain, require, require_whole
from lengthlab.spec.run import Run
from lengthlab.store.settings import shown

PLAIN = (str, bool, int, float, tuple, type(None))


@dataclass(frozen=True)
class Choice:
    """One value of a setting; `label` is what its author calls it."""

    path: tuple[str, ...]
    value: Any
    label: str = ""

    @property
    def words(self) -> str:
        """
        >>> Choice(("schedule", "lr"), 3e-4).words, Choice(("model", "width"), 64, "wide").words
        ('lr 0.0003', 'wide')
        """
        if self.label:
            return self.label
        value = self.value
        if isinstance(value, Mapping):
            value = value.get("name") or ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, list):
            value = tuple(value)
        elif not isinstance(value, PLAIN):
            value = getattr(value, "name", type(value).__name__)
        return value if isinstance(value, str) else f"{self.path[-1]} {shown(value)}"


def choices(axes: Iterable[Sequence[Choice]]) -> list[tuple[Choice, ...]]:
    """Every choice of one axis with every choice of the others, the last axis turning fastest.

    >>> width, seed = [Choice(("width",), n) for n in (32, 64)], [Choice(("seed",), n) for n in (0, 1)]
    >>> [tuple(each.value for each in choice) for choice in choices([width, seed])]
    [(32, 0), (32, 1), (64, 0), (64, 1)]
    """
    return list(product(*axes))


def label_of(chosen: Sequence[Choice], first: str = "") -> str:
    """What a run is called where somebody named it, or one of its choices; empty where what differs names it."""
    if not any(choice.label for choice in chosen):
        return first
    return ", ".join(filter(None, (first, *(choice.words for choice in chosen))))


def grid(seeds: Iterable[int] = (0,), **settings: Any) -> list[Run]:
    """Runs of all combinations of what is given as lists; a dict is a list whose values have labels.

    >>> import lengthlab as ll
    >>> runs = ll.grid(
    ...     task=ll.tasks.ModuloRecall(keys=32),
    ...     model={"narrow": ll.models.lstm(width=16), "wide": ll.models.lstm(width=32)},
    ...     schedule=[ll.end_to_end(100, lr=lr) for lr in (1e-3, 3e-3)],
    ...     lengths=(1, 10), batch=8, seeds=range(3))
    >>> len(runs), runs[0].label
    (12, 'narrow, end-to-end')
    """
    numbers = _seeds(seeds)
    label = settings.pop("label", "")
    runs: list[Run] = []
    for chosen in choices(_axis(name, value) for name, value in settings.items()):
        given = {choice.path[0]: choice.value for choice in chosen}
        several = [choice for choice in chosen if isinstance(settings[choice.path[0]], (list, Mapping))]
        try:
            first = Run(**given, seed=numbers[0], label=label_of(several, label))
            runs += [first, *map(first.with_seed, numbers[1:])]
        except LabError as error:
            raise LabError(f"{_said(several)}{error}{_hint(several)}") from error.__cause__
        except TypeError as error:
            raise LabError(f"a grid takes what a Run takes, and lists of it: {explain(error)}") from None
    return joined(runs)


def joined(runs: Iterable[Run]) -> list[Run]:
    """Each run once, measured wherever one of those that are the same is; two names for one run are refused.

    >>> import lengthlab as ll
    >>> one = ll.Run(ll.tasks.ModuloRecall(), ll.models.lstm(8), ll.end_to_end(5), evaluate=(25,))
    >>> [run.evaluate for run in joined([one, replace(one, evaluate=(50,))])]
    [(25, 50)]
    """
    known: dict[str, Run] = {}
    for run in runs:
        other = known.setdefault(run.id, run)
        if other is run:
            continue
        labels = list(dict.fromkeys(filter(None, (other.label, run.label))))
        require(len(labels) < 2, f"two labels for one run, and nothing else differs: {' and '.join(map(repr, labels))}")
        lengths = tuple(dict.fromkeys((*other.measured_at, *run.measured_at)))
        same = other.evaluate == run.evaluate
        known[run.id] = replace(other, label="".join(labels), evaluate=other.evaluate if same else lengths)
    return list(known.values())


def _seeds(seeds: Iterable[int]) -> list[int]:
    try:
        numbers = list(seeds)
    except TypeError:
        raise LabError(f"seeds must be a list of them, like range(3), not {seeds!r}") from None
    require(len(numbers) > 0, "seeds must name at least one seed")
    for number in numbers:
        require_whole(number, "a seed", 0)
    require(len(set(numbers)) == len(numbers), f"seeds must differ, and {numbers} has one twice")
    return numbers


def _axis(name: str, value: Any) -> list[Choice]:
    require(name != "seed", "a grid takes seeds, like seeds=range(3)")
    if isinstance(value, Mapping):
        axis = [Choice((name,), item, str(label)) for label, item in value.items()]
    else:
        axis = [Choice((name,), item) for item in (value if isinstance(value, list) else [value])]
    require(len(axis) > 0, f"{name}: a list without anything in it makes no run")
    return axis


def _said(several: Sequence[Choice]) -> str:
    return f"{', '.join(choice.words for choice in several)}: " if several else ""


def _hint(several: Sequence[Choice]) -> str:
    """Pairs are the one thing that is easily given as a list."""
    wrong = [choice.path[0] for choice in several if choice.path[0] in ("lengths", "evaluate")]
    return f"; in a grid a list makes several runs, so write {wrong[0]} in round brackets" if wrong else ""
