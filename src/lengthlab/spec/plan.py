"""A TOML file of runs: what all of them share, a table for each, and a grid of settings of which every combination is a run.

[defaults]
task = { name = "modulo-recall", keys = 128 }
model.width = 64
schedule = { name = "delayed", first = 2_000, joint = 8_000 }
lengths = [1, 10]
seeds = [0, 1, 2]

[grid]
model.name = ["attention-on-lstm", "hybrid-block"]
schedule.lr = [1e-4, 3e-4, 1e-3]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

from lengthlab.errors import LabError, nearest, require, require_names
from lengthlab.spec.grid import Choice, choices, joined, label_of
from lengthlab.spec.hints import hints_of
from lengthlab.spec.run import Run
from lengthlab.spec.toml import SEEDS, override_value, read
from lengthlab.text_file import read_text

Table = dict[str, Any]
RUN = hints_of(Run)
KEYS = (*RUN, "seeds", "grid")
TABLES = ("defaults", "grid", "run")
THINGS = ("task", "model", "schedule", "optimizer")


def read_plan(path: Path | str, overrides: Sequence[str] = ()) -> list[Run]:
    """The runs of a file, `task.modulus=7` and the like applied to each."""
    path = Path(path)
    require_names(overrides, "what is set")
    for each in overrides:
        tried = each.partition("=")[0].split(".")[0].strip() == "grid"
        require(not tried, f"--set {each}: it changes every run alike; what is to be tried stands in [grid] of {path}")
    tables = _tables(path)
    runs: list[Run] = []
    made: dict[tuple[str, str], Any] = {}  # what several runs have alike is made once
    for number, table in enumerate(tables["run"] or [{}], start=1):
        where = f"{path}, run {number}" if tables["run"] else str(path)
        own = merged(tables["defaults"], table)
        axes = _axes(tables["grid"], where) + _axes(own.pop("grid", {}), where)
        for chosen in choices(axes):
            try:
                runs += _runs(_chosen(own, chosen, overrides), path.parent, made)
            except LabError as error:
                words = ", ".join(choice.words for choice in chosen)
                raise LabError(f"{where}{f', {words}' if words else ''}: {error}") from error.__cause__
    return joined(runs)


def _tables(path: Path) -> Table:
    """The tables of a file, checked to be such."""
    try:
        tables = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LabError(f"{path} is not valid TOML: {error}") from None
    for key, table in tables.items():
        known = key in TABLES
        require(known, f"{path}: unknown key '{key}'; runs are written as [[run]] tables, what they share as [defaults]")
        require(key == "run" or isinstance(table, dict), f"{path}: '{key}' must be a table, [{key}]")
    listed = tables.get("run", [])
    listed = [listed] if isinstance(listed, dict) else listed  # [run] is one run
    tabled = isinstance(listed, list) and all(isinstance(table, dict) for table in listed)
    require(tabled and (len(listed) > 0 or "defaults" in tables), f"{path} has no [[run]] table")
    return {"defaults": tables.get("defaults", {}), "grid": tables.get("grid", {}), "run": listed}


def merged(old: Any, new: Any, thing: bool = False) -> Any:
    """`new` over `old`: tables key by key, unless `new` is something of another name.

    >>> merged({"model": {"width": 64}}, {"model": "lstm"})
    {'model': {'width': 64, 'name': 'lstm'}}
    >>> merged({"model": {"name": "transformer", "heads": 2}}, {"model": {"name": "lstm"}})
    {'model': {'name': 'lstm'}}
    """
    if thing and isinstance(new, str):
        new = {"name": new}
    if thing and isinstance(old, str):
        old = {"name": old}
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return deepcopy(new)
    if _called(old) and _called(new) and _called(old) != _called(new):
        return deepcopy(new)
    again = SEEDS if new.keys() & SEEDS else set()
    kept = {key: value for key, value in old.items() if key not in again}
    return kept | {key: merged(old.get(key), item, key in THINGS) for key, item in new.items()}


def _called(table: Table) -> Any:
    return table.get("kind", table.get("name"))


def _axes(table: Any, where: str, path: tuple[str, ...] = ()) -> list[list[Choice]]:
    """The lists of a grid, each the choices of one setting."""
    name = ".".join(("grid", *path))
    require(isinstance(table, dict), f"{where}: {name} must be a table of lists, not {table!r}")
    axes: list[list[Choice]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            axes += _axes(value, where, (*path, key))
            continue
        listed = isinstance(value, list) and len(value) > 0
        require(listed, f"{where}: {name}.{key} must be a list of what is to be tried, not {value!r}")
        place = ("seed",) if (*path, key) == ("seeds",) else (*path, key)
        axes.append([_choice(place, item) for item in value])
    return axes


def _choice(path: tuple[str, ...], value: Any) -> Choice:
    """A table among the choices may say by `label` what it is to be called."""
    if isinstance(value, dict) and isinstance(value.get("label"), str):
        return Choice(path, {key: item for key, item in value.items() if key != "label"}, value["label"])
    return Choice(path, value)


def _chosen(table: Table, chosen: Sequence[Choice], overrides: Sequence[str]) -> Table:
    """The table of one run: its own, with what was chosen of the grid, and what the command line says."""
    made = deepcopy(table)
    for choice in chosen:
        made = _with(made, choice.path, choice.value)
    for override in overrides:
        override_value(made, override)
    own = made.get("label", "")
    label = label_of([choice for choice in chosen if choice.path != ("seed",)], own) if isinstance(own, str) else own
    return made | ({"label": label} if label else {})


def _with(table: Table, path: tuple[str, ...], value: Any) -> Table:
    """The table with a value in its place; what stands there by its name becomes a table first."""
    key, *inner = path
    if not inner and key == "name":  # of what stands there: the rest of it stays
        return {**table, key: value}
    if not inner:
        changed: Table = merged(table, {key: value})
        return changed
    there = table.get(key, {})
    there = {"name": there} if isinstance(there, str) else there
    require(isinstance(there, dict), f"grid: {key} is {there!r}, which has no keys")
    return {**table, key: _with(there, tuple(inner), value)}


def _runs(table: Mapping[str, Any], folder: Path, made: dict[tuple[str, str], Any]) -> list[Run]:
    def read_once(key: str, value: Any, hint: Any, default: Any = None) -> Any:
        if (key, repr(value)) not in made:
            made[key, repr(value)] = read(value, hint, key, folder, default)
        return made[key, repr(value)]

    for key in table:
        if key not in KEYS:  # not `require`: to look for what is near takes its time
            raise LabError(f"unknown key '{key}'; {nearest(key, KEYS)}")
    for key in ("task", "model", "schedule"):
        require(key in table, f"'{key}' is missing")
    require(not ("seed" in table and "seeds" in table), "give 'seed' or 'seeds', not both")
    defaults = {field.name: field.default for field in fields(Run)}
    kept = [key for key in table if key not in ("seed", "seeds")]
    given = {key: read_once(key, table[key], RUN[key], defaults[key]) for key in kept}
    seeds = read_once("seeds", table.get("seeds", [table.get("seed", 0)]), tuple[int, ...])
    require(len(seeds) > 0, "seeds must name at least one seed")
    require(len(set(seeds)) == len(seeds), f"seeds must differ, and {list(seeds)} has one twice")
    first = Run(**given, seed=seeds[0])
    return [first, *map(first.with_seed, seeds[1:])]
