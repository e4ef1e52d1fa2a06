"""The tasks of the retrieval, copying and counting families, answered a second time: from their statements, in plain Python.

Nothing here looks at how the package draws or solves a sequence. Each reads the words of a whole sequence and gives the words
that have to stand where answers are; a sequence that is not of its task is an AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise


def between(words: Sequence[str], first: str, last: str) -> list[str]:
    """What stands between two marks, each of which is there once."""
    assert words.count(first) == words.count(last) == 1, words
    return list(words[words.index(first) + 1 : words.index(last)])


def retrieved(words: Sequence[str], which: str, side: str) -> list[str]:
    """The neighbour of an occurrence: walk along all adjacent pairs, and keep the first or the last that fits.

    >>> retrieved("<bos> a b c b <sep> b a <eos>".split(), "first", "left")
    ['a']
    """
    context = between(words, "<bos>", "<sep>")
    asked, _, end = words[words.index("<sep>") + 1 :]
    assert end == "<eos>"
    occurs = context.count(asked)
    assert occurs == 1 if which == "unique" else occurs >= 2, f"{asked} occurs {occurs} times: {words}"
    edge = context[0] if side == "left" else context[-1]
    counts = {("left", "first"), ("left", "unique"), ("right", "last"), ("right", "unique")}
    assert (side, which) not in counts or edge != asked, f"{asked} has no {side} neighbour: {words}"
    pairs = list(pairwise(context))
    beside = [left for left, right in pairs if right == asked] if side == "left" else [r for left, r in pairs if left == asked]
    return [beside[-1] if which == "last" else beside[0]]


def rewritten(words: Sequence[str], answer: Callable[[list[str]], list[str]]) -> list[str]:
    """What comes after <sep>, the end included."""
    assert words[0] == "<bos>", words
    assert words[-1] == "<eos>", words
    return [*answer(between(words, "<bos>", "<sep>")), "<eos>"]


def backward(symbols: list[str]) -> list[str]:
    found: list[str] = []
    for symbol in symbols:
        found.insert(0, symbol)
    return found
