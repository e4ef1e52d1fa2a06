"""What runs are about: a sample of the task with the scored positions set off, what theory promises, and what models are made
of, as training wrote it down; of older runs, what their `run.json` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lengthlab.report.compared import Compared
from lengthlab.report.page import Block, Details, Heading, Span, Table, Text, Words

DEEPEST = 12
"""So far is a line of an outline indented at most."""
MOST_LINES = 200


def portraits(groups: Sequence[Compared]) -> Iterator[Block]:
    """The task of each group, and its models, each once; how many tell nothing of themselves."""
    silent = 0
    for group in groups:
        told = [*_task(group), *_models(group)]
        silent += not told
        yield from [Heading(group.title), *told] if told else []
    if silent:
        yield Text(
            f"Of {silent} of {len(groups)} groups of runs neither a sample nor the parts of models are known: they were "
            "trained before these were kept, or are known by their rows alone."
        )


def _task(group: Compared) -> Iterator[Block]:
    told = group.first.portrait
    words, scored = told.get("sample"), told.get("scored")
    if isinstance(words, list) and isinstance(scored, dict):
        asked = {place: question for question, places in scored.items() for place in _places(places)}
        yield Text("A sample; what is set off is an answer, and is scored:")
        yield Text(_sample(list(map(str, words)), asked))
        yield Text(f"Questions: {', '.join(map(str, scored))}.")
    theory = told.get("theory")
    if isinstance(theory, dict):
        why = ": ".join(filter(None, (str(theory.get("citation", "")), str(theory.get("reason", "")))))
        says = Span(str(theory.get("says", "unknown")), "emphasis")
        yield Text(("What theory promises of transformers that reach beyond their training lengths: ", says, f" ({why})."))


def _places(data: Any) -> list[int]:
    return [place for place in data if isinstance(place, int)] if isinstance(data, list) else []


def _sample(words: Sequence[str], asked: Mapping[int, str]) -> Words:
    found: list[str | Span] = []
    for place, word in enumerate(words):
        found += [Span(word, "strong") if place in asked else Span(word, "code"), " "]
    return tuple(found)


def _models(group: Compared) -> Iterator[Block]:
    """An outline for each composition, with the settings that have it."""
    owners: dict[Table, list[str]] = {}
    for setting in group.settings:
        outline = _outline(setting.first.portrait, setting.first.content)
        if outline:
            owners.setdefault(outline, []).append(setting.name)
    for outline, names in owners.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Details(f"{names[0]}{others}: what it is made of", (outline,))


def _outline(portrait: Mapping[str, Any], content: Mapping[str, Any]) -> Table | None:
    parts = portrait.get("parts")
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        return Table(("part", "parameters", "at first"), tuple(map(_part, parts)))
    model = content.get("model")
    if not isinstance(model, Mapping) or set(model) <= {"name"}:
        return None
    return Table(("part",), tuple((line,) for line in islice(_walked(model), MOST_LINES)))


def _part(part: Mapping[str, Any]) -> tuple[Words, ...]:
    depth = part.get("depth")
    size = part.get("parameters")
    text = _indented(str(part.get("text", "")), depth if isinstance(depth, int) else 0)
    return text, f"{size:,}" if isinstance(size, int) else "–", "off" if part.get("off") else ""


def _walked(data: Any, depth: int = 0, left: int = 3 * DEEPEST) -> Iterator[Words]:
    """A line for each thing that has a name or a kind, with its plain values; a file may be nested deeper than a model is."""
    if not left:
        return
    if isinstance(data, Mapping):
        called = data.get("name", data.get("kind"))
        plain = [
            f"{key} {value}"
            for key, value in data.items()
            if key not in ("name", "kind") and isinstance(value, int | float | str)
        ]
        if isinstance(called, str):
            yield _indented(", ".join([called, *plain]), depth)
        for value in data.values():
            yield from _walked(value, depth + isinstance(called, str), left - 1)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _walked(value, depth, left - 1)


def _indented(text: str, depth: int) -> Words:
    return Span(f"{'│ ' * min(depth, DEEPEST)}{text}", "code")
