"""`lengthlab rules`: data that teaches a language model to follow a rule."""

from __future__ import annotations

from pathlib import Path

import click

from lengthlab.cli.finetune import finetune
from lengthlab.cli.options import Place
from lengthlab.cli.ranges import ALSO, FORMS, Range
from lengthlab.cli.rule_loops import loops
from lengthlab.cli.square import square
from lengthlab.errors import require


@click.group()
def rules() -> None:
    """Rules: small Python functions over lists, carried out line by line."""


@rules.command()
@click.option("--task", required=True, metavar="RULE", help="addition, base-9, last-letters, coin-flips, digit-sum, programs.")
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="trace",
    show_default=True,
    help="What the completion is: the answer alone, the variables at every turn, every line of the rule (rule: the same).",
)
@click.option("--lengths", type=Range(), required=True, metavar="FROM-TO", help="Of the inputs, both ends included: 1-5")
@click.option("--samples", type=click.IntRange(min=1), required=True, help="Rows of each length.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed gives the same rows.")
@click.option("--steps", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="A rule may take.")
@click.option("-o", "--out", type=Place(path_type=Path), required=True, metavar="FILE", help="Ends in .jsonl.")
def data(task: str, form: str, lengths: tuple[int, int], samples: int, seed: int, steps: int, out: Path) -> None:
    """Write prompts and completions of a rule as JSONL, as trainers of language models read them.

    RULE is one of ours or your own, my_rule.py:name: a function that is read, not run. What each parameter is given its type
    says: list[int] (or no type) n digits, list[bool], list[str] n words, int a digit, bool, str a word. Which Python it may be
    written in: lengthlab/rules/subset.py

    \b
    lengthlab rules data --task addition --form rule --lengths 1-5 --samples 1000 -o addition.jsonl
    lengthlab rules data --task my_rule.py:merge --lengths 3 --samples 100 -o merge.jsonl
    """
    from lengthlab.rules import rows, write_rows

    require(out.suffix == ".jsonl", f"--out is a file that ends in .jsonl, not {out}")
    require(out.parent.is_dir(), f"there is no folder {out.parent} to write {out.name} to")
    require(not out.is_dir(), f"{out} is a folder: name a file")
    count = write_rows(out, rows(task, ALSO.get(form, form), lengths, samples, seed, steps))
    click.echo(f"{count:,} rows are in {out}.")


rules.add_command(square)
rules.add_command(finetune)
rules.add_command(loops)
