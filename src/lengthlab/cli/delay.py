"""`lengthlab delay`: what delaying attention would do to a model of yours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli import options
from lengthlab.cli.pages import tell
from lengthlab.cli.survey import run_survey
from lengthlab.errors import require
from lengthlab.report.page import visible

if TYPE_CHECKING:
    from lengthlab.inspection import DryRun


LENGTH = 128


@click.command()
@click.argument("model", required=False)
@click.option("--modules", multiple=True, metavar="PATTERN", help="Like layers.*.self_attn; attention is found if not given.")
@click.option("--length", type=click.IntRange(min=1), help="Tokens, to count compute; 128 if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--survey", "surveyed", is_flag=True, help="Try every type of model that transformers has, small, instead.")
@click.option("--kind", type=click.Choice(["causal", "masked", "vision"]), help="Of the survey: this kind alone.")
@click.option("--only", default="", metavar="NAME,...", help="Of the survey: these types alone.")
@click.option("--page", type=options.Place(path_type=Path), help="Of the survey: a file to write it to.")
def delay(
    model: str | None,
    modules: tuple[str, ...],
    length: int | None,
    as_json: bool,
    surveyed: bool,
    kind: str | None,
    only: str,
    page: Path | None,
) -> None:
    """What delaying attention would switch off, spare and leave in your model; nothing is trained.

    MODEL is my_model.py:make, a folder with a Hugging Face config.json (nothing is downloaded), or a model of ours.
    """
    if surveyed:
        require(model is None, f"--survey tries types of transformers, not '{model}': leave one of both out")
        require(not (modules or length or as_json), "--modules, --length and --json are for a MODEL, not for --survey")
        run_survey(kind, only, page)
        return
    require(model is not None, "name a MODEL: a file and what makes it, like my_model.py:make, or a folder with a config.json")
    require(not (kind or only or page), "--kind, --only and --page belong to --survey")
    assert model is not None
    from lengthlab.inspection import dry_run, find_subject

    tried = dry_run(find_subject(model), modules, length or LENGTH)
    if as_json:
        saved = {"saved": tried.compute.saved} if tried.compute else {}
        data = asdict(tried) | {"compute": tried.compute and asdict(tried.compute) | saved}
        click.echo(json.dumps(data, indent=1))
    else:
        tell("\n".join(_lines(tried)))


def _lines(tried: DryRun) -> Iterator[str]:
    yield f"{visible(tried.model)}: {tried.parameters:,} parameters"
    rows = [("module that would be off", "parameters", "in its place")]
    rows += [(visible(each.module), f"{each.parameters:,}", visible(each.instead)) for each in tried.off]
    rows.append(("in all", f"{tried.parameters_off:,}", f"{_share(tried.parameters_off, tried.parameters)} of the model"))
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for module, parameters, instead in rows:
        yield f"  {module:<{wide[0]}}  {parameters:>{wide[1]}}  {instead}"
    if tried.compute:
        spent = f"{_flop(tried.compute.closed)} instead of {_flop(tried.compute.open)}"
        yield (
            f"While off, {tried.compute.saved:.1%} of a forward's compute is saved: {spent} for one sequence of "
            f"{tried.compute.length} tokens (matrix products and convolutions of the model's code on a CPU)."
        )
    if tried.carries:
        yield f"While off, something else carries information along the sequence (tested on {tried.tried_on})."
    if tried.checked:
        first, *others = tried.checked.splitlines()
        yield f"Checked on random tokens: {visible(first)}"
        yield from map(visible, others)
    for note in tried.notes:
        yield f"Note: {visible(note)}."
    for warning in tried.warnings:
        yield click.style("Warning: ", fg="yellow", bold=True) + f"{visible(warning)}."


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"


def _flop(count: float) -> str:
    for unit in ("", "K", "M", "G", "T"):
        if count < 1000:
            return f"{count:.3g} {unit}FLOP"
        count /= 1000
    return f"{count:.3g} PFLOP"
