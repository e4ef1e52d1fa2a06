"""`lengthlab tasks`, `models`, `experiments`: what there is, and with a name its card."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.names import names_in
from lengthlab.cli.pages import tell
from lengthlab.errors import LabError, nearest, require
from lengthlab.registry import kebab
from lengthlab.report.page import visible

if TYPE_CHECKING:
    from lengthlab.models.model import Model
    from lengthlab.tasks.card import Card

NAME = click.argument("name", required=False)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@NAME
@options.made_with
@JSON
def tasks(name: str | None, choices: tuple[str, ...], as_json: bool) -> None:
    """What is learned. With a NAME (or my_tasks.py:Parity): a sample, what is scored, chance, trivial scores."""
    known = names_in("tasks", "Task")
    if name is None:
        require(not choices, "--set needs the NAME of a task that is made so")
        _list(known, as_json)
        return
    from lengthlab.spec.toml import chosen_table, make
    from lengthlab.tasks import Task
    from lengthlab.tasks.card import card

    made = card(make(Task, chosen_table(name, choices)))
    if as_json:
        click.echo(json.dumps(asdict(made), indent=1))
    else:
        tell(_task_card(made, known.get(name) or made.about))


def _task_card(card: Card, about: str) -> str:
    places = {at for scored in card.scored.values() for at in scored}
    sample = list(map(visible, card.sample))
    words = [click.style(f"[{word}]", bold=True) if at in places else word for at, word in enumerate(sample)]
    asked = {question: answer for question, answer in card.answers.items() if answer}  # of this sample
    answers = {visible(question): " ".join(map(visible, answer)) for question, answer in asked.items()}
    scored = ", ".join(f"{question} at [{answer}]" for question, answer in answers.items())
    lines = [
        visible(": ".join(filter(None, (card.name, about)))),
        f"  sample      {' '.join(words)}",
        f"  scored      {scored}{'; a sample is right if all are (`all`)' if len(card.scored) > 1 else ''}",
        f"  vocabulary  {card.vocabulary} tokens",
        f"  length      n from {card.shortest} {f'to {card.longest}' if card.longest else 'on'}",
        f"  chance      {_scores(card.chance)}",
        f"  trivial answers, scored on samples of n = {card.trivial_length}:",
        *(f"    {guess}: {_scores(scores)}" for guess, scores in card.trivial.items()),
    ]
    return "\n".join(lines)


@click.command()
@NAME
@options.made_with
@JSON
def models(name: str | None, choices: tuple[str, ...], as_json: bool) -> None:
    """Who learns it, and the parts that it can be made of. With a NAME (or my_models.py:three_lstms): its composition,
    parameters, what delay switches off.
    """
    if name is None:
        require(not choices, "--set needs the NAME of a model that is made so")
        kinds = ("Part", "Positions", "Scores", "ChunkWeights")
        made_of = {f"{kebab(kind)}={part}": about for kind in kinds for part, about in names_in("models", kind).items()}
        _list(names_in("models", "AnyModel") | made_of, as_json)
        return
    from lengthlab.models import AnyModel, Model
    from lengthlab.models.outline import outline
    from lengthlab.spec.toml import chosen_table, make
    from lengthlab.tasks import ModuloRecall

    model, vocabulary = make(AnyModel, chosen_table(name, choices)), ModuloRecall().vocabulary
    if not isinstance(model, Model):
        lines = str(model.build(vocabulary)).splitlines()
        if as_json:
            click.echo(json.dumps({"name": model.name, "network": lines}, indent=1))
        else:
            for line in (f"{model.name}: {lines[0]}", *lines[1:]):
                tell(visible(line))
        return
    off = _off(model, vocabulary)
    parts = outline(model, vocabulary, off)
    if as_json:
        click.echo(json.dumps([asdict(part) for part in parts], indent=1))
        return
    total = sum(part.parameters for part in parts if part.depth == 0)
    tell(visible(f"{model.name}: width {model.width}, {total:,} parameters (vocabulary of {vocabulary})"))
    for part in parts:
        mark = click.style(", off while delayed", fg="cyan") if part.path in off else ""
        tell(f"{part.parameters:>12,}  {'  ' * part.depth}{visible(part.text)}{mark}")
    covered = sum(part.parameters for part in parts if part.path in off)
    if covered:
        click.echo(f"First phase of delayed training: {covered:,} parameters are off, {total - covered:,} learn.")
    else:
        click.echo("No part of it is named 'attention', so delayed training has nothing to switch off.")


def _off(model: Model, vocabulary: int) -> list[str]:
    """The parts that the first phase of delayed training switches off."""
    from lengthlab.spec.schedule import delayed
    from lengthlab.switch import find

    try:
        return [site.name for site in find(model.build(vocabulary), *delayed().phases[0].off)]
    except LabError:
        return []


@click.command()
@NAME
@JSON
def experiments(name: str | None, as_json: bool) -> None:
    """Claims, with their runs, cost and command. NAME is one of ours or your own, my_study.py:STUDY."""
    from lengthlab.experiments import find_study, studies
    from lengthlab.experiments.demo import demo
    from lengthlab.spec.source import is_reference
    from lengthlab.store.phases import phases_in

    about = {"demo": inspect.getdoc(demo) or "", **{study.name: study.about for study in studies().values()}}
    if name is None:
        _list(about, as_json)
        return
    if name not in about and not is_reference(name):
        raise LabError(f"unknown experiment '{name}'; {nearest(name, about)}; a study of your own is named my_study.py:STUDY")
    study = None if name == "demo" else find_study(name)
    arms = study.runs(study.sizes[0].name, (0,)) if study else [(run.schedule.name, run) for run in demo((0,))]
    if as_json:
        click.echo(json.dumps([{"id": run.id, **run.to_json()} for _, run in arms], indent=1))
        return
    for line in _paragraphs(study.about or study.question if study else about["demo"]):
        tell(visible(line))
    click.echo("\nRuns of seed 0:")
    for arm, run in {run.id: (arm, run) for arm, run in arms}.values():
        bound = " at most" if phases_in(run.to_json()).open_ended() else ""
        steps = f"{run.steps:,} steps of {run.batch} samples{bound}"
        tell(visible(f"  {run.id}  {arm}; task {run.task.name}, {steps}"))


def _list(texts: Mapping[str, str], as_json: bool) -> None:
    about = {name: (text.strip().splitlines() or [""])[0] for name, text in texts.items()}
    wide = max(20, *map(len, about))
    if as_json:
        click.echo(json.dumps(about, indent=1))
        return
    for name, text in about.items():
        tell(f"{visible(name):{wide}}  {visible(text)}")


def _paragraphs(text: str) -> list[str]:
    """A docstring without the breaks of its lines: a paragraph each, and one for what begins like "Cost: ".

    >>> _paragraphs("One model.\\n\\nClaim: it\\nreaches far.\\nCost: little")
    ['One model.', '', 'Claim: it reaches far.', 'Cost: little']
    """
    found = [""]
    for line in inspect.cleandoc(text).splitlines():
        if not line or not found[-1] or re.match(r"[A-Z]\w+: ", line):
            found.append(line)
        else:
            found[-1] += f" {line}"
    return found[1:]


def _scores(scores: Mapping[str, float]) -> str:
    shown = {question: score for question, score in scores.items() if question != "all" or len(scores) > 2}
    return ", ".join(f"{question} {score:.3g}" for question, score in shown.items())
