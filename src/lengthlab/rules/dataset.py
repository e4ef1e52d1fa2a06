"""Prompts and answers as rows of JSONL, as other trainers read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

from lengthlab.errors import LabError, nearest, require, require_whole
from lengthlab.rules.exercise import EXERCISES, LONGEST, Inputs, is_own
from lengthlab.rules.guess import SETTLED, commonest
from lengthlab.rules.parameters import own_inputs, some_digits
from lengthlab.rules.program import draw_program
from lengthlab.rules.rule import STEPS, Rule
from lengthlab.rules.step import Value, shown
from lengthlab.rules.text import answer_text, prompt_text
from lengthlab.rules.wording import check_form

PROGRAMS = "programs"


@dataclass(frozen=True)
class Subject:
    """Where rows come from: a rule for each of them, inputs of a length, and whether every prompt shows the rule."""

    rule: Callable[[Random], Rule]
    inputs: Inputs
    shows: bool | None = None


def subject(name: str) -> Subject:
    """One of our rules, `programs`, or a function of a file, `my_rule.py:name`, whose parameters say by their types what each
    is given (parameters.py).

    >>> subject("programms")
    Traceback (most recent call last):
    lengthlab.errors.LabError: there is no rule 'programms'; did you mean 'programs'? (Your own: my_rule.py:name)
    """
    if name == PROGRAMS:
        return Subject(_some_program, lambda n, random: (some_digits(n, random), some_digits(n, random)), shows=True)
    if name in EXERCISES:
        return Subject(lambda random: EXERCISES[name].rule, EXERCISES[name].inputs)
    if not is_own(name):
        raise LabError(f"there is no rule '{name}'; {nearest(name, (*EXERCISES, PROGRAMS))} (Your own: my_rule.py:name)")
    own = Rule.from_reference(name)
    return Subject(lambda random: own, own_inputs(own), shows=True)


def rows(
    name: str, form: str, lengths: tuple[int, int], samples: int, seed: int = 0, limit: int = STEPS
) -> Iterator[dict[str, Any]]:
    """So many samples of each length, both ends included: the same for the same seed.

    >>> row = next(rows("digit-sum", "direct", (3, 3), samples=1))
    >>> row["prompt"], row["completion"]
    ('Apply the rule and give the answer.\\nRule: digit sum\\nInput: digits = [5, 7, 4]\\n', 'The answer is 7.')
    >>> row["rule"], row["form"], row["length"], row["answer"], row["turns"]
    ('digit-sum', 'direct', 3, 7, 4)
    """
    return (row for _, row in ruled_rows(name, form, lengths, samples, seed, limit))


def ruled_rows(
    name: str, form: str, lengths: tuple[int, int], samples: int, seed: int = 0, limit: int = STEPS
) -> Iterator[tuple[Rule, dict[str, Any]]]:
    """The same, each with its rule."""
    check_form(form)
    for end in lengths:
        require_whole(end, "a length", 1, LONGEST)
    require(lengths[0] <= lengths[1], f"lengths must be (shortest, longest), not {lengths}")
    require_whole(samples, "the number of samples", 1)
    drawn, random = subject(name), Random(seed)
    for length in range(lengths[0], lengths[1] + 1):
        for _ in range(samples):
            rule = drawn.rule(random)
            trace = rule.trace(*drawn.inputs(length, random), limit=limit, notes=form == "trace")
            row = {
                "prompt": prompt_text(rule, trace, form, drawn.shows),
                "completion": answer_text(rule, trace, form),
                "rule": name,
                "form": form,
                "length": length,
                "answer": _plain(trace.answer),
                "turns": sum(trace.turns.values()),
            }
            yield rule, row


def likeliest_answer(name: str, length: int) -> float:
    """How often a blind guess of the answer is right; counted on samples where it is not known.

    >>> likeliest_answer("coin-flips", 5), round(likeliest_answer("programs", 5), 2)
    (0.5, 0.03)
    """
    if name in EXERCISES:
        return EXERCISES[name].likeliest_answer(length)
    drawn, settled = subject(name), min(length, SETTLED)

    def answer(random: Random) -> str:
        rule = drawn.rule(random)
        return shown(rule.trace(*drawn.inputs(settled, random)).answer)

    return commonest(answer)


def write_rows(path: Path, wanted: Iterator[dict[str, Any]]) -> int:
    """Write them to a file, whole or not at all; how many there were."""
    half, count = path.with_name(f"{path.name}.part"), 0
    try:
        with half.open("w", encoding="utf-8") as file:
            for row in wanted:
                file.write(f"{json.dumps(row, ensure_ascii=False)}\n")
                count += 1
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return count


def _some_program(random: Random) -> Rule:
    """A program whose lists have names that mean nothing, as in Meta-RFFT (arXiv 2502.11525)."""
    one, other = ("".join(random.choices(ascii_lowercase, k=3)) for _ in range(2))
    return draw_program(random).rule((f"{one}_1", f"{other}_2"))


def _plain(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else value
