"""What a language model answers where it has to follow a rule, by length: free-running, and how far from right.

A completion is scored by the answer it ends with, by whether all of it is right, and by the turns of its loops: a loop that
ends early, or late, is where models go wrong (Hu et al. 2025, arXiv 2502.11525).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lengthlab.errors import LabError
from lengthlab.integrations.language_model import LanguageModel
from lengthlab.rules import score_text
from lengthlab.rules.dataset import ruled_rows
from lengthlab.store import replace_file
from lengthlab.store.rows import ALL, Count

SEED = 1_000_000
"""Of what is asked, the same for every model; nobody trains with it."""
SPARE = 1.25
"""So many times the tokens of the longest right answer a model may say: who goes on has not found the end."""


@dataclass(frozen=True)
class Answer:
    """What was asked, said and right, and its score (`lengthlab.rules.Score`)."""

    length: int
    prompt: str
    said: str
    right: str
    answer: bool
    exact: bool
    turns_off: int | None
    turns_more: int | None


def ask(lm: LanguageModel, task: str, form: str, length: int, samples: int) -> list[Answer]:
    """Its answers to the fixed samples of a length."""
    asked = list(ruled_rows(task, form, (length, length), samples, SEED + length))
    rows = [row for _, row in asked]
    most = max(len(lm.completion(row["completion"])) for row in rows)
    said = lm.answers([row["prompt"] for row in rows], int(SPARE * most) + 8)
    answers = []
    for (rule, row), text in zip(asked, said, strict=True):
        score = score_text(text, row["completion"], form, rule)
        answers.append(Answer(length, row["prompt"], text, row["completion"], **asdict(score)))
    return answers


def asked_before(lm: LanguageModel, task: str, form: str, length: int, samples: int, folder: Path) -> list[Answer]:
    """The same; kept in a file of the folder, and read from there if it has them."""
    path = folder / f"length-{length:04}.jsonl"
    known = _read(path)
    if len(known) == samples:
        return known
    answers = ask(lm, task, form, length, samples)
    lines = "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)
    replace_file(path, lines.encode("utf-8", "backslashreplace"))
    return answers


def _read(path: Path) -> list[Answer]:
    if not path.is_file():
        return []
    try:
        return [Answer(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError):
        raise LabError(f"{path} is truncated or foreign: move it away and start the same command again") from None


def counts_of(answers: Iterable[Answer], form: str) -> list[Count]:
    """By length: the answer, which is all that is asked, whatever the form. Where steps are told, also the whole completion
    (`trace`), `enough-turns`, loops take as many turns in all as they have to, or more, and `no-extra-turn`, as many or fewer.
    """
    counts = []
    for length, those in _by_length(answers).items():
        right = {"answer": sum(each.answer for each in those)}
        right[ALL] = right["answer"]
        if form != "direct":
            right["trace"] = sum(each.exact for each in those)
            right["enough-turns"] = sum((each.turns_more or 0) >= 0 for each in those)
            right["no-extra-turn"] = sum((each.turns_more or 0) <= 0 for each in those)
        counts += [Count(length, question, correct, len(those)) for question, correct in right.items()]
    return counts


def loop_errors(answers: Iterable[Answer]) -> dict[str, dict[str, float]]:
    """By length: the mean error in the number of turns, and the shares of answers whose loops end early or late in all."""
    found = {}
    for length, those in _by_length(answers).items():
        told = [each for each in those if each.turns_more is not None and each.turns_off is not None]
        if told:
            found[str(length)] = {
                "mean": sum(each.turns_off or 0 for each in told) / len(told),
                "early": sum((each.turns_more or 0) < 0 for each in told) / len(told),
                "late": sum((each.turns_more or 0) > 0 for each in told) / len(told),
            }
    return found


def _by_length(answers: Iterable[Answer]) -> Mapping[int, Sequence[Answer]]:
    found: dict[int, list[Answer]] = {}
    for each in answers:
        found.setdefault(each.length, []).append(each)
    return found
