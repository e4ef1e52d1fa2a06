"""Programs that find again what is hidden in noise: a passkey, needles, the value at the end of a chain of variables.

    <bos> x x <key> d1 … dk x x <query>  →  d1, then d2, …

Whatever stands at a known distance after a mark that is there once, or once with a name, has been read or it has not: that is
all a program needs. Only the noise grows, so that these distances are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.theory.primitives import Predicate, any_of, back, exists, token
from lengthlab.theory.program import Program


def passkey(values: Sequence[str], digits: int) -> Program:
    """The digit that stands as far behind <key> as the one to be said will stand behind <query>.

    >>> from lengthlab.theory.plain import say
    >>> say(passkey("01", 2), ("<bos>", "a", "<key>", "1", "0", "a", "<query>", "1"), at=7)
    '0'
    """
    steps = range(digits)
    due = [_ago("<query>", k).named(f"DUE_{k + 1}") for k in steps]
    hidden = [back(token("<key>"), k + 1).named(f"HIDDEN_{k + 1}") for k in steps]
    digit = {(k, d): exists(token(d) & hidden[k]).named(f"DIGIT_{k + 1}_{d}") for k in steps for d in values}
    return Program({d: any_of(due[k] & digit[k, d] for k in steps) for d in values})


def needles(values: Sequence[str], names: Sequence[str], digits: int) -> Program:
    """The same of the key that has the name behind the last <query>.

    >>> from lengthlab.theory.plain import say
    >>> read = ("<bos>", "<key>", "K0", "1", "a", "<key>", "K1", "0", "<query>", "K1")
    >>> say(needles("01", ("K0", "K1"), 1), read, at=9)
    '0'
    """
    steps = range(digits)
    due = {(k, a): (back(token("<query>"), k + 1) & _ago(a, k)).named(f"DUE_{k + 1}_{a}") for k in steps for a in names}
    key = [back(token("<key>"), k + 2).named(f"KEY_{k + 1}") for k in steps]
    hidden = {(k, a): (key[k] & back(token(a), k + 1)).named(f"HIDDEN_{k + 1}_{a}") for k in steps for a in names}
    digit = {
        (k, a, d): exists(token(d) & hidden[k, a]).named(f"DIGIT_{k + 1}_{a}_{d}") for k in steps for a in names for d in values
    }
    return Program({d: any_of(due[k, a] & digit[k, a, d] for k in steps for a in names) for d in values})


def variables(values: Sequence[str], names: Sequence[str], hops: int) -> Program:
    """Who was given which, and from that, one hop after the other, who has which value.

    >>> from lengthlab.theory.plain import say
    >>> read = ("<bos>", "<var>", "V0", "1", "<var>", "V1", "V0", "a", "<query>", "V1")
    >>> say(variables("01", ("V0", "V1"), 1), read, at=9)
    '1'
    """
    to = {a: (back(token(a)) & back(token("<var>"), 2)).named(f"TO_{a}") for a in names}
    pair = {(a, b): exists(to[a] & token(b)).named(f"GIVEN_{a}_{b}") for a in names for b in names if a != b}
    has: dict[tuple[str, str], Predicate] = {
        (a, d): exists(to[a] & token(d)).named(f"GIVEN_{a}_{d}") for a in names for d in values
    }
    for hop in range(1, hops + 1):
        has = {
            (a, d): any_of(pair[a, b] & has[b, d] for b in names if a != b).named(f"HAS_{hop}_{a}_{d}")
            for a in names
            for d in values
        }
    return Program({d: any_of(token(a) & has[a, d] for a in names) for d in values})


def _ago(word: str, distance: int) -> Predicate:
    return back(token(word), distance) if distance else token(word)
