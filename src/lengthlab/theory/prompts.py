"""Every input of a length, for the tasks whose programs are here: the words up to where the answer begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, permutations, product
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


def passkeys(values: Sequence[str], letters: Sequence[str], digits: int, free: int) -> Iterator[Words]:
    """Of a passkey: every key in every gap of every noise of so many tokens.

    >>> [" ".join(words) for words in passkeys("01", "a", 1, 1)][:3]
    ['<bos> <key> 0 a <query>', '<bos> a <key> 0 <query>', '<bos> <key> 1 a <query>']
    """
    for key in product(values, repeat=digits):
        yield from _hidden([("<key>", *key)], ("<query>",), letters, free)


def needles(values: Words, names: Words, letters: Words, sizes: tuple[int, int], free: int) -> Iterator[Words]:
    """Of needles of which one is asked for: `sizes` says how many there are, and of how many digits."""
    number, digits = sizes
    for chosen in permutations(names, number):
        for keys in product(product(values, repeat=digits), repeat=number):
            pieces = [("<key>", name, *key) for name, key in zip(chosen, keys, strict=True)]
            for asked in chosen:
                yield from _hidden(pieces, ("<query>", asked), letters, free)


def variables(values: Words, names: Words, letters: Words, sizes: tuple[int, int], free: int) -> Iterator[Words]:
    """Of variable tracking: `sizes` says how many chains there are, and of how many assignments."""
    chains, steps = sizes
    orders = sorted(set(permutations([chain for chain in range(chains) for _ in range(steps)])))
    for chosen in permutations(names, chains * steps):
        for first in product(values, repeat=chains):
            for order in orders:
                pieces, given = [], {chain: [first[chain], *chosen[chain * steps :][:steps]] for chain in range(chains)}
                for chain in order:
                    value, name, *_ = given[chain]
                    pieces.append(("<var>", name, value))
                    given[chain].pop(0)
                for chain in range(chains):
                    yield from _hidden(pieces, ("<query>", given[chain][0]), letters, free)


def _hidden(pieces: Sequence[Words], tail: Words, letters: Sequence[str], free: int) -> Iterator[Words]:
    """Pieces in every gap of every noise of so many tokens, in their order."""
    for noise in product(letters, repeat=free):
        for gaps in combinations_with_replacement(range(free + 1), len(pieces)):
            words: list[str] = ["<bos>"]
            for piece, start, end in zip(pieces, (0, *gaps), gaps, strict=False):
                words += (*noise[start:end], *piece)
            yield (*words, *noise[gaps[-1] :], *tail)
