"""What runs are made of, and what differs between them: their names in every table, legend and live row. No torch.

The content of a run (`run.json`) is read as settings: a path for each value, `schedule/phases/0/lr`. Runs are named by those
that differ, never by a hash; runs that differ in their seed alone are of one setting.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lengthlab.errors import cut

Content = Mapping[str, Any]
Path = tuple[str | int, ...]
Value = str | int | float | bool | tuple[Any, ...] | None

PHASES = ("schedule", "phases")
NOT_SETTINGS = ("results", "seed", "evaluate", "label")
LEFT_OUT = {"optimizer": {"kind": "adam", "beta1": 0.9, "beta2": 0.999}}
"""What contents do not say where it is as usual."""
INSIDE = ("part", "parts", "body", "kind", "arguments")
"""Steps of a path that say nothing to a reader."""
WORDS = {"schedule": "training", "times": "blocks", "length": "steps"}
"""What a reader calls them."""
ALONE = ("task", "model", "training", "part", "positions", "scores", "optimizer", "maker")
"""Columns whose values say what they are: `rope`, and not `positions rope`."""


@dataclass(frozen=True)
class Names:
    """Of runs, by id. `columns` are the settings that differ, `values` those of a run; `names` are one for each setting.

    >>> contents = {run: {"model": {"name": "lstm", "width": width}} for run, width in (("a", 32), ("b", 64))}
    >>> name_runs(contents)
    Names(columns=('width',), values={'a': (32,), 'b': (64,)}, names={'a': 'width 32', 'b': 'width 64'})
    """

    columns: tuple[str, ...]
    values: Mapping[str, tuple[Value, ...]]
    names: Mapping[str, str]

    def with_seeds(self, contents: Mapping[str, Content]) -> dict[str, str]:
        """A name for each run: its setting's, and its seed where seeds differ.

        >>> seeds = {run: {"model": {"name": "lstm"}, "seed": seed} for run, seed in (("a", 0), ("b", 1))}
        >>> name_runs(seeds).with_seeds(seeds)
        {'a': 'seed 0', 'b': 'seed 1'}
        """
        several = len({content.get("seed") for content in contents.values()}) > 1
        if not several:
            return dict(self.names)
        one = len(set(self.names.values())) == 1 and not any(content.get("label") for content in contents.values())
        seeds = {run: f"seed {content.get('seed')}" for run, content in contents.items()}
        return seeds if one else {run: f"{self.names[run]}, {seeds[run]}" for run in contents}


def called(content: Content, task: str, model: str, schedule: str) -> dict[str, Any]:
    """The content with these names for what it is about: what users wrote has a name of its own.

    >>> called({"task": {"kind": "my_task.py:Copy"}}, "copy", "lstm", "delayed")["task"]
    {'kind': 'my_task.py:Copy', 'name': 'copy'}
    """
    names = {"task": task, "model": model, "schedule": schedule}
    known = {key: content[key] if isinstance(content.get(key), Mapping) else {} for key in names}
    return {**content, **{key: {**known[key], "name": name} for key, name in names.items()}}


def name_runs(contents: Mapping[str, Content]) -> Names:
    """Names for runs, from what differs between them; a label that its author gave comes first."""
    kinds = {run: repr([item for item in content.items() if item[0] not in NOT_SETTINGS]) for run, content in contents.items()}
    distinct: dict[str, Content] = {}  # what seeds share is looked at once
    for run, content in contents.items():
        distinct.setdefault(kinds[run], content)
    settings = {kind: dict(_flat(LEFT_OUT | _versioned(content, distinct))) for kind, content in distinct.items()}
    chosen = _columns(settings)
    values = _numbered({kind: tuple(own.get(path) for path in chosen.values()) for kind, own in settings.items()})
    names = {kind: _name(chosen, values[kind]) or _usual(settings[kind]) for kind in settings}
    named = {run: names[kind] for run, kind in kinds.items()}
    return Names(tuple(chosen), {run: values[kind] for run, kind in kinds.items()}, _labelled(named, contents))


def _numbered(values: Mapping[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """With the text of a rule, which has several lines, as its version: the first that is seen is 1."""
    texts = [[each for each in dict.fromkeys(column) if isinstance(each, str)] for column in zip(*values.values(), strict=True)]
    return {
        kind: tuple(
            f"version {known.index(each) + 1}" if isinstance(each, str) and "\n" in each else each
            for each, known in zip(own, texts, strict=True)
        )
        for kind, own in values.items()
    }


def shown(value: Value) -> str:
    """A setting as tables have it.

    >>> shown(3e-4), shown((1, 25)), shown(None), shown(True)
    ('0.0003', '1…25', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        between = "…" if len(value) == 2 and all(isinstance(each, int) for each in value) else ", "
        return between.join(map(shown, value)) or "–"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def described(thing: Content, deep: int = 5) -> str:
    """A thing that a run is made of, with all that it is made with; what lies more than so `deep` in it is left out.

    >>> described({"kind": "copy", "letters": "unique", "alphabet": 7, "reverse": False})
    'copy (letters unique, alphabet 7, reverse no)'
    >>> described({"kind": "mixture", "tasks": [{"kind": "sort"}, {"kind": "count", "of": {"kind": "sort", "numbers": 9}}]})
    'mixture (tasks sort and count (of sort (numbers 9)))'
    """
    name = cut(str(thing.get("name", thing.get("kind", ""))))
    pairs = [(cut(key.replace("_", " ")), _value(value, deep - 1)) for key, value in _made_with(thing)] if deep else []
    told = ", ".join(f"{key} {value}" for key, value in pairs if value)
    return f"{name} ({told})" if told else name


def _made_with(thing: Content) -> Iterable[tuple[str, Any]]:
    for key, value in thing.items():
        if key == "arguments" and isinstance(value, Mapping):
            yield from value.items()
        elif key not in ("name", "kind"):
            yield key, value


def _value(value: Any, deep: int) -> str:
    """Nothing of what has lines of its own, like the text of a rule, and of what is not said."""
    if isinstance(value, Mapping):
        return described(value, deep)
    if isinstance(value, (list, tuple)):
        return " and ".join(filter(None, (_value(each, deep - 1) for each in value))) if deep > 0 else ""
    return "" if value in (None, "") or "\n" in str(value) else cut(shown(value))


def _versioned(content: Content, contents: Mapping[str, Content]) -> dict[str, Any]:
    """With the text of a user's file as its version: the first that is seen is 1."""
    files = content.get("files")
    if not isinstance(files, Mapping):
        return dict(content)
    texts = {name: [text for other in contents.values() if (text := _text(other, name)) is not None] for name in files}
    seen = {name: list(dict.fromkeys(each)) for name, each in texts.items()}
    edited = {name: f"version {seen[name].index(text) + 1}" for name, text in files.items() if len(seen[name]) > 1}
    return {**content, "files": edited}


def _text(content: Content, name: str) -> Any:
    files = content.get("files")
    return files.get(name) if isinstance(files, Mapping) else None


def _flat(data: Any, path: Path = ()) -> Iterable[tuple[Path, Value]]:
    """A value for each path; a thing that has a name or a kind is a value itself, and so is a list of plain values."""
    if isinstance(data, Mapping) and path and path[-1] == "lr" and "kind" not in data:
        yield path, ", ".join(f"{part} {shown(rate)}" for part, rate in data.items() if not isinstance(rate, Mapping))
    elif isinstance(data, Mapping):
        called = data.get("name", data.get("kind"))
        if path and isinstance(called, str):
            yield path, called
        for key, item in data.items():
            if path or key not in NOT_SETTINGS:
                yield from _flat(item, (*path, key))
    elif isinstance(data, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in data):
        for number, item in enumerate(data):
            yield from _flat(item, (*path, number))
    else:
        yield path, tuple(data) if isinstance(data, (list, tuple)) else data


def _columns(settings: Mapping[str, Mapping[Path, Value]]) -> dict[str, Path]:
    """The paths that tell settings apart, by the names of their columns: one for all that differ in the same way under the same
    word, as the rate does in every phase.
    """
    paths = dict.fromkeys(path for own in settings.values() for path in own)
    phases = {path[2] for path in paths if path[:2] == PHASES and len(path) > 2}
    told: dict[tuple[str, Hashable], list[Path]] = {}
    for path in paths:
        if _differs(path, settings):
            # Steps of two phases may differ in turn; rates rise and fall together.
            word = _longer(path) if path[:2] == PHASES and path[-1] == "length" and len(phases) > 1 else _word(path)
            told.setdefault((word, _partition(path, settings)), []).append(path)
    words = [word for word, _ in told]
    columns: dict[str, Path] = {}
    for (word, _), alike in told.items():
        path = alike[0]
        everywhere = path[:2] != PHASES or {each[2] for each in alike if len(each) > 2} == phases
        name = word if everywhere and words.count(word) == 1 else _longer(path)
        columns["/".join(map(str, path)) if name in columns else name] = path
    return columns


def _differs(path: Path, settings: Mapping[str, Mapping[Path, Value]]) -> bool:
    """Between two runs that are alike in all that it is a part of: what belongs to another model is that model's."""
    above = [path[:end] for end in range(1, len(path))]
    found: dict[Hashable, Value] = {}
    for own in settings.values():
        if found.setdefault(tuple(own.get(each) for each in above), own.get(path)) != own.get(path):
            return True
    return False


def _partition(path: Path, settings: Mapping[str, Mapping[Path, Value]]) -> Hashable:
    """Which runs are alike in it, whatever its values."""
    first: dict[Value, int] = {}
    return tuple(first.setdefault(own.get(path), place) for place, own in enumerate(settings.values()))


def _word(path: Path) -> str:
    told = [step for step in path if isinstance(step, str) and step not in INSIDE]
    if path[-1] in INSIDE or isinstance(path[-1], int):  # a thing among parts: what it is called says enough
        return "part"
    if len(told) > 1 and told[-2] == "lr":
        return f"lr {told[-1]}"
    return WORDS.get(told[-1], told[-1])


def _longer(path: Path) -> str:
    """Where one word stands for several settings."""
    if path[:2] == PHASES and len(path) > 2 and isinstance(path[2], int):
        return f"phase {path[2] + 1} {_word(path)}"
    told = [str(step) for step in path if step not in INSIDE]
    return " ".join(told[-2:])


def _name(columns: Iterable[str], values: Sequence[Value]) -> str:
    pairs = [(column, value) for column, value in zip(columns, values, strict=True) if value is not None]
    return ", ".join(shown(value) if column in ALONE else f"{column} {shown(value)}" for column, value in pairs)


def _usual(settings: Mapping[Path, Value]) -> str:
    """Of a setting that nothing is compared with."""
    return ", ".join(str(settings[path]) for path in (("model",), ("schedule",)) if path in settings)


def _labelled(names: Mapping[str, str], contents: Mapping[str, Content]) -> dict[str, str]:
    """With labels; where one stands for several settings, what differs is said too."""
    labels = {run: str(content.get("label") or "") for run, content in contents.items()}
    settings: dict[str, set[str]] = {}
    for run, label in labels.items():
        settings.setdefault(label, set()).add(names[run])
    told = {run: label if len(settings[label]) == 1 else f"{label}, {names[run]}" for run, label in labels.items()}
    return {run: told[run] if label else names[run] for run, label in labels.items()}
