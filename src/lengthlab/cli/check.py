"""`lengthlab check`: whether a model of yours is fit to be trained short and measured long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lengthlab.cli.pages import tell
from lengthlab.report.page import visible

if TYPE_CHECKING:
    from lengthlab.inspection import Report

COLORS = {"holds": "green", "does not hold": "red", "not checked": "yellow"}


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(model: str, as_json: bool) -> None:
    """Is your model causal, does it work at any length, step by step, as it was initialised? Exit code 1 if not.

    MODEL is my_model.py:make (which makes an nn.Module from token ids (B, T) to logits (B, T, V), a Hugging Face causal
    language model or a model of ours), a folder with a Hugging Face config.json, or a model of ours.
    """
    from lengthlab.inspection import check as check_subject
    from lengthlab.inspection import find_subject

    report = check_subject(find_subject(model))
    if as_json:
        click.echo(json.dumps(asdict(report) | {"holds": report.holds}, indent=1))
    else:
        tell("\n".join(_lines(report)))
    if not report.holds:
        click.get_current_context().exit(1)


def _lines(report: Report) -> Iterator[str]:
    frozen = report.parameters - report.trainable
    still = f", {frozen:,} of them frozen" if frozen else ""
    yield f"{visible(report.model)}: {report.parameters:,} parameters{still}; {_state(report)}"
    wide = max(len(each.what) for each in report.checks)
    for each in report.checks:
        verdict = click.style(f"{each.verdict:13}", fg=COLORS[each.verdict])
        yield f"  {verdict}  {each.what:<{wide}}  {visible(each.evidence)}"
    same, alike = report.tolerance["same shapes"], report.tolerance["other shapes"]
    yield (
        f"Positions count from 0. Rounding may differ by {same:g} of the largest logit where a token is changed, by {alike:g} "
        f"where lengths, batches or steps are."
    )


def _state(report: Report) -> str:
    state = report.state
    if state is None:
        return "no state that is handed on"
    size = f"a state of {state.whole:,} numbers per sequence"
    half = state.tokens // 2
    if state.half == state.whole:
        return f"{size}, as large after {half} tokens as after {state.tokens}"
    return f"{size} after {state.tokens} tokens, {state.half:,} after {half}"
