"""The id of a run: a hash of its content. Version 0.1 kept 12 of its digits, and published rows have them; now it is 20."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

DIGITS = 20
SHORT = 12
NOT_CONTENT = ("evaluate", "label")
"""Measuring at more lengths never trains again, nor does another name."""


def hash_of(data: Mapping[str, Any], without: Iterable[str] = NOT_CONTENT, digits: int = DIGITS) -> str:
    """Of the canonical JSON of a run's content, as `run.json` holds it; nothing is built for that.

    >>> hash_of({"batch": 4, "seed": 0}) == hash_of({"seed": 0, "batch": 4, "evaluate": [25]})
    True
    """
    kept = {key: value for key, value in data.items() if key not in without}
    return _hash(json.dumps(kept, sort_keys=True), digits)


def around_seed(data: Mapping[str, Any]) -> tuple[str, str]:
    """What stands before the seed and after it in the text that is hashed: the same for runs that differ in it alone.

    >>> before, after = around_seed({"task": "copy", "seed": 0, "batch": 4})
    >>> before, after, hash_around(before, 3, after) == hash_of({"task": "copy", "seed": 3, "batch": 4})
    ('{"batch": 4, "seed": ', ', "task": "copy"}', True)
    """
    kept = {key: value for key, value in data.items() if key not in (*NOT_CONTENT, "seed")}
    before, after = ({key: kept[key] for key in kept if (key < "seed") == first} for first in (True, False))
    return f'{json.dumps(before, sort_keys=True)[:-1]}, "seed": ', f", {json.dumps(after, sort_keys=True)[1:]}"


def hash_around(before: str, seed: int, after: str) -> str:
    """The id of the run with this seed."""
    return _hash(f"{before}{seed}{after}", DIGITS)


def _hash(text: str, digits: int) -> str:
    return sha256(text.encode()).hexdigest()[:digits]


def same_run(one: str, other: str) -> bool:
    """Whether two ids name one run: the shorter one, of 12 digits or more, is the beginning of the other.

    >>> same_run("0123456789ab", "0123456789abcdef0123"), same_run("0123", "0123456789ab")
    (True, False)
    """
    short, long = sorted((one, other), key=len)
    return len(short) >= SHORT and long.startswith(short)


def known_as(run_id: str, ids: Iterable[str]) -> str | None:
    """The one of `ids` that names this run, long or short.

    >>> known_as("0123456789abcdef0123", ["ffff456789ab", "0123456789ab"])
    '0123456789ab'
    """
    return next((known for known in ids if same_run(run_id, known)), None)
