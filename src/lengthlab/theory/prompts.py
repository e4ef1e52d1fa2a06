"""Every input of a length, for the tasks whose programs are here: the words up to where the answer begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lengthlab.tasks import Automaton

Words = tuple[str, ...]
Valid = Callable[[Words], bool]


def neighbours(alphabet: Sequence[str], which: str, side: str, length: int) -> Iterator[Words]:
    """Of a retrieval task: contexts, and queries in them that occur once, or twice and more, with a neighbour.

    >>> [" ".join(words) for words in neighbours("ab", "unique", "left", 2)]
    ['<bos> a b <sep> b', '<bos> b a <sep> a']
    """
    for context in product(alphabet, repeat=length):
        for query in alphabet:
            times = context.count(query)
            if (times == 1 if which == "unique" else times >= 2) and _has_neighbour(context, query, side):
                yield ("<bos>", *context, "<sep>", query)


def _has_neighbour(context: Words, query: str, side: str) -> bool:
    found = context.index(query)
    return found >= 1 if side == "left" else found < len(context) - 1


def read(alphabet: Sequence[str], length: int, valid: Valid = lambda words: True) -> Iterator[Words]:
    """All sequences of so many tokens, or the valid ones, before <sep>.

    >>> [" ".join(words) for words in read("ab", 2, single_winner)]
    ['<bos> a a <sep>', '<bos> b b <sep>']
    """
    return (("<bos>", *words, "<sep>") for words in product(alphabet, repeat=length) if valid(words))


def read_once(alphabet: Sequence[str], length: int) -> Iterator[Words]:
    """The same, none of whose tokens repeats.

    >>> [" ".join(words) for words in read_once("ab", 2)]
    ['<bos> a b <sep>', '<bos> b a <sep>']
    """
    return (("<bos>", *words, "<sep>") for words in permutations(alphabet, length))


def beginnings(automaton: Automaton, length: int) -> Iterator[Words]:
    """Of a formal language: every beginning of a string."""
    strings: list[tuple[Words, int]] = [((), 0)]
    for _ in range(length):
        strings = [
            ((*read, symbol), there)
            for read, state in strings
            for number, symbol in enumerate(automaton.symbols)
            if (there := automaton.move(state, number)) >= 0
        ]
    return (("<bos>", *read, "<eos>") for read, _ in strings)


def single_winner(words: Words) -> bool:
    """Whether one token is more frequent than every other.

    >>> single_winner(("a", "b")), single_winner(("a", "b", "a"))
    (False, True)
    """
    counts = sorted((words.count(word) for word in set(words)), reverse=True)
    return len(counts) == 1 or counts[0] > counts[1]


def interleaved(alphabet: Sequence[str], period: int, length: int) -> Iterator[Words]:
    """Sequences in which one token is the most frequent among every `period`-th, wherever one begins; whole rounds alone.

    >>> [" ".join(words) for words in interleaved("01", 2, 4)][:2], list(interleaved("01", 2, 3))
    (['<bos> 0 0 0 0 <sep>', '<bos> 0 1 0 1 <sep>'], [])
    """
    if length % period:
        return iter(())
    return read(alphabet, length, lambda words: all(single_winner(words[turn::period]) for turn in range(period)))
