"""The formal languages a second time: as regular expressions and counts, without an automaton.

What may follow a beginning is found by trying: a symbol may, if some string of the language begins like that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import groupby, pairwise, product

Belongs = Callable[[str], bool]


def matches(pattern: str) -> Belongs:
    return lambda string: re.fullmatch(pattern, string) is not None


def third(string: str) -> bool:
    """Tomita 3: no odd run of zeros right after an odd run of ones."""
    runs = [(symbol, len(list(same)) % 2) for symbol, same in groupby(string)]
    return (("1", 1), ("0", 1)) not in pairwise(runs)


def nested(depth: int) -> Belongs:
    def belongs(string: str) -> bool:
        level = 0
        for symbol in string:
            level += 1 if symbol == "a" else -1
            if not 0 <= level <= depth:
                return False
        return level == 0

    return belongs


LANGUAGES: dict[str, tuple[str, Belongs]] = {
    "tomita-1": ("01", matches("1*")),
    "tomita-2": ("01", matches("(10)*")),
    "tomita-3": ("01", third),
    "tomita-4": ("01", lambda string: "000" not in string),
    "tomita-5": ("01", lambda string: string.count("0") % 2 == string.count("1") % 2 == 0),
    "tomita-6": ("01", lambda string: (string.count("0") - string.count("1")) % 3 == 0),
    "tomita-7": ("01", matches("0*1*0*1*")),
    "D2": ("ab", matches("(a(ab)*b)*")),
    "D3": ("ab", matches("(a(a(ab)*b)*b)*")),
    "D4": ("ab", nested(4)),
    "D12": ("ab", nested(12)),
    "(aa)*": ("a", matches("(aa)*")),
    "(aaaa)*": ("a", matches("(aaaa)*")),
    "(abab)*": ("ab", matches("(abab)*")),
}


@cache
def begins(name: str, string: str) -> bool:
    """Whether some string of the language begins like that."""
    symbols, belongs = LANGUAGES[name]
    ends = ["b" * number for number in range(13)] if name.startswith("D") else []
    ends += ["".join(end) for length in range(5) for end in product(symbols, repeat=length)]
    return any(belongs(string + end) for end in ends)


def sets(name: str, string: str) -> list[str]:
    """What may follow each symbol.

    >>> sets("D2", "aabb")
    ['{ab}', '{b}', '{ab}', '{a$}']
    """
    symbols, belongs = LANGUAGES[name]
    found = []
    for end in range(1, len(string) + 1):
        may = [symbol for symbol in symbols if begins(name, string[:end] + symbol)]
        found.append(f"{{{''.join(may)}{'$' if belongs(string[:end]) else ''}}}")
    return found
