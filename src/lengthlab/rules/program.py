"""List programs: rules made at random of one-line snippets, in a loop over two lists.

    def program(xs, ys):
        while xs and ys:
            if xs: ys.append(xs.pop(0))
            ys.reverse()
        return xs + ys

After the synthetic rules of Meta-RFFT (Hu et al. 2025, arXiv 2502.11525): there, too, 22 snippets are composed at random in
such a loop; the snippets here are our own. Every program ends: one of the two lists gets shorter in every turn, and no line of
the program makes it longer. Elements stay digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from random import Random

from lengthlab.rules.rule import Rule


@dataclass(frozen=True)
class Snippet:
    """A line about two lists, a and b. `grows` names those that it may make longer; it `shrinks` a, if a has elements."""

    text: str
    grows: str = ""
    shrinks: bool = False


SNIPPETS = (
    Snippet("if a: a.pop(0)", shrinks=True),
    Snippet("if a: a.pop()", shrinks=True),
    Snippet("if a: b.append(a.pop(0))", grows="b", shrinks=True),
    Snippet("if a: b.insert(0, a.pop())", grows="b", shrinks=True),
    Snippet("if a and a[0] % 2 == 0: a.pop(0)"),
    Snippet("if a and a[-1] % 2 == 1: a.pop()"),
    Snippet("if a and b and a[0] > b[0]: a.pop(0)"),
    Snippet("if a and b and a[-1] < b[-1]: a.pop()"),
    Snippet("if len(a) > len(b): a.pop(0)"),
    Snippet("if len(a) > 3: a.pop()"),
    Snippet("if a: b.append(a[0])", grows="b"),
    Snippet("if a: a.insert(0, a[-1])", grows="a"),
    Snippet("a.append(len(b) % 10)", grows="a"),
    Snippet("if a: a[0] = (a[0] + 1) % 10"),
    Snippet("if a: a[-1] = 9 - a[-1]"),
    Snippet("if a and b: a[0] = (a[0] + b[0]) % 10"),
    Snippet("if a and b: a[0] = max(a[0], b[-1])"),
    Snippet("if a and b: a[-1] = min(a[-1], b[0])"),
    Snippet("if a: a.append(a.pop(0))"),
    Snippet("if a: a.insert(0, a.pop())"),
    Snippet("a.reverse()"),
    Snippet("a.sort()"),
)
MOST = 5
"""Lines of a loop."""
NUMBERED = 2**16
"""Programs that have numbers: some seconds to draw."""
LISTS = ("xs", "ys")
FIRST = 3
"""The line of a program's first snippet."""

Line = tuple[int, int]
"""The number of a snippet, and which of the two lists is its a."""


@dataclass(frozen=True)
class Program:
    """The lines of a loop.

    >>> print(Program(((2, 0), (20, 1))).rule().source)
    def program(xs, ys):
        while xs and ys:
            if xs: ys.append(xs.pop(0))
            ys.reverse()
        return xs + ys
    """

    lines: tuple[Line, ...]

    def rule(self, names: tuple[str, str] = LISTS) -> Rule:
        """As Python, with the two lists called so."""
        body = "".join(f"        {_written(snippet, which, names)}\n" for snippet, which in self.lines)
        head = f"def program({names[0]}, {names[1]}):\n    while {names[0]} and {names[1]}:\n"
        return Rule.of(f"{head}{body}    return {names[0]} + {names[1]}\n")

    @property
    def words(self) -> dict[int, str]:
        """One word for each of its lines that is a snippet.

        >>> Program(((2, 0), (20, 1))).words
        {3: 's2:xs', 4: 's20:ys'}
        """
        return {line: f"s{snippet}:{LISTS[which]}" for line, (snippet, which) in enumerate(self.lines, start=FIRST)}

    @property
    def mirrored(self) -> Program:
        """With the two lists in each other's place."""
        return Program(tuple((snippet, 1 - which) for snippet, which in self.lines))

    @classmethod
    def of_words(cls, words: list[str]) -> Program:
        """The program whose lines are written so."""
        pairs = (word.removeprefix("s").split(":") for word in words)
        return cls(tuple((int(snippet), LISTS.index(which)) for snippet, which in pairs))


def draw_program(random: Random) -> Program:
    """One that ends, with up to `MOST` lines.

    >>> draw_program(Random(3)).lines
    ((20, 0), (1, 0), (10, 0))
    """
    shorter = random.randrange(2)  # the list that runs out
    shrinking = [number for number, snippet in enumerate(SNIPPETS) if snippet.shrinks]
    allowed = [line for line in _all_lines() if shorter not in _longer(line)]
    lines = [(random.choice(shrinking), shorter), *random.choices(allowed, k=random.randrange(MOST))]
    random.shuffle(lines)
    return Program(tuple(lines))


@lru_cache(maxsize=4096)
def numbered_rule(number: int) -> tuple[Program, Rule]:
    """Program number so and so, the same wherever it is asked for, and its rule. No two numbers have the same lines, nor the
    same with the two lists in each other's place.
    """
    program = _numbered(1 << number.bit_length())[number]
    return program, program.rule()


@cache
def _numbered(number: int) -> list[Program]:
    """So many programs that differ, in the order in which they are drawn."""
    seen: set[Program] = set()
    found: list[Program] = []
    for seed in count():
        if len(found) == number:
            break
        program = draw_program(Random(seed))
        if program not in seen:
            found.append(program)
        seen |= {program, program.mirrored}
    return found


def snippet_words() -> tuple[str, ...]:
    """Every word of a line that there can be."""
    return tuple(f"s{snippet}:{LISTS[which]}" for snippet, which in _all_lines())


def _all_lines() -> list[Line]:
    return [(snippet, which) for snippet in range(len(SNIPPETS)) for which in range(2)]


def _longer(line: Line) -> set[int]:
    """The lists that a line may make longer."""
    snippet, which = line
    return {which if name == "a" else 1 - which for name in SNIPPETS[snippet].grows}


def _written(snippet: int, which: int, names: tuple[str, str]) -> str:
    named = {"a": names[which], "b": names[1 - which]}
    text, letters = "", SNIPPETS[snippet].text
    for place, letter in enumerate(letters):
        alone = not (letters[place - 1 : place].isalpha() or letters[place + 1 : place + 2].isalpha())
        text += named[letter] if letter in named and alone else letter
    return text
