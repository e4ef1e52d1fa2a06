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


def most(symbols: list[str]) -> str:
    """The symbol that is there most often, alone."""
    numbers = {symbol: sum(other == symbol for other in symbols) for symbol in symbols}
    [first] = [symbol for symbol, number in numbers.items() if number == max(numbers.values())]
    return first


def most_of_turns(symbols: list[str], period: int) -> list[str]:
    assert len(symbols) % period == 0
    return [most([symbol for place, symbol in enumerate(symbols) if place % period == turn]) for turn in range(period)]


def in_order(symbols: list[str]) -> list[str]:
    """Number by number, the least of those that are left."""
    left, found = [int(symbol) for symbol in symbols], []
    while left:
        found.append(str(min(left)))
        left.remove(min(left))
    assert len(set(found)) == len(found), f"repeats a number: {symbols}"
    return found


def even_or_odd(bits: list[str]) -> list[str]:
    odd = False
    for bit in bits:
        odd ^= {"0": False, "1": True}[bit]
    return ["odd" if odd else "even"]


def added(words: Sequence[str]) -> list[str]:
    """School addition from the right, a carry at a time.

    >>> added("<bos> 1 1 + 1 = 1 0 0 <eos>".split())
    ['1', '0', '0', '<eos>']
    """
    one, other = between(words, "<bos>", "+"), between(words, "+", "=")
    for operand in (one, other):
        assert operand, words
        assert len(operand) == 1 or operand[0] == "1", f"{operand} begins with 0: {words}"
    digits: list[str] = []
    carry = 0
    while one or other or carry:
        carry += sum(int(number.pop()) for number in (one, other) if number)
        digits.insert(0, str(carry % 2))
        carry //= 2
    return [*digits, "<eos>"]
