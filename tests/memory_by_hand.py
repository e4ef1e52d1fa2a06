"""The tasks of long memory, answered a second time: from their statements, in plain Python, one token after the other.

Nothing here looks at how the package draws or solves a sequence. Each reads the words of a whole sequence and gives what has to
be said, by the position after which it is asked; a sequence that is not of its task is an AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence

Said = dict[int, str]


def passkey(words: Sequence[str], digits: int) -> Said:
    """
    >>> passkey("<bos> a <key> 4 2 b <query> 4 2".split(), 2)
    {6: '4', 7: '2'}
    """
    assert (words[0], words.count("<key>"), words.count("<query>")) == ("<bos>", 1, 1), words
    hidden, asked = words.index("<key>"), words.index("<query>")
    assert asked == len(words) - digits - 1
    assert all(not word.isdigit() for place, word in enumerate(words) if not 0 < place - hidden <= digits and place < asked)
    return {asked + step: words[hidden + 1 + step] for step in range(digits)}


def needles(words: Sequence[str], digits: int, number: int, asked: int) -> Said:
    """
    >>> needles("<bos> <key> K1 4 b <key> K2 5 <query> K2 5".split(), 1, 2, 1)
    {9: '5'}
    """
    rest, known, said, place = list(words), {}, {}, 0
    while place < len(rest):
        if rest[place] == "<key>":
            assert rest[place + 1] not in known, f"{rest[place + 1]} is hidden twice: {words}"
            known[rest[place + 1]] = rest[place + 2 : place + 2 + digits]
            place += 1 + digits
        elif rest[place] == "<query>":
            found = known.pop(rest[place + 1])  # none is asked for twice
            said |= {place + 1 + step: digit for step, digit in enumerate(found)}
            place += 1 + digits
        else:
            assert not rest[place].isdigit(), words
        place += 1
    assert (len(known), len(said)) == (number - asked, asked * digits), words
    return said


def variable(words: Sequence[str], hops: int, chains: int, written: bool = False) -> Said:
    """Every assignment is carried out when it is read: whoever is given a variable has its value from then on, and its chain.

    >>> variable("<bos> <var> V1 4 <var> V3 5 b <var> V2 V1 <var> V4 V3 <query> V2 4".split(), 1, 2)
    {15: '4'}
    """
    chain: dict[str, list[str]] = {}
    for place, word in enumerate(words):
        if word == "<var>":
            name, given = words[place + 1 : place + 3]
            assert name not in chain, f"{name} is given twice: {words}"
            chain[name] = [given] if given.isdigit() else [given, *chain[given]]
    asked = len(words) - 2 - hops * written
    said = chain[words[asked]]
    assert (words[asked - 1], len(chain), len(said)) == ("<query>", chains * (hops + 1), hops + 1), words
    assert sorted(map(len, chain.values())) == sorted(list(range(1, hops + 2)) * chains), words
    return {asked + place: word for place, word in enumerate(said if written else said[-1:])}


def mqar(words: Sequence[str], pairs: int) -> Said:
    """
    >>> mqar("<bos> k1 4 k2 5 k2 0 7 7 7 7 k1 9".split(), 2)
    {5: '5', 11: '4'}
    """
    keys, values = words[1 : 1 + 2 * pairs : 2], words[2 : 2 + 2 * pairs : 2]
    assert len(set(keys)) == len(set(values)) == pairs, words
    assert all(word.startswith("k") for word in keys), words
    again = {place: word for place, word in enumerate(words) if word.startswith("k") and place > 2 * pairs}
    assert sorted(again.values()) == sorted(keys), words
    assert all((place - 1) % 2 == 0 for place in again), words  # the first token of a slot
    return {place: values[keys.index(key)] for place, key in again.items()}


def pointed(words: Sequence[str], bits: int, pointers: int) -> tuple[str, Said]:
    """Whether the pointer that is asked for moved, and its bit: follow that pointer's address back from the last swap.

    >>> pointed("<bos> 0 1 1 <pointers> a @2 b @0 <swaps> a b <query> a 0".split(), 3, 2)
    ('moved', {13: '0'})
    """
    array = words[1 : 1 + bits]
    assert (words[1 + bits], words[2 + bits + 2 * pointers], words[-3]) == ("<pointers>", "<swaps>", "<query>"), words
    told = words[2 + bits : 2 + bits + 2 * pointers]
    swaps = words[3 + bits + 2 * pointers : -3]
    holder = words[-2]
    for one, other in reversed([(swaps[at], swaps[at + 1]) for at in range(0, len(swaps), 2)]):
        assert one != other, words
        holder = other if holder == one else one if holder == other else holder
    addresses = {told[at]: int(told[at + 1].removeprefix("@")) for at in range(0, len(told), 2)}
    assert len(set(addresses.values())) == pointers, words
    return "still" if holder == words[-2] else "moved", {len(words) - 2: array[addresses[holder]]}
