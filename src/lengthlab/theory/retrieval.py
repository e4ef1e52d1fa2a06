"""Programs that find a token beside another: left or right of the only occurrence of the query, or of the first.

    <bos> x1 … xn <sep> q  →  answer

Read at q. Lemmas 4 and 5 of arXiv 2505.21785 say that they exist; these are written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from lengthlab.theory.primitives import Predicate, any_of, back, count, exists, token
from lengthlab.theory.program import Program

Side = Literal["left", "right"]


def unique(alphabet: Sequence[str], side: Side) -> Program:
    """The neighbour of the only occurrence of the query: the pair of the two has been read.

    >>> from lengthlab.theory.plain import say
    >>> say(unique("abc", "right"), ("<bos>", *"abca", "<sep>", "b"), at=6)
    'c'
    """
    after = {a: back(token(a)).named(f"AFTER_{a}") for a in alphabet}
    pair = {(a, b): exists(after[a] & token(b)).named(f"PAIR_{a}_{b}") for a in alphabet for b in alphabet}
    return _neighbour(alphabet, lambda q, a: pair[a, q] if side == "left" else pair[q, a])


def first(alphabet: Sequence[str], side: Side) -> Program:
    """The neighbour of the first occurrence of the query: where it stood, its count was 1.

    >>> from lengthlab.theory.plain import say
    >>> say(first("abc", "left"), ("<bos>", *"cabba", "<sep>", "b"), at=7)
    'a'
    """
    starts = {q: (token(q) & count(token(q)).equals(1)).named(f"FIRST_{q}") for q in alphabet}

    def beside(q: str, a: str) -> Predicate:
        if side == "left":
            return exists(starts[q] & back(token(a))).named(f"LEFT_{q}_{a}")
        return exists(back(starts[q]) & token(a)).named(f"RIGHT_{q}_{a}")

    return _neighbour(alphabet, beside)


def _neighbour(alphabet: Sequence[str], beside: Callable[[str, str], Predicate]) -> Program:
    """Next is `a` where the token here is one that `a` stands beside."""
    return Program({a: any_of(token(q) & beside(q, a) for q in alphabet) for a in alphabet})
