"""Programs for formal languages: after each symbol, the set of what may come next, `$` for the end among it.

    <bos> x1 … xn <eos>

Read at x1 … xn, on beginnings of strings of the language. Position i holds the i-th symbol, <bos> the 0-th.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

from lengthlab.theory.primitives import And, Periodic, Predicate, all_of, back, count, token
from lengthlab.theory.program import Program

END = "$"
ALWAYS = And(())
Allowed = Mapping[str, Predicate]
"""Where each symbol, or the end, may come next; symbols that may never are left out."""


def dyck(depth: int) -> Allowed:
    """D1 = (ab)*, D(n+1) = (a Dn b)*: a opens and b closes, and so many may be open at a time."""
    open_now = (count(token("a")) - count(token("b"))).named("OPEN")
    return {"a": open_now < depth, "b": open_now > 0, END: open_now.equals(0)}


def repeated(symbol: str, times: int) -> Allowed:
    """(aa)*, (aaaa)*: the position alone tells where a string may end."""
    return {symbol: ALWAYS, END: Periodic(times, 0)}


def alternating(first: str, second: str, times: int = 1) -> Allowed:
    """(ab)*, or (abab)* with `times` = 2."""
    whole = ~token(first) if times == 1 else Periodic(2 * times, 0)
    return {first: ~token(first), second: token(first), END: whole}


def only(symbol: str) -> Allowed:
    """Tomita 1: no other symbol at all."""
    return {symbol: ALWAYS, END: ALWAYS}


def not_three(symbol: str, other: str) -> Allowed:
    """Tomita 4: one symbol never three times in a row."""
    return {symbol: ~(token(symbol) & back(token(symbol))), other: ALWAYS, END: ALWAYS}


def four_runs(first: str, second: str) -> Allowed:
    """Tomita 7, 0*1*0*1*: from the second symbol back to the first once at most."""
    returns = count(token(first) & back(token(second))).named("RETURNS")
    return {first: ~(token(second) & (returns >= 1)), second: ALWAYS, END: ALWAYS}


def of_sets(allowed: Allowed, sets: Sequence[str]) -> Program:
    """A program that says which of some sets may come next; a set is written `{ab$}`, its symbols in the order of `allowed`.

    >>> from lengthlab.theory.plain import say
    >>> program = of_sets(dyck(2), ("{a$}", "{ab}", "{b}"))
    >>> [say(program, ("<bos>", *"aab"), at) for at in range(4)]
    ['{a$}', '{ab}', '{b}', '{ab}']
    """
    sometimes = {symbol: may.named(f"MAY_{symbol}") for symbol, may in allowed.items() if may != ALWAYS}
    says = {}
    for chosen in chain.from_iterable(combinations(sometimes, size) for size in range(len(sometimes) + 1)):
        word = f"{{{''.join(symbol for symbol in allowed if symbol in chosen or symbol not in sometimes)}}}"
        if word in sets:
            says[word] = all_of(may if symbol in chosen else ~may for symbol, may in sometimes.items())
    return Program(says)
