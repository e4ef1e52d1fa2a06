"""`lengthlab guarantee`: what theory promises for a task, with the program that shows it, tried just now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lengthlab.cli import options
from lengthlab.cli.names import names_in
from lengthlab.cli.pages import tell
from lengthlab.errors import LabError, nearest
from lengthlab.report.page import visible

if TYPE_CHECKING:
    from lengthlab.theory import Guarantee, Trial

HEADLINES = {
    "yes": "in C-RASP[pos]: length generalization is promised, under idealized training",
    "no": "not in C-RASP[pos]: nothing is promised",
    "unknown": "it is not known whether it is in C-RASP[pos]",
}
COLORS = {"yes": "green", "no": "red", "unknown": "yellow"}


@click.command()
@click.argument("name", metavar="TASK")
@options.made_with
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def guarantee(name: str, choices: tuple[str, ...], as_json: bool) -> None:
    """What does theory promise for a task? Its C-RASP program, tried on every short input and on long ones, what follows and
    what does not. Exit code 1 if the program is wrong.

    TASK is one of ours or your own, my_task.py:Task; yours brings its program as the property `program`.

    \b
    lengthlab guarantee unique-right
    lengthlab guarantee copy --set letters=repeated
    lengthlab guarantee examples/doubles_task.py:Doubles
    """
    from lengthlab.inspection import find_task
    from lengthlab.theory import guarantee as guarantee_of

    task = find_task(name, choices)
    if task is None:
        known = nearest(name, names_in("tasks", "Task"))
        raise LabError(f"'{name}' is no task here: name one of ours or your own, my_task.py:Task ({known})")
    found = guarantee_of(task)
    if as_json:
        click.echo(json.dumps(_data(found), indent=1))
    else:
        tell("\n".join(_lines(found)))
    if found.wrong:
        click.get_current_context().exit(1)


def _lines(found: Guarantee) -> Iterator[str]:
    verdict = found.verdict
    if found.wrong:
        yield f"{visible(verdict.task)}: {click.style('nothing is shown, because its program is wrong', fg='red')}"
        yield visible(f"  {found.wrong}")
        return
    yield f"{visible(verdict.task)}: {click.style(HEADLINES[verdict.in_class], fg=COLORS[verdict.in_class])}"
    yield visible(f"  source      {verdict.citation}{f': {verdict.reason}' if verdict.reason else ''}")
    if verdict.program is not None:
        yield f"  program     {verdict.program.size:,} operations{_with(found.shown_with, ', shown with')}"
        yield ""
        yield from map(visible, found.lines)
        yield ""
        yield f"  tried       {_tried(found)}"
    for title, sentences in (("follows", found.follows), ("does not", found.does_not)):
        for sentence in sentences:
            yield f"  {title:<10}  {sentence}"
            title = ""


def _tried(found: Guarantee) -> str:
    parts = []
    if found.listed is not None:
        listed = f"every input up to length {found.listed.longest}, {found.listed.inputs:,} in all"
        parts.append(f"{listed}{_with(found.listed_with, ', with')}")
    if found.drawn is not None:
        parts.append(f"{found.drawn.inputs:,} drawn, of up to {found.drawn.longest} tokens")
    return f"{'; '.join(parts)}: all right"


def _with(parameters: str, before: str) -> str:
    return f"{before} {parameters}" if parameters else ""


def _data(found: Guarantee) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "task": verdict.task,
        "in_class": verdict.in_class,
        "citation": verdict.citation,
        "reason": verdict.reason,
        "size": verdict.program.size if verdict.program else None,
        "program": list(found.lines),
        "shown_with": found.shown_with,
        "listed": _trial(found.listed),
        "listed_with": found.listed_with,
        "drawn": _trial(found.drawn),
        "wrong": found.wrong,
        "follows": list(found.follows),
        "does_not": list(found.does_not),
    }


def _trial(trial: Trial | None) -> dict[str, int] | None:
    return {"inputs": trial.inputs, "longest": trial.longest} if trial else None
