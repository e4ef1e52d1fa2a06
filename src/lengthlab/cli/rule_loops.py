"""`lengthlab rules loops`: where a run that follows a rule goes wrong."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.errors import LabError


@click.command()
@click.argument("run")
@click.option("--lengths", required=True, type=options.Lengths(), help="Like 5,10,15.")
@click.option("--samples", default=100, show_default=True, type=click.IntRange(min=1), help="Samples at each length.")
@options.store
@options.as_json
def loops(run: str, lengths: tuple[int, ...], samples: int, store: str, as_json: bool) -> None:
    """A finished run of a rule-… task, free-running: right answers, right in every word, and loops that end early or late.

    RUN is a run folder, or the start of an id in the store.
    """
    from lengthlab.cli.run_folder import finished_folder
    from lengthlab.evaluation.rule_answers import rule_answers
    from lengthlab.tasks.rules import RuleTask
    from lengthlab.training import read_result

    folder = finished_folder(run, store)
    result = read_result(folder)
    task = result.run.task
    if not isinstance(task, RuleTask):
        raise LabError(f"run {folder.id} is of task '{task.name}': loops are read of runs of rule-… tasks")
    for length in lengths:
        task.check_length(length)
    network = result.network()
    found = [rule_answers(network, task, length, samples) for length in lengths]
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found]))
        return
    for each in found:
        shares = f"answer {each.answer / each.samples:.2f}, every word {each.exact / each.samples:.2f}"
        told = (
            f", loops early {each.early}, late {each.late}, off by {each.turns_off:.2f} turns" if each.early is not None else ""
        )
        say(f"n = {each.length:<4} {shares}{told}  ({each.samples} samples)")
