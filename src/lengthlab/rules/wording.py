"""The compact form of a trace, for small models that are trained from scratch: words of a small, fixed vocabulary.

    num1: [ 5 9 ] num2: [ 1 3 ]                                  the input
    L4 num1: [ 5 9 ] num2: [ 1 3 ] ? True                        a line of the rule, what it reads, what its condition comes to
    L5 num1: [ 5 9 ] = digit1: 9 num1: [ 5 ]                     what it reads, what it changes
    L7 digit1: 9 digit2: 3 carry: 0 = total: 12
    L3 to-come: [ " t e a " " i c e " ] ? True = word: " t e a " a turn of a for loop
    L12 result: [ 7 2 ] return [ 7 2 ]                           the answer comes last, in every form

Whole numbers to 19 are words, others are written by their digits in brackets, ( 1 2 5 ) and ( - 1 ). A text of one letter is a
word, others stand in quotation marks. The scratchpad has the loops that are in no other, each time they are asked whether to go
on: the line, and the values that are handed from turn to turn. The direct answer has nothing but the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from lengthlab.errors import LabError, nearest
from lengthlab.rules.exercise import LETTERS
from lengthlab.rules.pointers import POINTER
from lengthlab.rules.rule import Rule
from lengthlab.rules.step import JUMPS, LOOPS, TO_COME, Scalar, Step, Trace, Value

Form = Literal["direct", "scratchpad", "trace"]
FORMS: tuple[str, ...] = get_args(Form)

SMALL = tuple(map(str, range(20)))
TRUTH = ("False", "True")
RETURN, ASKED, THEN = "return", "?", "="
MARKS = (RETURN, ASKED, THEN, "[", "]", "(", ")", "-", '"')


def check_form(form: str) -> None:
    """Refuse a form that there is not."""
    if form not in FORMS:
        raise LabError(f"there is no form '{form}' of an answer; {nearest(form, FORMS)}")


def vocabulary(rule: Rule, letters: bool) -> tuple[str, ...]:
    """Every word of a rule's prompts and answers.

    >>> vocabulary(Rule.of("def double(n):\\n    return 2 * n"), letters=False)[-4:]
    ('True', 'L1', 'L2', 'n:')
    """
    lines = (line_word(number) for number in range(1, len(rule.lines) + 1))
    names = (name_word(name) for name in (TO_COME, *rule.names) if name != TO_COME or rule.loops)
    return (*MARKS, *SMALL, *TRUTH, *(LETTERS if letters else ()), *lines, *names)


def has_letters(rule: Rule) -> bool:
    """Whether texts may come up in a rule.

    >>> has_letters(Rule.of("def last(xs: list[str]):\\n    return xs[-1]"))
    True
    """
    written = (each.value for each in ast.walk(rule.function) if isinstance(each, ast.Constant))
    return any("str" in each for each in rule.types) or any(isinstance(each, str) for each in written)


@cache
def line_word(line: int) -> str:
    return f"L{line}"


@cache
def name_word(name: str) -> str:
    return f"{name.replace(' ', '-')}:"


def value_words(value: Value) -> list[str]:
    """
    >>> " ".join(value_words((5, 120, True, -1)))
    '[ 5 ( 1 2 0 ) True ( - 1 ) ]'
    >>> value_words("k"), value_words("")
    (['k'], ['"', '"'])
    """
    if type(value) is not tuple:
        return _scalar_words(value)  # type: ignore[arg-type]
    words = ["["]
    for each in value:
        if type(each) is int and 0 <= each < len(SMALL):
            words.append(SMALL[each])
        else:
            words += _scalar_words(each)
    words.append("]")
    return words


def _scalar_words(value: Scalar) -> list[str]:
    if isinstance(value, str):
        if any(letter not in LETTERS for letter in value):
            raise LabError(f"words of a vocabulary are for texts of the letters a to z, not for {value!r}")
        return [value] if len(value) == 1 else ['"', *value, '"']
    if type(value) is bool:
        return [TRUTH[value]]
    return [SMALL[value]] if 0 <= value < len(SMALL) else ["(", *str(value), ")"]


@dataclass(frozen=True)
class Wording:
    """How traces of one rule are written in words; `recited` has words that are said after the number of a line, and the list
    `pointed` is told by a pointer, but in the prompt.
    """

    rule: Rule
    recited: Mapping[int, str]
    pointed: str = ""

    def prompt(self, trace: Trace) -> list[str]:
        """The lines that are not known, if there are any, and the inputs."""
        said = [word for line, text in self.recited.items() for word in (line_word(line), text)]
        return said + [word for name, value in trace.inputs for word in (name_word(name), *value_words(value))]

    def answer(self, trace: Trace, form: str) -> list[str]:
        """What is to be said, in one of the forms.

        >>> rule = Rule.of("def last(xs):\\n    n = 0\\n    for x in xs:\\n        n = x\\n    return n")
        >>> wording = Wording(rule, {})
        >>> " ".join(wording.answer(rule.trace([4]), "trace"))
        'L2 = n: 0 L3 to-come: [ 4 ] ? True = x: 4 L4 x: 4 = n: 4 L3 to-come: [ ] ? False L5 n: 4 return 4'
        >>> " ".join(wording.answer(rule.trace([4]), "scratchpad"))
        'L3 [ 4 ] 0 L3 [ ] 4 return 4'
        >>> " ".join(wording.answer(rule.trace([4]), "direct"))
        'return 4'
        """
        if form == "direct":
            return [RETURN, *value_words(trace.answer)]
        words: list[str] = []
        if form == "trace":
            for step in trace.steps:
                self._write(step, words)
            return words
        for line, values in states(self.rule, trace):
            words.append(line_word(line))
            for name, value in values:
                words += self._told(name, value)
        return [*words, RETURN, *value_words(trace.answer)]

    def _told(self, name: str, value: Value) -> list[str]:
        return [POINTER] if name == self.pointed else value_words(value)

    def _write(self, step: Step, words: list[str]) -> None:
        line, kind, before, after, value, _ = step
        words.append(line_word(line))
        if line in self.recited:
            words.append(self.recited[line])
        for name, held in before:
            words.append(name_word(name))
            words += self._told(name, held)
        if kind == "return":
            assert value is not None
            words.append(RETURN)
            words += value_words(value)
            return
        if kind in JUMPS:  # the line says it
            return
        if kind != "set":
            words += (ASKED, TRUTH[bool(value)])
        if kind == "set" or after:
            words.append(THEN)
        for name, held in after:
            words.append(name_word(name))
            words += self._told(name, held)


def states(rule: Rule, trace: Trace) -> list[tuple[int, tuple[tuple[str, Value], ...]]]:
    """What a scratchpad keeps: each time a loop that is in no other asks whether to go on, its line, what a `for` loop has
    still to go through, and the variables that are handed from turn to turn.
    """
    held, found = dict(trace.inputs), []
    for step in trace.steps:
        held.update(step.before)
        if step.kind in LOOPS and step.line in rule.carried:
            left = [pair for pair in step.before if pair[0] == TO_COME]
            carried = [(name, held[name]) for name in rule.carried[step.line] if name in held]
            found.append((step.line, (*left, *carried)))
        held.update(step.after)
    return found


def line_of(word: str) -> int | None:
    """The number of a line, if a word is one.

    >>> line_of("L12"), line_of("["), line_of("last:")
    (12, None, None)
    """
    return int(word[1:]) if word[:1] == "L" and word[1:].isdecimal() else None


def read_value(words: Sequence[str]) -> Value | None:
    """The value that words begin with, or None: whatever else they are is no error.

    >>> read_value("[ 5 ( 1 2 0 ) True ] L2".split()), read_value("[ 5 (".split())
    ((5, 120, True), None)
    """
    if not words or words[0] != "[":
        return _read_scalar(words)[0]
    found: list[Scalar] = []
    rest = words[1:]
    while rest and rest[0] != "]":
        value, used = _read_scalar(rest)
        if value is None:
            return None
        found.append(value)
        rest = rest[used:]
    return tuple(found) if rest else None


def _read_scalar(words: Sequence[str]) -> tuple[Scalar | None, int]:
    """A value that is no list, and how many words it has."""
    first = words[0] if words else ""
    if first in SMALL or first in TRUTH:
        return (int(first) if first in SMALL else first == "True"), 1
    if len(first) == 1 and first in LETTERS:
        return first, 1
    close = {"(": ")", '"': '"'}.get(first)
    if close is None or close not in words[1:]:
        return None, 0
    end = list(words).index(close, 1)
    inside = "".join(words[1:end])
    if first == '"':
        return (inside, end + 1) if all(letter in LETTERS for letter in inside) else (None, 0)
    whole = inside.removeprefix("-").isdecimal() and inside.isascii() and len(inside) <= 20
    return (int(inside), end + 1) if whole else (None, 0)
