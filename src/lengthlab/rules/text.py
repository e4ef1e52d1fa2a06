"""Prompts and answers in plain sentences, for language models: one line of text for each step.

A trace has what the templates of rule-following fine-tuning have (Hu et al. 2024, arXiv 2402.17709: the rule in the prompt;
before each action its line recited, and the variables stated before and after; loops with their condition), in sentences of
our own. Of `and` and `or`, the parts are told that were looked at. The direct answer and the scratchpad are asked for by the
name of the rule, unless that says nothing, as of a program.
"""

from __future__ import annotations

import ast

from lengthlab.rules.rule import Rule
from lengthlab.rules.step import LOOPS, Step, Trace, Value, shown
from lengthlab.rules.wording import states

ASKED = {
    "direct": "Apply the rule and give the answer.",
    "scratchpad": "Apply the rule, noting the variables before each turn of a loop, and give the answer.",
    "trace": "Apply the rule line by line: say each line, the variables before it and after it, and give the answer.",
}
ANSWER = "The answer is "
BEGINS = " of this loop begins."
LEFT = {"break": "The loop ends.", "continue": "The turn ends."}


def prompt_text(rule: Rule, trace: Trace, form: str, with_rule: bool | None = None) -> str:
    """What the model is asked; `with_rule`: whether the rule is shown, if not said otherwise in a trace alone.

    >>> rule = Rule.of("def double(n):\\n    return 2 * n")
    >>> print(prompt_text(rule, rule.trace(4), "trace"))
    Apply the rule line by line: say each line, the variables before it and after it, and give the answer.
    1  def double(n):
    2      return 2 * n
    Input: n = 4
    <BLANKLINE>
    """
    shows = form == "trace" if with_rule is None else with_rule
    numbered = [f"{number:<2} {line}" for number, line in enumerate(rule.lines, start=1)]
    told = numbered if shows else [f"Rule: {rule.name.replace('_', ' ')}"]
    return "\n".join([ASKED[form], *told, f"Input: {_listed(trace.inputs)}", ""])


def answer_text(rule: Rule, trace: Trace, form: str) -> str:
    """What is to be said; a trace has to be made with notes.

    >>> rule = Rule.of("def count(n):\\n    while n > 1:\\n        n = n - 1\\n    return n")
    >>> print(answer_text(rule, rule.trace(2, notes=True), "trace"))
    Line 2, `while n > 1:` With n = 2 the condition is True. Turn 1 of this loop begins.
    Line 3, `n = n - 1` With n = 2. 2 - 1 = 1. Now n = 1.
    Line 2, `while n > 1:` With n = 1 the condition is False. The loop ends.
    Line 4, `return n` With n = 1.
    The answer is 1.
    >>> print(answer_text(rule, rule.trace(2), "scratchpad"))
    Line 2: n = 2
    Line 2: n = 1
    The answer is 1.
    """
    last = f"{ANSWER}{shown(trace.answer)}."
    if form == "direct":
        return last
    if form == "scratchpad":
        return "\n".join([*(f"Line {line}: {_listed(values)}" for line, values in states(rule, trace)), last])
    turns: dict[int, int] = {}
    return "\n".join([*(_told(step, rule, turns) for step in trace.steps), last])


def _told(step: Step, rule: Rule, turns: dict[int, int]) -> str:
    """A step as a line of text; `turns` counts those of each loop since it began."""
    read = f" With {_listed(step.before)}" if step.before else ""
    line = f"Line {step.line}, `{rule.lines[step.line - 1].strip()}`"
    notes = "".join(f" {note}." for note in step.notes)
    now = f" Now {_listed(step.after)}." if step.after else ""
    if step.kind in LEFT:
        if step.kind == "break":
            turns[int(str(step.value))] = 0
        return f"{line} {LEFT[step.kind]}"
    if step.kind in ("set", "return"):
        return f"{line}{f'{read}.' if read else ''}{notes}{now}"
    told = f"{read}{f'.{notes} So' if notes else ''} the condition is {step.value}." if step.kind != "for" else f"{read}."
    if step.kind not in LOOPS:
        return f"{line}{told}{now}"
    if step.value:
        turns[step.line] = turns.get(step.line, 0) + 1
        return f"{line}{told} Turn {turns[step.line]}{BEGINS}{now}"
    turns[step.line] = 0
    return f"{line}{told} The loop ends."


def _listed(pairs: tuple[tuple[str, Value], ...]) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in pairs)


def parse_value(text: str) -> Value | None:
    """A value as Python writes it, or None if the text is none.

    >>> parse_value("[7, 2]"), parse_value("__import__('os')"), parse_value("[[1]]")
    ((7, 2), None, None)
    """
    try:
        value = ast.literal_eval(text.strip()[:100_000])
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    elements = value if isinstance(value, list) else [value]
    if not all(isinstance(each, (int, str)) for each in elements):
        return None
    return tuple(value) if isinstance(value, list) else value
