"""Rules carried out line by line, against Python itself; what is told of them, and read back."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command import Call
from lengthlab.errors import LabError
from lengthlab.rules import (
    EXERCISES,
    FORMS,
    Rule,
    Wording,
    answer_text,
    draw_program,
    prompt_text,
    read_text,
    read_words,
    rows,
    score_text,
    score_words,
    written,
)
from lengthlab.rules.program import SNIPPETS, Program
from lengthlab.rules.step import Trace, Value, kept, same

SEEDS = st.integers(0, 10**6)
ORACLES: dict[str, Callable[..., Any]] = {
    "addition": lambda a, b: _digits(_number(a, 10) + _number(b, 10), 10),
    "base-9": lambda a, b: _digits(_number(a, 9) + _number(b, 9), 9),
    "last-letters": lambda words: "".join(word[-1] for word in words),
    "coin-flips": lambda flips: flips.count(True) % 2 == 0,
    "digit-sum": lambda digits: (_number(digits, 10) - 1) % 9 + 1 if any(digits) else 0,
}
LINES = (
    "xs.append(n % 7)",
    "ys.insert(1, n)",
    "n += len(xs) * 2 - 1",
    "n = (n + 3) // 2 if n > 4 else -n",
    "xs = xs[1:] + ys[:-1]",
    "ys.extend(xs[:2])",
    "n = max(xs) if xs else min(n, 3)",
    "xs.reverse()",
    "ys.sort()",
    "if n in xs: xs.remove(n)",
    "if not xs or n >= 9 and ys: n -= 1",
    "if 0 < n < 5: ys = [n, n + 1]",
    "if xs: xs[0] += n",
    "if ys: ys[-1] = abs(n) + sum(ys)",
    "for x in xs: n = n + x",
    "for i in range(len(ys)): ys[i] = ys[i] - i",
    "while len(xs) > 4: xs.pop()",
    "xs.clear()",
    "n = xs.pop(0) - xs.pop()",
    "n = n % len(ys)",
    "n, m = len(xs), n",
    "if xs and ys: xs[0], ys[-1] = ys[-1], xs[0]",
    "xs, ys = ys, xs",
    "xs, n = sorted(ys), len(xs)",
    "ys = xs[::-1] + ys[::2]",
    "xs = xs[n:len(xs):max(n, -2)]",
    "for i, y in enumerate(ys): n += i * y",
    "if n > 6: break",
    "if n % 3 == 1: continue",
    "for x in xs: break",
    "for i, y in enumerate(xs): ys.append(i * y)",
)
"""Of any such function Python and we make the same, an error included."""

OWN = """
raise SystemExit("never run")

def evens(xs: list[int]) -> int:
    # Types, comments and empty lines are no part of a rule.
    n = 0

    for x in xs:
        if x % 2 == 0:
            n += 1
    return n

def forever(xs):
    while xs:
        n = 1
    return n
