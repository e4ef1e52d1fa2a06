"""Programs that compare counts: which token is the most frequent, in all of a sequence or at every p-th position of it.

<bos> x1 … xn <sep>  →  answer
"""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.theory.primitives import Periodic, Predicate, all_of, any_of, back, count, exists, token
from lengthlab.theory.program import Program

SEP, EOS = "<sep>", "<eos>"


def majority(alphabet: Sequence[str]) -> Program:
    """The token that is counted more often than every other.

    >>> from lengthlab.theory.plain import say
    >>> [say(majority("abc"), ("<bos>", *"abcb", "<sep>", "b"), at) for at in (5, 6)]
    ['b', '<eos>']
    """
    number = {a: count(token(a)).named(f"COUNT_{a}") for a in alphabet}
    most = {a: all_of(number[a] > number[b] for b in alphabet if b != a) for a in alphabet}
    return Program({**{a: token(SEP) & most[a] for a in alphabet}, EOS: exists(token(SEP)) & ~token(SEP)})


def interleaved_majority(period: int, words: tuple[str, str] = ("0", "1")) -> Program:
    """The same of two tokens, for each of `period` sequences dealt out in turn: the position tells whose answer is due.

    n is a multiple of the period, so that the first answer is read where the first token of each round was.

    >>> from lengthlab.theory.plain import say
    >>> read = ("<bos>", *"011" "010" "110", "<sep>", *"010")
    >>> [say(interleaved_majority(3), read, at) for at in (10, 11, 12, 13)]
    ['0', '1', '0', '<eos>']
    """
    inside = count(token(SEP)).equals(0).named("INPUT")
    over = back(token(SEP), period).named("OVER")

    def wins(word: str, other: str, turn: int) -> Predicate:
        mine = Periodic(period, turn % period)  # the first token stands at position 1, after <bos>
        number = {each: count(token(each) & inside & mine).named(f"COUNT_{each}_{turn}") for each in (word, other)}
        return (mine & (number[word] > number[other])).named(f"WINS_{word}_{turn}")

    zero, one = words
    turns = range(1, period + 1)
    return Program(
        {
            zero: ~over & any_of(wins(zero, one, turn) for turn in turns),
            one: ~over & any_of(wins(one, zero, turn) for turn in turns),
            EOS: over,
        }
    )
