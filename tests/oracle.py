"""Modulo-recall, answered a second time: written from the statement of the task alone, in plain Python.

    <bos> k1 v1 k2 v2 ... kn vn <modulo> m <recall> kj vj

A key may be of several words, and either question may be left out. Nothing here looks at how the package draws or solves a
sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """A sequence taken apart: its pairs, the key asked for, what it says to each question and what it should say."""

    keys: list[str]
    values: list[int]
    asked: str | None
    said: dict[str, str]
    right: dict[str, str]


def read(words: Sequence[str], modulus: int, key_words: int = 1) -> Reading:
    """Take a sequence apart from left to right; a word out of place is an AssertionError that names it.

    >>> read("<bos> k3 4 k0 9 <modulo> 3 <recall> k0 9".split(), modulus=10).right
    {'modulo': '3', 'recall': '9'}
    """
    rest = list(words)
    said: dict[str, str] = {}
    right: dict[str, str] = {}
    asked: str | None = None
    assert rest.pop(0) == "<bos>", f"does not start with <bos>: {words}"

    keys: list[str] = []
    values: list[int] = []
    while rest and not rest[0].startswith("<"):
        keys.append(" ".join(_key(rest.pop(0)) for _ in range(key_words)))
        values.append(_digit(rest.pop(0)))
    assert keys, f"has no pair: {words}"
    assert len(set(keys)) == len(keys), f"repeats a key: {words}"

    if rest and rest[0] == "<modulo>":
        rest.pop(0)
        said["modulo"] = str(_digit(rest.pop(0)))
        total = 0
        for value in values:
            total = (total + value) % modulus
        right["modulo"] = str(total)
    if rest and rest[0] == "<recall>":
        rest.pop(0)
        asked = " ".join(_key(rest.pop(0)) for _ in range(key_words))
        said["recall"] = str(_digit(rest.pop(0)))
        assert asked in keys, f"asks for {asked}, which it never told: {words}"
        right["recall"] = str(values[keys.index(asked)])
    assert said, f"asks nothing: {words}"
    assert not rest, f"goes on after its questions with {rest}: {words}"
    return Reading(keys, values, asked, said, right)


def _key(word: str) -> str:
    assert word[0] == "k", f"{word} is not a key"
    assert word[1:].isdigit(), f"{word} is not a key"
    return word


def _digit(word: str) -> int:
    assert word.isdigit(), f"{word} is not a digit"
    return int(word)