"""


def _number(digits: list[int], base: int) -> int:
    return reduce(lambda number, digit: base * number + digit, digits, 0)


def _digits(number: int, base: int) -> list[int]:
    """Written with as many digits as it takes."""
    return [number] if number < base else [*_digits(number // base, base), number % base]


def run_by_python(source: str, name: str, *inputs: Any) -> Any:
    space: dict[str, Any] = {}
    exec(source, space)  # the text is our own
    return space[name](*inputs)


@pytest.mark.parametrize("name", EXERCISES)
@given(seed=SEEDS, n=st.integers(1, 12))
@settings(max_examples=25)
def test_a_rule_comes_to_what_its_function_and_arithmetic_come_to(name: str, seed: int, n: int) -> None:
    exercise = EXERCISES[name]
    inputs = exercise.inputs(n, Random(seed))
    answer = exercise.rule.trace(*inputs).answer
    assert same(answer, kept(ORACLES[name](*inputs)))
    assert same(answer, kept(getattr(written, exercise.rule.name)(*inputs)))  # which uses the inputs up


@given(seed=SEEDS, n=st.integers(0, 8))
@settings(max_examples=60)
def test_a_program_ends_and_comes_to_what_python_makes_of_it(seed: int, n: int) -> None:
    random = Random(seed)
    rule = draw_program(random).rule()
    xs, ys = random.choices(range(10), k=n), random.choices(range(10), k=n)
    trace = rule.trace(xs, ys)
    assert trace.turns[2] <= n
    assert list(trace.answer) == run_by_python(rule.source, "program", xs, ys)
    assert set(trace.answer) <= set(range(10))


@given(
    lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=6),
    xs=st.lists(st.integers(0, 9), max_size=5),
    n=st.integers(-3, 9),
)
@settings(max_examples=100)
def test_any_function_of_the_language_comes_to_what_python_makes_of_it(lines: list[str], xs: list[int], n: int) -> None:
    body = "\n".join(f"        {line}" for line in lines)
    source = f"def f(xs, ys, n):\n    for turn in range(2):\n{body}\n    return [n] + xs + ys"
    try:
        right = kept(run_by_python(source, "f", list(xs), xs[::-1], n))
    except (IndexError, ValueError, ZeroDivisionError):
        with pytest.raises(LabError, match=r"^rule 'f', line \d+ \("):
            Rule.of(source).trace(xs, xs[::-1], n)
    else:
        assert same(Rule.of(source).trace(xs, xs[::-1], n).answer, right)


JUMPING = """
def second(xs, k):
    n, seen = 0, 0
    for i, x in enumerate(xs):
        while x > 0:
            x -= 1
            if x == 4: break
        if x == 0:
            continue
        seen, n = seen + 1, i
        if seen == 2:
            break
    return n
