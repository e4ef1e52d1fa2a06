"""Checkpoints that were saved while a part was off: what they say of it, and the one line that closes it again."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lengthlab.errors import LabError, a_kind, explain, require
from lengthlab.switch import Delay, DelayWarning, Instead, Stages, Until, delay, delay_attention
from lengthlab.switch.record import FIELD, METRIC, Record, instead_of, put_back, records_in, take_from_config

CONFIG = "config.json"
TRAINER_STATE = "trainer_state.json"
Source = str | PathLike[str] | Mapping[str, Any]
"""A folder of Hugging Face's, a checkpoint of Lightning or of your own, what is in one, or the state of a delay."""
CALLBACK = "DelayedAttention"
"""Under this name Lightning keeps the state of our callback."""
TRAINER_KEY = "lengthlab.delay"
"""Under this name the Trainer keeps it."""


def close_again(
    model: nn.Module, saved: Source | None = None, until: Until | None = None, instead: Instead | None = None
) -> Delay | Stages:
    """Close what was closed when the checkpoint was saved, with the steps it had made: weights alone load open.

    `saved` is where that is written: nothing for a model of `from_pretrained`, whose configuration says it; a checkpoint's
    folder or file; or `delay.state_dict()` as you kept it. `until` and `instead` are those that were saved if nothing is said,
    but a function is not saved: say it again.

    >>> from lengthlab import delay_attention
    >>> saved = delay_attention(nn.TransformerEncoderLayer(8, nhead=2), until=2_000).state_dict()
    >>> close_again(nn.TransformerEncoderLayer(8, nhead=2), saved)
    Delay, closed until step 2000:
      module     parameters  while off
      self_attn         288  (zeros, None)
    """
    taken = take_from_config(model)
    try:
        found = closed_in(saved) if saved is not None else tuple(each for _, kept in taken for each in records_in(kept))
        where = "the configuration of the model" if saved is None else "the checkpoint"
        require(len(found) > 0, f"{where} says of no part that it was off; was it saved open, or without lengthlab's record?")
        made = [_again(model, record, until if record is found[0] else None, instead) for record in found]
    except LabError:
        put_back(taken)
        raise
    return made[0] if len(made) == 1 else Stages(*made)


def closed_in(saved: Source) -> tuple[Record, ...]:
    """What a checkpoint says of parts that were off when it was saved; nothing, if none was.

    >>> closed_in({"sites": ["attn"], "until": 9, "steps": 4, "opened_at": None, "is_open": False})
    (Record(sites=('attn',), instead=(), until=9, steps=4, rate=1.0, warm_up=0, ramp=0, rule=None),)
    """
    content = saved if isinstance(saved, Mapping) else _content(Path(saved))
    callbacks = content.get("callbacks") or content.get("stateful_callbacks")
    kept = callbacks if isinstance(callbacks, Mapping) else {}
    places = (content.get(FIELD), kept.get(CALLBACK), kept.get(TRAINER_KEY), content if "sites" in content else None)
    entry = next((each for each in places if each), content if "stages" in content else [])
    if isinstance(entry, Mapping):
        states = entry.get("stages", [entry])
        entry = [each for each in states if not each.get("is_open", False)]
    return records_in(entry)


def warn_if_saved_closed(module: Any, checkpoint: Mapping[str, Any]) -> None:
    """What Lightning calls when a checkpoint is loaded, `load_from_checkpoint` too. It does not know callbacks then; so:

        class Mine(LightningModule):
            on_load_checkpoint = warn_if_saved_closed

    In a fit, with our callback, nothing has to be said: that closes again by itself.
    """
    records = closed_in(checkpoint)
    if records and not _has_callback(module):
        text = (
            f"the checkpoint was saved with {records[0]}, and loads open. "
            "To go on where it was: lengthlab.close_again(model, path_of_the_checkpoint)"
        )
        warnings.warn(text, DelayWarning, stacklevel=2)


def _again(model: nn.Module, record: Record, until: Until | None, instead: Instead | None) -> Delay:
    chosen = until if until is not None else record.until if isinstance(record.until, int) else None
    if chosen is None and record.until == METRIC:
        text = "it was closed until a metric says so, and a function is not saved: say until=, or call open() yourself"
        warnings.warn(text, DelayWarning, stacklevel=3)
    late = isinstance(chosen, int) and chosen <= record.steps
    require(not late, f"until={chosen} is in the past: the checkpoint was saved after {record.steps} steps")
    made = _closed_as(model, record, chosen, instead)
    made.go_to(record.steps)
    return made


def _closed_as(model: nn.Module, record: Record, until: Until | None, instead: Instead | None) -> Delay:
    """With what was given in its place then, where that can be said in a word."""
    require(
        record.rule is None,
        f"it was on in part, by {record.rule}: make it with by_chance or by_window again, and load its state",
    )
    modules = [_named(model, name) for name in record.sites]
    options = until, instead, record.rate, record.warm_up, record.ramp
    made = _found_again(model, record, until) if instead is None else None
    if made is not None and [site.module for site in made.sites] == modules:
        return made
    if made is not None:
        made.remove()
    made = delay(model, modules, *options)
    words = dict(zip(modules, record.instead, strict=False))
    differ = [site for site in made.sites if words.get(site.module, instead_of(site)) != instead_of(site)]
    if instead is not None or not differ:
        return made
    made.remove()
    word = words[differ[0].module]
    alike = word in ("zeros", "input") and set(words.values()) == {word}
    require(alike, f"'{differ[0].name}' gave {word} while it was off: say instead=, as when it was closed first")
    return _closed_as(model, record, until, "zeros" if word == "zeros" else "input")


def _found_again(model: nn.Module, record: Record, until: Until | None) -> Delay | None:
    """All attention, as it is found now; None where it is not."""
    try:
        return delay_attention(model, until=until, rate=record.rate, warm_up=record.warm_up, ramp=record.ramp)
    except LabError:
        return None


def _named(model: nn.Module, name: str) -> nn.Module:
    """The module of this name, or of the only one that is the same but for what a wrapper has put before it."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if name in modules:
        return modules[name]
    alike = [each for each in modules if each and (f".{name}".endswith(f".{each}") or f".{each}".endswith(f".{name}"))]
    longest = [each for each in alike if len(each) == max(map(len, alike))]
    require(len(longest) == 1, f"'{name}' was off when the checkpoint was saved, and the model has no module of that name")
    return modules[longest[0]]


def _content(path: Path) -> Mapping[str, Any]:
    """What a folder or a file says, without the weights where they lie apart."""
    if path.is_dir():
        files = [path / name for name in (CONFIG, TRAINER_STATE) if (path / name).is_file()]
        require(len(files) > 0, f"{path} has no {CONFIG}: name the folder or the file of a checkpoint")
        told: dict[str, Any] = {}
        for file in files:
            told |= json.loads(file.read_text(encoding="utf-8"))
        return told
    require(path.is_file(), f"there is no {path}")
    if path.suffix == ".json":
        return dict(json.loads(path.read_text(encoding="utf-8")))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever torch makes of the file
        hint = "load it yourself and give what is in it: close_again(model, torch.load(...))"
        raise LabError(f"{path} cannot be read ({explain(error)}); {hint}") from error
    require(isinstance(content, Mapping), f"{path} has {a_kind(content)}, and no record of a delay")
    return dict(content)


def _has_callback(module: Any) -> bool:
    """Whether the module is in a trainer of Lightning with our callback."""
    try:
        callbacks = module.trainer.callbacks
    except (AttributeError, RuntimeError):  # it is in none
        return False
    return any(type(each).__name__ == CALLBACK for each in callbacks)
