"""The words that many tasks share: marks, then symbols."""

from __future__ import annotations

MARKS = ("<pad>", "<bos>", "<sep>", "<eos>")
BOS, SEP, EOS = 1, 2, 3
FIRST = len(MARKS)
"""The token of the first symbol."""

LATIN = "abcdefghijklmnopqrstuvwxyz"


def letters_of(number: int) -> tuple[str, ...]:
    """So many symbols: a to z, then a1 to z1, and so on. A smaller alphabet is the beginning of a larger one.

    >>> letters_of(3), letters_of(28)[-3:]
    (('a', 'b', 'c'), ('z', 'a1', 'b1'))
    """
    turns = range(-(-number // len(LATIN)))
    return tuple(f"{letter}{turn or ''}" for turn in turns for letter in LATIN)[:number]
