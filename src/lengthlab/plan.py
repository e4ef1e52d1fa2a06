"""A TOML file of runs. A name stands for a built-in task, model or schedule, or for something in one's own file."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from lengthlab import source
from lengthlab.adam import Adam
from lengthlab.errors import LabError, explain, nearest, require
from lengthlab.models import MODELS
from lengthlab.models.positions import POSITIONS
from lengthlab.models.scores import SCORES
from lengthlab.run import Run
from lengthlab.schedule import SCHEDULES, Duration, Epochs, LearningRate, Mastered
from lengthlab.tasks import TASKS

Named = Mapping[str, Callable[..., Any]]
CHOICES: dict[str, Named] = {"task": TASKS, "model": MODELS, "schedule": SCHEDULES, "positions": POSITIONS, "scores": SCORES}
KEYS = ("task", "model", "schedule", "lengths", "batch", "seed", "seeds", "evaluate", "optimizer")


def read_plan(path: Path | str, overrides: Sequence[str] = ()) -> list[Run]:
    """The runs of a file, `task.modulus=7` and the like applied to each."""
    path = Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path} is not valid TOML: {error}") from None
    unknown = [key for key in tables if key != "run"]
    require(not unknown, f"{path}: unknown key '{''.join(unknown[:1])}'; runs are written as [[run]] tables")
    listed = tables.get("run", [])
    tabled = isinstance(listed, list) and len(listed) > 0 and all(isinstance(table, dict) for table in listed)
    require(tabled, f"{path} has no [[run]] table")
    runs: list[Run] = []
    for number, table in enumerate(listed, start=1):
        where = f"{path}, run {number}"
        try:
            for override in overrides:
                _override(table, override)
            runs += _runs(table, path.parent)
        except LabError as error:
            raise LabError(f"{where}: {error}") from None
    return runs


def _runs(table: Mapping[str, Any], folder: Path) -> list[Run]:
    for key in table:
        require(key in KEYS, f"unknown key '{key}'; {nearest(key, KEYS)}")
    for key in ("task", "model", "schedule"):
        require(key in table, f"'{key}' is missing")
    require(not ("seed" in table and "seeds" in table), "give 'seed' or 'seeds', not both")
    parts = {key: make(key, table[key], folder) for key in ("task", "model", "schedule")}
    hints = get_type_hints(Run)
    others = ("lengths", "batch", "evaluate", "optimizer")
    given = {key: _read(table[key], hints[key], key, folder) for key in others if key in table}
    seeds = _read(table.get("seeds", [table.get("seed", 0)]), tuple[int, ...], "seeds", folder)
    require(len(seeds) > 0, "seeds must name at least one seed")
    return [Run(**parts, **given, seed=seed) for seed in seeds]


def make(key: str, value: Any, folder: Path) -> Any:
    """The task, model, schedule or part of that name: `"lstm"` or `{name = "lstm", width = 64}`."""
    table = {"name": value} if isinstance(value, str) else value
    named = isinstance(table, dict) and isinstance(table.get("name"), str)
    require(named, f"{key} must be a name, or a table with a 'name', not {value!r}")
    name, maker = table["name"], CHOICES[key].get(table["name"])
    if maker is None and source.is_reference(str(name)):
        maker = source.load_reference(name, folder)  # type: ignore[assignment]
    if not callable(maker):
        raise LabError(f"unknown {key} '{name}'; {nearest(str(name), CHOICES[key])}")
    given = {word: item for word, item in table.items() if word != "name"}
    arguments = _arguments(given, parameters(maker), key, name, folder)
    try:
        made = maker(**arguments)
    except LabError:
        raise
    except Exception as error:  # a user's own maker
        raise LabError(f"{key} '{name}' cannot be made: {explain(error)}") from error
    needed = {"model": "build", "task": "sample", "schedule": "phases"}.get(key)
    if needed:
        require(hasattr(made, needed), f"{name} made a {type(made).__name__}, which is not a {key}: it has no '{needed}'")
    return made


def _arguments(table: Mapping[str, Any], hints: Mapping[str, Any], where: str, of: str, folder: Path) -> dict[str, Any]:
    """What a table gives to a maker with these parameters."""
    for given in table:
        require(given in hints, f"unknown key '{where}.{given}' for {of}; {nearest(given, hints or ['no key'])}")
    return {given: _read(value, hints[given], f"{where}.{given}", folder) for given, value in table.items()}


def parameters(maker: Callable[..., Any]) -> dict[str, Any]:
    """Names and types of what a maker takes, those of `**choices: Unpack[...]` included.

    >>> sorted(parameters(MODELS["sandwich"]))
    ['blocks', 'heads', 'mlp', 'positions', 'scores', 'silent', 'width']
    """
    hints = get_type_hints(maker.__init__ if isinstance(maker, type) else maker)  # type: ignore[misc]
    taken: dict[str, Any] = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            for choices in get_args(hints.get(name)):
                taken |= get_type_hints(choices)
        else:
            taken[name] = hints.get(name, Any)
    return taken


def _read(value: Any, hint: Any, where: str, folder: Path) -> Any:
    """A TOML value as what a parameter of that type wants."""
    last = where.rpartition(".")[2]
    if last in CHOICES:
        return make(last, value, folder)
    if hint in (Duration, Duration | None):
        return _duration(value, where, folder)
    if hint is Adam:
        require(isinstance(value, dict), f"{where} must be a table like {{ beta2 = 0.95 }}, not {value!r}")
        return Adam(**_arguments(value, parameters(Adam), where, "Adam", folder))
    if hint in (LearningRate, LearningRate | None) and isinstance(value, dict):
        return {part: _read(rate, float, f"{where}.{part}", folder) for part, rate in value.items()}
    if hint in (float, LearningRate, LearningRate | None):
        require(isinstance(value, (int, float)) and not isinstance(value, bool), f"{where} must be a number, not {value!r}")
        return float(value)
    if hint is bool:
        require(isinstance(value, bool), f"{where} must be true or false, not {value!r}")
    if hint is str:
        require(isinstance(value, str), f"{where} must be a text in quotes, not {value!r}")
    if hint is int:
        require(isinstance(value, int) and not isinstance(value, bool), f"{where} must be a whole number, not {value!r}")
    if get_origin(hint) is tuple:
        require(isinstance(value, list), f"{where} must be a list, not {value!r}")
        return tuple(_read(item, get_args(hint)[0], where, folder) for item in value)
    return value


def _duration(value: Any, where: str, folder: Path) -> Duration:
    """Steps, `"500 epochs"`, or `{ question = "modulo", accuracy = 0.99 }`: until that is mastered."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return _mastered(value, where, folder)
    words = str(value).split()
    try:
        require(len(words) == 2 and words[1] in ("epochs", "epoch"), "")
        return Epochs(float(words[0]))
    except (LabError, ValueError):
        kinds = 'a number of steps, "500 epochs" or { question = "modulo" }'
        raise LabError(f"{where} must be {kinds}, not {value!r}") from None


def _mastered(table: Mapping[str, Any], where: str, folder: Path) -> Mastered:
    arguments = _arguments(table, parameters(Mastered), where, "a question to be mastered", folder)
    try:
        return Mastered(**arguments)
    except LabError as error:
        raise LabError(f"{where}: {error}") from None


def _override(table: dict[str, Any], override: str) -> None:
    """Put one `key.key=value` into a run's table; what it says is checked where the table is read."""
    path, equals, text = override.partition("=")
    require(bool(equals and path), f"--set {override}: write it as key=value, like task.modulus=7")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *outer, last = path.strip().split(".")
    for key in outer:
        inner = table.get(key, {})
        named = isinstance(inner, str) and key in CHOICES
        require(named or isinstance(inner, dict), f"--set {override}: {key} is {inner!r}, which has no keys")
        table[key] = {"name": inner} if named else dict(inner)
        table = table[key]
    if last in ("seed", "seeds"):
        table.pop("seed", None), table.pop("seeds", None)
    table[last] = value