"""


@given(xs=st.lists(st.integers(0, 9), max_size=6))
def test_loops_that_are_left_are_told_and_read_back(xs: list[int]) -> None:
    rule = Rule.of(JUMPING)
    trace = rule.trace(xs, 1, notes=True)
    assert trace.answer == run_by_python(rule.source, "second", xs, 1)
    seen = xs[: trace.turns[3]]
    assert sum((step.kind, step.value) == ("break", 4) for step in trace.steps) == sum(x > 4 for x in seen)
    words, text = Wording(rule, {}).answer(trace, "trace"), answer_text(rule, trace, "trace")
    assert read_words(words, "trace", rule).turns == read_text(text, "trace", rule).turns == trace.turns
    begun = [line for line in text.splitlines() if line.startswith("Line 4, `while") and "Turn 1 of this loop begins" in line]
    assert len(begun) == sum(x > 0 for x in seen)  # a loop that was left begins with turn 1 again


def test_a_break_says_that_its_loop_ends() -> None:
    rule = Rule.of("def first(xs):\n    for i, x in enumerate(xs):\n        break\n    return x")
    trace = rule.trace([7, 5], notes=True)
    assert answer_text(rule, trace, "trace").splitlines() == [
        "Line 2, `for i, x in enumerate(xs):` With to come = [7, 5]. Turn 1 of this loop begins. Now i = 0, x = 7.",
        "Line 3, `break` The loop ends.",
        "Line 4, `return x` With x = 7.",
        "The answer is 7.",
    ]
    said = "L2 to-come: [ 7 5 ] ? True = i: 0 x: 7 L3 L4 x: 7 return 7"
    assert " ".join(Wording(rule, {}).answer(trace, "trace")) == said


@pytest.mark.parametrize("name", EXERCISES)
@given(seed=SEEDS)
@settings(max_examples=10)
def test_every_step_is_the_line_that_python_is_at_with_the_variables_it_has(name: str, seed: int) -> None:
    exercise = EXERCISES[name]
    inputs = exercise.inputs(4, Random(seed))
    seen: list[tuple[int, dict[str, Value]]] = []

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_name == exercise.rule.name and event == "line":
            seen.append((frame.f_lineno, {name: kept(value) for name, value in frame.f_locals.items()}))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run_by_python(exercise.rule.source, exercise.rule.name, *[list(each) for each in inputs])
    finally:
        sys.settrace(before)
    assert seen == list(_lines_and_variables(exercise.rule.trace(*inputs)))


def _lines_and_variables(trace: Trace) -> Any:
    """Of each step, its line and all variables before it."""
    held = dict(trace.inputs)
    for step in trace.steps:
        yield step.line, dict(held)
        assert all(same(value, held[name]) for name, value in step.before if name in held)
        held |= dict(step.after)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import os", "`import os` is nothing that a rule may say"),
        ("return open(xs)", "`open(xs)`"),
        ("xs.__class__()", "`xs.__class__()`"),
        ("return xs.copy()", "`xs.copy()`"),
        ("return [x for x in xs]", "`[x for x in xs]`"),
        ("xs[0:1] = xs", "`xs[0:1] = xs`"),
        ("return 1.5", "`1.5`"),
        ("return 2 ** 9", "line 2: `2 ** 9`"),
        ("break", "`break`"),
        ("if xs: continue", "`continue`"),
        ("x, y = xs", "`x, y = xs`"),
        ("x, y = 1, 2, 3", "`x, y = (1, 2, 3)`"),
        ("x, (y, z) = 1, 2", "nothing that a rule may say"),
        ("for x, y in xs: x = 1", "nothing that a rule may say"),
        ("for x, y in enumerate(xs, 1): x = 1", "nothing that a rule may say"),
        ("return enumerate(xs)", "`enumerate(xs)`"),
        ("return sorted(xs, reverse=True)", "`sorted(xs, reverse=True)`"),
        ("return xs[::1.5]", "`1.5`"),
        ("return", "`return`"),
        ("x = y = 3", "`x = y = 3`"),
        ("global xs", "`global xs`"),
        ("x = (1 +\n        2)", "stands on one line"),
        ("return " + "-" * 90 + "1", "brackets in brackets"),
    ],
)
def test_what_is_not_in_the_language_is_refused_with_its_line(line: str, told: str) -> None:
    with pytest.raises(LabError, match=r"rule 'f', line \d: ") as refused:
        Rule.of(f"def f(xs):\n    {line}\n    return xs")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1", "no function"),
        ("def f(xs:", "is not Python"),
        ("def f():\n    return 1", "at least one"),
        ("def f(xs=[]):\n    return xs", "plain parameters"),
        ("def f(xs):\n    '''Nothing.'''", "does nothing"),
        ("def f(x):\n    return x\ndef g(x):\n    return x", "say which of f, g"),
    ],
)
def test_a_text_that_is_no_rule_is_refused(source: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        Rule.of(source)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "    while xs:\n        n = 1\n    return n",
            "line 2 (`while xs:`): the loop is not over after 10,000 steps, in its turn 5,000",
        ),
        (
            "    while xs:\n        n = 0\n        while n < 3:\n            n += 1\n    return n",
            "line 2 (`while xs:`): the loop is not over after 10,000 steps",
        ),
        (
            "    for x in xs:\n        xs.append(x)\n    return 1",
            "line 2 (`for x in xs:`): the loop is not over after 10,000 steps",
        ),
        (
            "    for i in range(10000000000):\n        n = 1\n    return n",
            "line 2 (`for i in range(10000000000):`): 10,000,000,000 turns",
        ),
        ("    return xs[7]", "line 2 (`return xs[7]`): list index out of range"),
        ("    n = 3 // 0\n    return n", "line 2 (`n = 3 // 0`): "),
        ("    ys = xs\n    return ys", "one list would have two names, 'xs' and 'ys': copy it, ys = xs[:]"),
        ("    xs.append(xs)\n    return xs", "a list in a list"),
        ("    ys, zs = xs, 1\n    return ys", "one list would have two names, 'xs' and 'ys': copy it, ys = xs[:]"),
        ("    xs[0], n = xs, 1\n    return xs", "a list in a list"),
        ("    return xs[::0]", "slice step cannot be zero"),
        ("    return n", "'n' has no value yet"),
        ("    return xs + 1", "+ is not for a list and an int in a rule"),
        (
            "    n = 9\n    while n:\n        n = n * n\n    return n",
            "line 4 (`n = n * n`): the number has more than 18 digits",
        ),
        ("    while xs:\n        xs.extend(xs)\n    return xs", "more than 10,000 elements"),
        ("    n = 1", "came to its end without a return"),
    ],
)
def test_what_goes_wrong_in_a_rule_is_told_with_its_line(body: str, told: str) -> None:
    with pytest.raises(LabError) as refused:
        Rule.of(f"def f(xs):\n{body}").trace([1, 2])
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_inputs_are_left_as_they_are_and_checked() -> None:
    xs = [1, 2]
    Rule.of("def f(xs):\n    xs.clear()\n    return xs").trace(xs)
    assert xs == [1, 2]
    for wrong in ([[1]], 1.5, None, {"a": 1}):
        with pytest.raises(LabError, match="a rule works on whole numbers"):
            EXERCISES["digit-sum"].rule.trace(wrong)
    with pytest.raises(LabError, match="takes 1 inputs, not 2"):
        EXERCISES["digit-sum"].rule.trace([1], [2])


def test_there_are_22_snippets_and_the_words_of_a_program_make_it_again() -> None:
    assert len({snippet.text for snippet in SNIPPETS}) == 22
    for seed in range(20):
        program = draw_program(Random(seed))
        assert Program.of_words([*program.words.values()]) == program


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*EXERCISES, "programs"])
def test_answer_and_turns_can_be_read_from_every_form(name: str, form: str) -> None:
    random = Random(5)
    for n in (1, 2, 7):
        program = draw_program(random)
        rule = program.rule() if name == "programs" else EXERCISES[name].rule
        inputs = (random.choices(range(10), k=n),) * 2 if name == "programs" else EXERCISES[name].inputs(n, random)
        trace = rule.trace(*inputs, notes=True)
        words = Wording(rule, program.words if name == "programs" else {}).answer(trace, form)
        text = answer_text(rule, trace, form)
        for read in (read_words(words, form, rule), read_text(text, form, rule)):
            assert same(read.answer, trace.answer)
            outer = {line: turns for line, turns in trace.turns.items() if line in rule.carried}
            assert read.turns == {"direct": None, "scratchpad": outer, "trace": trace.turns}[form]
        assert score_words(words, words, form, rule) == score_text(text, f" {text}\n", form, rule)
        assert score_words(words, words, form, rule).exact
        assert all(rule.lines[step.line - 1].strip() in text for step in trace.steps) or form != "trace"
        assert prompt_text(rule, trace, form).count("\n") > 2


def test_a_loop_that_is_left_too_early_is_scored_by_its_turns() -> None:
    rule = EXERCISES["addition"].rule
    trace = rule.trace([1, 2, 3], [4, 5, 6], notes=True)
    right, text = Wording(rule, {}).answer(trace, "trace"), answer_text(rule, trace, "trace")
    rest = "L4 num1: [ ] num2: [ ] ? False L12 return [ 5 7 9 ]"
    early = [*right[: right.index("L9")], *rest.split()]
    score = score_words(early, right, "trace", rule)
    assert (score.answer, score.exact, score.turns_off) == (True, False, 2)
    lines = text.splitlines()
    score = score_text("\n".join([*lines[:5], "The answer is [9]."]), text, "trace", rule)
    assert (score.answer, score.exact, score.turns_off) == (False, False, 2)


@given(
    st.lists(
        st.sampled_from(["L4", "L5", "?", "True", "[", "]", "(", "-", ")", '"', "5", "a", "return", "=", "num1:", "<eos>"])
    )
)
@settings(max_examples=60)
def test_no_words_are_too_broken_to_be_read(words: list[str]) -> None:
    rule = EXERCISES["addition"].rule
    right = ["L4", "[", "5", "]", "return", "[", "5", "]"]
    for form in FORMS:
        assert not score_words(words, right, form, rule).exact or words == right


@given(st.text(alphabet="Line 4:, `whileTurn1ofthis loop begins.\nThe answer is [5]('", max_size=80))
@settings(max_examples=60)
def test_no_text_is_too_broken_to_be_read(text: str) -> None:
    for form in FORMS:
        read = read_text(f"Line 4, `x` {text}\nThe answer is {text}", form, EXERCISES["addition"].rule)
        assert read.turns is None or set(read.turns) <= {4}


def test_rows_are_the_same_for_a_seed_and_cover_the_lengths(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "rows.jsonl"
    done = call("rules", "data", "--task", "addition", "--form", "rule", "--lengths", "1-3", "--samples", 4, "-o", file)
    assert (done.code, done.out) == (0, f"12 rows are in {file}.\n")
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert found == list(rows("addition", "trace", (1, 3), 4))
    assert [row["length"] for row in found] == [1] * 4 + [2] * 4 + [3] * 4
    assert found != list(rows("addition", "trace", (1, 3), 4, seed=1))
    rule = EXERCISES["addition"].rule
    for row in found:
        read = read_text(row["completion"], "trace", rule)
        assert (list(read.answer), read.turns) == (row["answer"], {4: row["turns"]})  # type: ignore[arg-type]
        assert rule.lines[3] in row["prompt"]
    names = {row["prompt"].partition("program(")[2].partition(",")[0] for row in rows("programs", "direct", (2, 2), 9)}
    assert len(names) == 9  # the lists of a program are called anything


def test_a_rule_of_ones_own_is_read_and_not_run(tmp_path: Path, call: Call) -> None:
    (tmp_path / "own.py").write_text(OWN)
    out = tmp_path / "own.jsonl"
    options = ("--lengths", "3", "--samples", 5, "-o", out)
    assert call("rules", "data", "--task", f"{tmp_path}/own.py:evens", *options).code == 0
    assert {json.loads(line)["turns"] for line in out.read_text().splitlines()} == {3}
    out.unlink()
    call("rules", "data", "--task", f"{tmp_path}/own.py:forever", *options).refused(
        "line 2 (`while xs:`): the loop is not over after 10,000 steps"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["own.py"]
    call("rules", "data", "--task", f"{tmp_path}/own.py:even", *options).refused("no function is called 'even'", "'evens'?")
    call("rules", "data", "--task", "adition", *options).refused("there is no rule 'adition'", "'addition'?")
    call("rules", "data", "--task", "addition", "--lengths", "5-1", *options[2:]).refused("--lengths", "'5-1'")
    call("rules", "data", "--task", "addition", "--lengths", "0-2", *options[2:]).refused("'0-2'", "at least 1")
    call("rules", "data", "--task", "addition", "--lengths", "one", *options[2:]).refused("write lengths as 1-5")
    call("rules", "data", "--task", "addition", *options[:-1], tmp_path / "x.csv").refused("ends in .jsonl")
    call("rules", "data", "--task", "addition", *options[:-1], tmp_path / "no" / "x.jsonl").refused("there is no folder")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("xs, k: int", r"xs = \[\d(, \d){2}\], k = \d"),
        ("xs: list[int], k: bool", r"xs = \[\d(, \d){2}\], k = (True|False)"),
        ("flips: list[bool]", r"flips = \[(True|False)(, (True|False)){2}\]"),
        ("words: 'list[str]', k: str", r"words = \['[a-z]{2,5}'(, '[a-z]{2,5}'){2}\], k = '[a-z]{2,5}'"),
    ],
)
def test_a_rule_of_ones_own_is_given_what_its_types_say(head: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"def first({head}) -> int:\n    return 1")
    inputs = [row["prompt"].partition("Input: ")[2].strip() for row in rows(f"{tmp_path}/own.py:first", "direct", (3, 3), 20)]
    assert all(re.fullmatch(told, each) for each in inputs), inputs[0]
    assert len(set(inputs)) > 2


@pytest.mark.parametrize("written", ["float", "list", "list[list[int]]", "dict[str, int]", "int | None", "'Digits'"])
def test_a_type_that_nothing_is_drawn_for_is_refused_with_its_parameter(written: str, tmp_path: Path, call: Call) -> None:
    (tmp_path / "own.py").write_text(f"def first(xs, k: {written}):\n    return k")
    out = tmp_path / "rows.jsonl"
    done = call("rules", "data", "--task", f"{tmp_path}/own.py:first", "--lengths", 3, "--samples", 1, "-o", out)
    done.refused(f"rule 'first': nothing is drawn for 'k: {written.strip(chr(39))}'", "list[bool]")
    assert not out.exists()
