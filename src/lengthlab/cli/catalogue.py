"""`lengthlab tasks`, `models`, `experiments`: what there is, and with a name its card."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lengthlab.errors import LabError, nearest

if TYPE_CHECKING:
    from lengthlab.models.model import Model
    from lengthlab.tasks.card import Card

NAME = click.argument("name", required=False)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@NAME
@JSON
def tasks(name: str | None, as_json: bool) -> None:
    """What is learned. With a NAME (or my_tasks.py:Parity): a sample, what is scored, chance, trivial scores."""
    from lengthlab.plan import make
    from lengthlab.tasks import TASKS
    from lengthlab.tasks.card import card

    if name is None:
        _list(TASKS, as_json)
    else:
        made = card(make("task", name, Path()))
        click.echo(json.dumps(asdict(made), indent=1) if as_json else _task_card(made, _about(TASKS.get(name))))


def _task_card(card: Card, about: str) -> str:
    places = set(card.scored.values())
    words = [click.style(f"[{word}]", bold=True) if at in places else word for at, word in enumerate(card.sample)]
    scored = ", ".join(f"{question} at [{card.sample[at]}]" for question, at in card.scored.items())
    lines = [
        ": ".join(filter(None, (card.name, about))),
        f"  sample      {' '.join(words)}",
        f"  scored      {scored}{'; a sample is right if all are (`both`)' if len(card.scored) > 1 else ''}",
        f"  vocabulary  {card.vocabulary} tokens",
        f"  length      n from 1 {f'to {card.longest}' if card.longest else 'on'}",
        f"  chance      {_scores(card.chance)}",
        f"  trivial answers, scored on samples of n = {card.trivial_length}:",
        *(f"    {guess}: {_scores(scores)}" for guess, scores in card.trivial.items()),
    ]
    return "\n".join(lines)


@click.command()
@NAME
@JSON
def models(name: str | None, as_json: bool) -> None:
    """Who learns it, and what its attention can be made of. With a NAME (or my_models.py:three_lstms): its composition,
    parameters, what delay switches off.
    """
    from lengthlab.models import MODELS
    from lengthlab.models.model import Model
    from lengthlab.models.outline import outline
    from lengthlab.models.positions import POSITIONS
    from lengthlab.models.scores import SCORES
    from lengthlab.plan import make
    from lengthlab.tasks import ModuloRecall

    if name is None:
        remedies = {"positions": POSITIONS, "scores": SCORES}
        _list(MODELS | {f"{part}={name}": kind for part, kinds in remedies.items() for name, kind in kinds.items()}, as_json)
        return
    model, vocabulary = make("model", name, Path()), ModuloRecall().vocabulary
    if not isinstance(model, Model):
        click.echo(f"{model.name}: {model.build(vocabulary)}")
        return
    off = _off(model, vocabulary)
    lines = outline(model, vocabulary, off)
    if as_json:
        click.echo(json.dumps([asdict(line) for line in lines], indent=1))
        return
    total = sum(line.parameters for line in lines if line.depth == 0)
    click.echo(f"{model.name}: width {model.width}, {total:,} parameters (vocabulary of {vocabulary})")
    for line in lines:
        mark = click.style("  off while delayed", fg="cyan") if line.path in off else ""
        click.echo(f"{'  ' * (line.depth + 1) + line.text:72} {line.parameters:>10,}{mark}")
    covered = sum(line.parameters for line in lines if line.path in off)
    if covered:
        click.echo(f"First phase of delayed training: {covered:,} parameters are off, {total - covered:,} learn.")
    else:
        click.echo("No part of it is named 'attention', so delayed training has nothing to switch off.")


def _off(model: Model, vocabulary: int) -> list[str]:
    """The parts that the first phase of delayed training switches off."""
    from lengthlab.schedule import delayed
    from lengthlab.switch import find

    try:
        return [site.name for site in find(model.build(vocabulary), *delayed().phases[0].off)]
    except LabError:
        return []


@click.command()
@NAME
@JSON
def experiments(name: str | None, as_json: bool) -> None:
    """Claims, with their runs, cost and command."""
    from lengthlab.cli.progress import at_most
    from lengthlab.experiments import EXPERIMENTS

    if name is None:
        _list(EXPERIMENTS, as_json)
        return
    if name not in EXPERIMENTS:
        raise LabError(f"unknown experiment '{name}'; {nearest(name, EXPERIMENTS)}")
    runs = EXPERIMENTS[name]((0,))
    if as_json:
        click.echo(json.dumps([{"id": run.id, **run.to_json()} for run in runs], indent=1))
        return
    click.echo(inspect.getdoc(EXPERIMENTS[name]))
    click.echo("\nRuns of seed 0:")
    for run in runs:
        steps = f"{run.steps:,} steps of {run.batch} samples{at_most(run)}"
        click.echo(f"  {run.id}  {run.label}, task {run.task.name}, {steps}")


def _list(named: Mapping[str, Any], as_json: bool) -> None:
    about = {name: _about(maker) for name, maker in named.items()}
    wide = max(20, *map(len, about))
    lines = [f"{name:{wide}} {text}" for name, text in about.items()]
    click.echo(json.dumps(about, indent=1) if as_json else "\n".join(lines))


def _about(maker: object) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(maker) or "").splitlines()[0] if maker else ""


def _scores(scores: Mapping[str, float]) -> str:
    shown = {question: score for question, score in scores.items() if question != "both" or len(scores) > 2}
    return ", ".join(f"{question} {score:.3g}" for question, score in shown.items())
