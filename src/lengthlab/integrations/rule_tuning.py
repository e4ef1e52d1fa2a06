"""A rule taught to a language model, from the first row to `result.json`: a run folder like any other.

run.json         what it is
checkpoints/     while it trains
model/           what was learned
answers/         what was said at each length, a line a sample
result.json      counts by length and the errors in loops; written last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from lengthlab.device import hardware
from lengthlab.errors import LabError
from lengthlab.integrations.finetuning import Recipe, finetune, steps_of
from lengthlab.integrations.language_model import LanguageModel, fingerprint, read_language_model
from lengthlab.integrations.rule_answers import SEED, Answer, asked_before, counts_of, loop_errors
from lengthlab.rules import Rule, rows
from lengthlab.rules.dataset import likeliest_answer
from lengthlab.rules.exercise import is_own
from lengthlab.software import versions
from lengthlab.store import Folder
from lengthlab.store.ids import hash_of
from lengthlab.store.rows import ALL

Made = list[dict[str, Any]]
LONG = 20
"""Rows that are counted in tokens, those with the most letters: a letter is not a token, but nearly."""


def prepared(
    model: Path, task: str, form: str, lengths: tuple[int, int], samples: int, test: tuple[Sequence[int], int], seed: int
) -> tuple[Made, LanguageModel]:
    """Rows to train on, and the model, if all that will be read fits, that of the `test` too, so many samples of some lengths:
    nothing is written before that is known.
    """
    made = list(rows(task, form, lengths, samples, seed))
    asked = {length: list(rows(task, form, (length, length), test[1], SEED + length)) for length in test[0]}
    lm = read_language_model(model)
    for length, read in ((lengths[1], made), *asked.items()):
        for row in sorted(read, key=lambda row: len(row["prompt"] + row["completion"]))[-LONG:]:
            lm.require_room(row["prompt"], row["completion"], f"{task}, {form}, n = {length}")
    return made, lm


def content_of(
    lm: LanguageModel, task: str, form: str, lengths: tuple[int, int], samples: int, recipe: Recipe
) -> dict[str, Any]:
    """What decides the result, as `run.json` holds it; of a user's rule its text, too."""
    own = {"rule": asdict(Rule.from_reference(task))} if is_own(task) else {}
    return {
        "task": {"kind": f"rule-{task}", "form": form, "samples": samples, **own},
        "model": {"kind": lm.name, "weights": fingerprint(lm.path)},
        "schedule": recipe.content,
        "lengths": list(lengths),
        "seed": recipe.seed,
    }


def tuned(
    lm: LanguageModel,
    made: Made,
    content: Mapping[str, Any],
    recipe: Recipe,
    folder: Folder,
    device: torch.device,
    test: tuple[Sequence[int], int],
) -> None:
    """Train what is missing, ask what was not asked, and write down what came out."""
    folder.write_json("run.json", content)
    start = monotonic()
    try:
        learned = finetune(lm, made, recipe, folder.path, device)
    except torch.OutOfMemoryError:
        raise LabError(f"{lm.path} does not fit into the memory of this GPU: try a smaller --batch, or LoRA") from None
    seconds = monotonic() - start
    task, form = _task_of(content)
    lengths, samples = test
    answers = [
        answer
        for length in dict.fromkeys(lengths)
        for answer in asked_before(learned, task, form, length, samples, folder.path / "answers")
    ]
    known = folder.read_json("result.json").get("seconds", 0.0) if folder.finished else 0.0
    trained = {
        "steps": steps_of(recipe, len(made)),
        "seconds": round(max(seconds, known), 1),
        "hardware": hardware(device),
        "precision": _precision(lm, recipe, device),
    }
    folder.write_json("result.json", result_of(lm, content, recipe, answers) | trained)


def _precision(lm: LanguageModel, recipe: Recipe, device: torch.device) -> str:
    """Of a step: on a GPU it is taken in bf16, elsewhere in fp32 where all weights are trained, or else as they are kept."""
    if device.type == "cuda":
        return "bf16"
    kept = {torch.bfloat16: "bf16", torch.float16: "fp16"} if recipe.rank else {}
    return kept.get(lm.model.dtype, "fp32")


def _task_of(content: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the rule and the form of its answers."""
    return str(content["task"]["kind"]).removeprefix("rule-"), str(content["task"]["form"])


def result_of(lm: LanguageModel, content: Mapping[str, Any], recipe: Recipe, answers: Sequence[Answer]) -> dict[str, Any]:
    """What was asked, and how it was answered, as `result.json` holds it."""
    name, form = _task_of(content)
    counts = counts_of(answers, form)
    chance = {str(length): likeliest_answer(name, length) for length in dict.fromkeys(count.length for count in counts)}
    return {
        "run": hash_of(content),
        "model": lm.name,
        "task": f"{content['task']['kind']}, {form}",
        "training": recipe.training,
        "settings": hash_of(content, ("seed",)),
        "seed": recipe.seed,
        "lengths": list(content["lengths"]),
        "batch": recipe.batch,
        "chance": {count.question: chance if count.question in ("answer", ALL) else {} for count in counts},
        "counts": [count.to_json() for count in counts],
        "turns": loop_errors(answers),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
