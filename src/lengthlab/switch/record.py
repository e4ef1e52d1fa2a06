"""What a checkpoint says of parts that were off when it was saved. Weights alone do not tell, and load open.

The configuration of a Hugging Face model (anything with `save_pretrained` and a `config`) has the record in a field as long as
a part is off, so that every `save_pretrained` writes it. Where there is no configuration, `delay.state_dict()` is the record.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch import nn

from lengthlab.errors import require
from lengthlab.switch.copies import Switch
from lengthlab.switch.delay import Delay
from lengthlab.switch.opening import Opening
from lengthlab.switch.sites import Site
from lengthlab.switch.state import DelayWarning

FIELD = "lengthlab_delay"
"""The name of the record, in a configuration and in a checkpoint."""
METRIC = "a metric"
"""What is kept of an `until` that is a function: it goes into no file."""


@dataclass(frozen=True)
class Record:
    """A delay that was closed when this was written.

    >>> record = Record(("layers.0.self_attn",), ("zeros",), until=2_000, steps=500)
    >>> Record.read(record.as_json()) == record
    True
    >>> print(record)
    layers.0.self_attn off after 500 steps, until step 2000
    """

    sites: tuple[str, ...]
    """Names of modules."""
    instead: tuple[str, ...] = ()
    """What each gave in its place: `zeros`, `input`, or the name of a function."""
    until: int | str | None = None
    steps: int = 0
    rate: float = 1.0
    warm_up: int = 0
    ramp: int = 0
    rule: Mapping[str, Any] | None = None
    """Of a part that was on by chance or through a window."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"sites": list(self.sites), "instead": list(self.instead)}

    @staticmethod
    def read(entry: Mapping[str, Any]) -> Record:
        """Of what `as_json` gave, or of the state of a delay."""
        require("sites" in entry and "steps" in entry, f"this is no record of a delay: it has {', '.join(map(str, entry))}")
        known = {each.name: entry[each.name] for each in fields(Record) if each.name in entry}
        return Record(**known | {"sites": tuple(entry["sites"]), "instead": tuple(entry.get("instead", ()))})

    @property
    def opening(self) -> Opening:
        return Opening(self.rate, self.warm_up, self.ramp)

    def __str__(self) -> str:
        more = f" and {len(self.sites) - 1} more" if len(self.sites) > 1 else ""
        until = (
            f", until step {self.until}" if isinstance(self.until, int) else f", until {self.until} says so" * bool(self.until)
        )
        return f"{self.sites[0]}{more} off after {self.steps} steps{until}"


def records_in(entries: object) -> tuple[Record, ...]:
    """Of the field of a configuration: the closed delays in the order in which they open."""
    kept = entries if isinstance(entries, list) else []
    return tuple(Record.read(each) for each in kept)


def records_of(delays: Iterable[Delay]) -> list[Record]:
    """Of those that are closed now, with the names that the delays have for their modules."""
    return [_record_of(each, each.sites, [site.name for site in each.sites]) for each in delays if not each.is_settled]


class ConfigEntry:
    """The record of one delay in the configuration of a model: there while the delay is closed, gone when it is open."""

    def __init__(self, config: Any, record: Record) -> None:
        self.config, self.entry = config, record.as_json()

    def follow(self, delay: Switch) -> None:
        """Say what is so now."""
        self.entry["steps"] = delay.steps  # in place, so that nothing that was compiled from the configuration sees a change
        if delay.is_settled:
            self.end()
        elif all(each is not self.entry for each in vars(self.config).get(FIELD, ())):
            # What another delay has left of the same modules, which is gone, is not so any more.
            mine = set(self.entry["sites"])
            others = [each for each in vars(self.config).get(FIELD, ()) if not mine & set(each["sites"])]
            setattr(self.config, FIELD, [*others, self.entry])

    def end(self) -> None:
        left = [each for each in vars(self.config).get(FIELD, ()) if each is not self.entry]
        if left:
            setattr(self.config, FIELD, left)
        else:
            vars(self.config).pop(FIELD, None)


def entries_for(model: nn.Module, delay: Delay) -> list[ConfigEntry]:
    """One for each configuration in this model that a `save_pretrained` would write, with names as that model has them."""
    made = []
    for outer in _savable(model):
        names = {module: name for name, module in outer.named_modules()}
        inside = [site for site in delay.sites if site.module in names]
        if inside:
            record = _record_of(delay, inside, [names[site.module] for site in inside])
            made.append(ConfigEntry(outer.config, record))
    return made


def warn_of_record(model: nn.Module) -> None:
    """A new delay of a model that was saved while closed, and loaded open, begins at step 0: probably not meant."""
    for outer in _savable(model):
        for record in records_in(vars(outer.config).get(FIELD)):
            off = [module for name, module in outer.named_modules() if name in record.sites]
            if not any(hasattr(vars(module).get("forward"), "is_off") for module in off):
                text = (
                    f"this model was saved with {record}, and has been loaded open; the new delay counts from step 0. "
                    "To go on where it was: lengthlab.close_again(model)"
                )
                warnings.warn(text, DelayWarning, stacklevel=4)
                return


def take_from_config(model: nn.Module) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Each configuration that says something of parts that were off, and what; they do not say it any more."""
    configs = [outer.config for outer in _savable(model)]
    return [(config, vars(config).pop(FIELD)) for config in configs if FIELD in vars(config)]


def put_back(taken: list[tuple[Any, list[dict[str, Any]]]]) -> None:
    for config, entries in taken:
        setattr(config, FIELD, entries)


def _savable(model: nn.Module) -> Iterator[Any]:
    """The outermost modules that write a configuration."""
    if hasattr(model, "save_pretrained") and hasattr(getattr(model, "config", None), "to_dict"):
        yield model
    else:
        for child in model.children():
            yield from _savable(child)


def _record_of(delay: Delay, sites: Iterable[Site], names: Iterable[str]) -> Record:
    until = delay.until if isinstance(delay.until, int) or delay.until is None else METRIC
    return Record(tuple(names), tuple(map(instead_of, sites)), until, delay.steps, **asdict(delay.opening), rule=delay.rule)


def instead_of(site: Site) -> str:
    """What a module gives while off, in one word."""
    words = str(getattr(site.stand_in, "__name__", site.stand_in))
    return "input" if "its input" in words else "zeros" if "zeros" in words else words
