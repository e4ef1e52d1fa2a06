"""Programs that write what was read: once more, backwards, or in order.

    <bos> x1 … xn <sep>  →  y1 … yn <eos>

Read from <sep> on, each y after the right ones before it. Copying and reversing need tokens that do not repeat (Lemma 7 of
arXiv 2505.21785; with repeats neither is in the class, Lemma 8). Sorting needs only counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.theory.primitives import Constant, Count, Predicate, any_of, back, count, exists, token
from lengthlab.theory.program import Program

BOS, SEP, EOS = "<bos>", "<sep>", "<eos>"


def unique_copy(alphabet: Sequence[str]) -> Program:
    """What followed the token here when it was first read; <bos> stands for <sep>, and <sep> for <eos>.

    >>> from lengthlab.theory.plain import say
    >>> [say(unique_copy("abc"), ("<bos>", *"bca", "<sep>", *"bca"), at) for at in (4, 5, 6, 7)]
    ['b', 'c', 'a', '<eos>']
    """
    after = {a: back(token(a)).named(f"AFTER_{a}") for a in (BOS, *alphabet)}
    now = {a: token(SEP if a == BOS else a) for a in (BOS, *alphabet)}

    def follows(read: str) -> Predicate:
        return any_of(now[a] & exists(after[a] & token(read)).named(f"PAIR_{a}_{read}") for a in now)

    return Program({**{b: follows(b) for b in alphabet}, EOS: follows(SEP)})


def unique_reverse(alphabet: Sequence[str]) -> Program:
    """What stood before the token here, while the input was read: what is written has the same pairs the other way round.

    >>> from lengthlab.theory.plain import say
    >>> [say(unique_reverse("abc"), ("<bos>", *"bca", "<sep>", *"acb"), at) for at in (4, 5, 6, 7)]
    ['a', 'c', 'b', '<eos>']
    """
    inside = count(token(SEP)).equals(0).named("INPUT")
    after = {a: (back(token(a)) & inside).named(f"AFTER_{a}") for a in (BOS, *alphabet)}

    def precedes(read: str) -> Predicate:
        return any_of(token(b) & exists(after[read] & token(b)).named(f"PAIR_{read}_{b}") for b in alphabet)

    return Program({**{a: precedes(a) | (token(SEP) & back(token(a))) for a in alphabet}, EOS: precedes(BOS)})


def sorting(alphabet: Sequence[str]) -> Program:
    """The token whose turn it is: as many have been written as smaller ones were read. `alphabet` is in order; tokens may
    repeat.

    >>> from lengthlab.theory.plain import say
    >>> [say(sorting("abc"), ("<bos>", *"cac", "<sep>", *"acc"), at) for at in (4, 5, 6, 7)]
    ['a', 'c', 'c', '<eos>']
    """
    inside = count(token(SEP)).equals(0).named("INPUT")
    written = (count(~inside) - 1).named("WRITTEN")
    smaller: Count = Constant(0)
    says: dict[str, Predicate] = {}
    for a in alphabet:
        here = count(token(a) & inside)
        upto = (smaller + here if says else here).named(f"UPTO_{a}")
        says[a] = (written >= smaller) & (written < upto)
        smaller = upto
    return Program({**says, EOS: written.equals(smaller)})
