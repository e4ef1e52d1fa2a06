"""`lengthlab rules loops`: where runs that follow a rule go wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError

if TYPE_CHECKING:
    from lengthlab.evaluation.rule_answers import RuleAnswers
    from lengthlab.training import Result


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--lengths", required=True, type=options.Lengths(), help="Like 5,10,15.")
@click.option("--samples", default=100, show_default=True, type=click.IntRange(min=1), help="Samples at each length.")
@options.store
@options.as_json
def loops(runs: tuple[str, ...], lengths: tuple[int, ...], samples: int, store: str, as_json: bool) -> None:
    """Finished runs of rule-… tasks, free-running: right answers, right in every word, and loops that end early or late.

    RUN is a run folder, or the start of an id in the store. Each length is told as it comes. Of a mixture with one rule-… task,
    its samples are asked; of a task of few samples, fresh ones.
    """
    from lengthlab.cli.run_folder import finished_folder
    from lengthlab.evaluation.rule_answers import rule_answers
    from lengthlab.training import read_result

    results = [read_result(folder) for folder in [finished_folder(run, store) for run in dict.fromkeys(runs)]]
    for result in results:  # before anything is asked
        _check(result, lengths)
    found: list[dict[str, Any]] = []
    try:
        for result in results:
            if not as_json and len(results) > 1:
                say(f"{result.run.task.name}, {result.run.title} ({result.folder.id})")
            network = result.network()
            for length in lengths:
                answers = rule_answers(network, result.run.task, length, samples)
                found.append({"run": result.run.id, **asdict(answers)})
                if not as_json:
                    _tell(answers)
    finally:  # what came before a length that a model cannot read
        if as_json:
            click.echo(json.dumps(found))


def _check(result: Result, lengths: Sequence[int]) -> None:
    from lengthlab.evaluation.rule_answers import rule_in

    try:
        asked = rule_in(result.run.task)
    except LabError as error:
        raise LabError(f"run {result.folder.id}: {error}") from None
    for length in lengths:
        asked.task.check_length(length)


def _tell(each: RuleAnswers) -> None:
    shares = f"answer {each.answer / each.samples:.2f}, every word {each.exact / each.samples:.2f}"
    told = f", loops early {each.early}, late {each.late}, off by {each.turns_off:.2f} turns" if each.early is not None else ""
    say(f"n = {each.length:<4} {shares}{told}  ({each.samples} samples)")
