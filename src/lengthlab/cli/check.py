"""`lengthlab check`: whether a task of yours says what it means, or a model is fit to be trained short and measured long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.pages import tell
from lengthlab.report.page import visible

if TYPE_CHECKING:
    from lengthlab.inspection import Check, Report, TaskReport

COLORS = {"holds": "green", "does not hold": "red", "not checked": "yellow"}


@click.command()
@click.argument("name", metavar="TASK|MODEL")
@click.option("--length", type=click.IntRange(min=1), help="As far as you will measure: a length of a task, tokens of a model.")
@options.made_with
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(name: str, length: int | None, choices: tuple[str, ...], as_json: bool) -> None:
    """Does your task say what it means? Is your model causal, right at any length, step by step, as it was initialised? Exit
    code 1 if not.

    A task is my_task.py:Task or one of ours. A MODEL is my_model.py:make (which makes an nn.Module from token ids (B, T) to
    logits (B, T, V), a Hugging Face causal language model or a model of ours), a folder with a Hugging Face config.json, or a
    model of ours.

    \b
    lengthlab check copy_task.py:Copy --set letters=8 --length 100
    lengthlab check my_model.py:Net --length 2000
    """
    from lengthlab.inspection import check as check_model
    from lengthlab.inspection import check_task, find_subject, find_task

    task = find_task(name, choices)
    report: Report | TaskReport
    if task is None:
        report = found = check_model(find_subject(name, choices), length)
        lines = _model_lines(found)
    else:
        report = tried = check_task(task, name, length)
        lines = _task_lines(tried)
    if as_json:
        click.echo(json.dumps(asdict(report) | {"holds": report.holds}, indent=1))
    else:
        tell("\n".join(lines))
    if not report.holds:
        click.get_current_context().exit(1)


def _task_lines(report: TaskReport) -> Iterator[str]:
    yield f"{visible(report.task)}: a task, tried at n = {', '.join(map(str, report.lengths))}"
    yield from _verdicts(report.checks)
    yield "Positions count from 0. A blind guess is the best answer that does not read the sequence."


def _model_lines(report: Report) -> Iterator[str]:
    frozen = report.parameters - report.trainable
    still = f", {frozen:,} of them frozen" if frozen else ""
    yield f"{visible(report.model)}: {report.parameters:,} parameters{still}; {_state(report)}"
    yield from _verdicts(report.checks)
    same, alike = report.tolerance["same shapes"], report.tolerance["other shapes"]
    yield (
        f"Positions count from 0. Rounding may differ by {same:g} of the largest logit where a token is changed, by {alike:g} "
        f"where lengths, batches or steps are."
    )


def _verdicts(checks: tuple[Check, ...]) -> Iterator[str]:
    wide = max(len(each.what) for each in checks)
    for each in checks:
        verdict = click.style(f"{each.verdict:13}", fg=COLORS[each.verdict])
        yield f"  {verdict}  {each.what:<{wide}}  {visible(each.evidence)}"


def _state(report: Report) -> str:
    state = report.state
    if state is None:
        return "no state that is handed on"
    size = f"a state of {state.whole:,} numbers per sequence"
    half = state.tokens // 2
    if state.half == state.whole:
        return f"{size}, as large after {half} tokens as after {state.tokens}"
    return f"{size} after {state.tokens} tokens, {state.half:,} after {half}"
