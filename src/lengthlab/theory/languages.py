"""Programs for formal languages: which symbols may come next, and whether the word may end, after each of its prefixes.

    <bos> x1 … xn <eos>

Read at every position, on prefixes of words of the language. Position i holds the i-th symbol, <bos> the 0-th.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations

from lengthlab.theory.primitives import And, Periodic, Predicate, all_of, back, count, token
from lengthlab.theory.program import Program

EOS = "<eos>"
ALWAYS = And(())
Allowed = Mapping[str, Predicate]
"""Where each symbol, or the end, may come next."""


def dyck(depth: int) -> Allowed:
    """Brackets a and b, nested up to a depth: D1 = (ab)*, and D(n+1) = (a Dn b)*."""
    open_now = (count(token("a")) - count(token("b"))).named("OPEN")
    return {"a": open_now < depth, "b": open_now > 0, EOS: open_now.equals(0)}


def repeated(symbol: str, times: int) -> Allowed:
    """(aa)*, (aaaa)*: the position alone tells where a word may end."""
    return {symbol: ALWAYS, EOS: Periodic(times, 0)}


def alternating(first: str, second: str, times: int = 1) -> Allowed:
    """(ab)*, or (abab)* with `times` = 2."""
    return {first: ~token(first), second: token(first), EOS: Periodic(2 * times, 0)}


def ones(symbol: str = "1") -> Allowed:
    """Tomita 1: no other symbol at all."""
    return {symbol: ALWAYS, EOS: ALWAYS}


def no_three(symbol: str = "0", other: str = "1") -> Allowed:
    """Tomita 4: no symbol three times in a row."""
    return {symbol: ~(token(symbol) & back(token(symbol))), other: ALWAYS, EOS: ALWAYS}


def four_runs(first: str = "0", second: str = "1") -> Allowed:
    """Tomita 7, 0*1*0*1*: from the second symbol back to the first once at most."""
    returns = count(token(first) & back(token(second))).named("RETURNS")
    return {first: ~(token(second) & (returns >= 1)), second: ALWAYS, EOS: ALWAYS}


def of_sets(allowed: Allowed, spell: Callable[[Sequence[str]], str | None]) -> Program:
    """A program that says the set of what may come next; `spell` has the token of a set, None where a set has none.

    >>> from lengthlab.theory.plain import say
    >>> program = of_sets(dyck(2), lambda symbols: "".join(symbols) or None)
    >>> [say(program, ("<bos>", *"aab"), at) for at in range(4)]
    ['a<eos>', 'ab', 'b', 'ab']
    """
    symbols = list(allowed)
    may = {symbol: allowed[symbol].named(f"MAY_{symbol}") for symbol in symbols}
    says = {}
    for chosen in chain.from_iterable(combinations(symbols, size) for size in range(1, len(symbols) + 1)):
        word = spell(chosen)
        if word is not None:
            says[word] = all_of(may[symbol] if symbol in chosen else ~may[symbol] for symbol in symbols)
    return Program(says)
