"""`lengthlab rules finetune`: a language model of Hugging Face that learns to follow a rule."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lengthlab.cli import options
from lengthlab.cli.pages import say
from lengthlab.cli.ranges import ALSO, FORMS, Range
from lengthlab.errors import require

if TYPE_CHECKING:
    from lengthlab.integrations.finetuning import Recipe
    from lengthlab.store import Folder

GOOD = 0.90
"""Of answers: how far a rule is said to be followed."""


@click.command()
@click.option("--model", required=True, type=options.Place(path_type=Path), metavar="FOLDER", help="Of a Hugging Face model.")
@click.option("--task", required=True, metavar="RULE", help="One of ours, programs, or your own: my_rule.py:name")
@click.option("--form", "--format", type=click.Choice(FORMS), default="trace", show_default=True, help="As in `rules data`.")
@click.option("--lengths", type=Range(), default="1-5", show_default=True, metavar="FROM-TO", help="Of training.")
@click.option("--samples", type=click.IntRange(min=1), default=1000, show_default=True, help="Of each, in training.")
@click.option("--test", type=options.Lengths(), default="5,6,8,10,15,20,30", show_default=True, help="Lengths to measure at.")
@click.option("--test-samples", type=click.IntRange(min=1), default=100, show_default=True, help="Of each, when measured.")
@click.option("--rank", type=click.IntRange(1, 4096), default=8, show_default=True, help="Of LoRA's matrices.")
@click.option("--full", is_flag=True, help="Train all weights instead of LoRA.")
@click.option("--epochs", type=options.Finite(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--batch", type=click.IntRange(min=1), default=32, show_default=True)
@click.option("--lr", type=options.Finite(min=0, min_open=True), help="1e-4 with LoRA, 1e-5 with --full, if not given.")
@click.option("--save-every", type=click.IntRange(min=1), default=100, show_default=True, help="Steps between checkpoints.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@options.store
@options.device
def finetune(
    model: Path,
    task: str,
    form: str,
    lengths: tuple[int, int],
    samples: int,
    test: tuple[int, ...],
    test_samples: int,
    store: str,
    device: str,
    **given: Any,
) -> None:
    """Teach a language model on this disk to follow a rule, and measure it by length, free-running.

    Training is Hugging Face's Trainer on prompts and completions as `lengthlab rules data` writes them. Stop it when you like:
    the same command goes on. What is learned, every answer and the counts are kept in STORE/ID; `lengthlab report STORE` shows
    several side by side.

    \b
    lengthlab rules finetune --model ./Qwen2.5-0.5B --task addition --form rule
    lengthlab rules finetune --model ./gpt2 --task my_rule.py:merge --form scratchpad --full
    """
    from lengthlab.device import device_named
    from lengthlab.integrations.rule_tuning import content_of, prepared, tuned
    from lengthlab.store import Folder, check_place
    from lengthlab.store.ids import hash_of

    form, place = ALSO.get(form, form), device_named(device)
    recipe = _recipe(**given)
    check_place(Path(store), "store")
    inside = Path(store).resolve().is_relative_to(model.resolve())
    require(not inside, f"--store {store} is in the model's own folder: name another place for runs")
    rows, lm = prepared(model, task, form, lengths, samples, (test, test_samples), recipe.seed)
    content = content_of(lm, task, form, lengths, samples, recipe)
    folder = Folder(Path(store) / hash_of(content))
    with folder.lock(), redirect_stdout(sys.stderr):
        tuned(lm, rows, content, recipe, folder, place, (test, test_samples))
    tell(folder, store)


def _recipe(rank: int, full: bool, epochs: float, batch: int, lr: float | None, save_every: int, seed: int) -> Recipe:
    from lengthlab.integrations.finetuning import Recipe

    rate = (1e-5 if full else 1e-4) if lr is None else lr
    return Recipe(0 if full else rank, epochs, batch, rate, save_every=save_every, seed=seed)


def tell(folder: Folder, store: str) -> None:
    """What was measured, a line for each length."""
    result = folder.read_json("result.json")
    by_length: dict[int, dict[str, tuple[int, int]]] = {}
    for count in result["counts"]:
        by_length.setdefault(count["length"], {})[count["question"]] = (count["correct"], count["total"])
    say(f"{result['model']}, {result['task']}, {result['training']}, trained on n = {_range(result['lengths'])}")
    for length, counts in by_length.items():
        parts = [f"{name} {counts[name][0] / counts[name][1]:.2f}" for name in ("answer", "trace") if name in counts]
        turns = result["turns"].get(str(length))
        parts += (
            [f"loop turns off by {turns['mean']:.2f} (early {turns['early']:.2f}, late {turns['late']:.2f})"] if turns else []
        )
        say(f"  n = {length:<4} {', '.join(parts)}  ({next(iter(counts.values()))[1]} samples)")
    say(f"  {_how_far({length: counts['answer'] for length, counts in by_length.items()})}")
    say(f"kept in {folder.path}; lengthlab report {shlex.quote(store)} shows it beside others")


def _how_far(answers: Mapping[int, tuple[int, int]]) -> str:
    """As the papers on rule following count it.

    >>> _how_far({5: (98, 100), 10: (91, 100), 20: (40, 100)})
    'answers: 0.40 at n = 20; the longest length with at least 0.90 is n = 10'
    """
    share = {length: right / total for length, (right, total) in answers.items()}
    longest, reached = max(share), max((length for length, each in share.items() if each >= GOOD), default=None)
    far = f"the longest length with at least {GOOD:.2f} is n = {reached}" if reached else f"at least {GOOD:.2f} at no length"
    return f"answers: {share[longest]:.2f} at n = {longest}; {far}"


def _range(lengths: Sequence[int]) -> str:
    require(len(lengths) == 2, "a result has the shortest and the longest training length")
    return f"{lengths[0]}…{lengths[1]}"
