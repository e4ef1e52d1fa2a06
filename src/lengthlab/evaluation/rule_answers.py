"""What a network says where it has to follow a rule, free-running: the answer it ends with, the whole, and the turns of loops.

A network may say half as much again as the longest sequence of a batch has; a loop that goes on until then ends late.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from lengthlab.errors import require
from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.evaluation.generation import generate
from lengthlab.models.model import token_limit
from lengthlab.rules import Score, score_words
from lengthlab.tasks import IGNORE, Batch
from lengthlab.tasks.batch import pad_tokens
from lengthlab.tasks.rule_pointers import RulePointers
from lengthlab.tasks.rules import RuleTask

END = "<eos>"


@dataclass(frozen=True)
class RuleAnswers:
    """Of so many samples of a length: right answers, right in every word; loops that end early or late, and by how many turns
    they are off in the mean. The last three are None where the form tells of no loop.
    """

    length: int
    samples: int
    answer: int
    exact: int
    early: int | None
    late: int | None
    turns_off: float | None


def rule_answers(network: nn.Module, task: RuleTask, length: int, samples: int = 100) -> RuleAnswers:
    """Its answers to the fixed samples of a length.

    >>> from lengthlab import models
    >>> from lengthlab.tasks import coin_flips_rule
    >>> task = coin_flips_rule("scratchpad")
    >>> found = rule_answers(models.lstm(width=8).build(task.vocabulary), task, 2, samples=5)
    >>> found.samples, found.answer <= 5, found.early
    (5, True, 5)
    """
    placed = isinstance(task, RulePointers)
    require(not placed, f"task '{task.name}': its ids follow from the right words, so that it is not read free-running")
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        found = [each for batch in evaluation_set(task, length, samples) for each in _scores(network, task, batch.to(device))]
    finally:
        for module, training in modes.items():
            module.training = training
    more = [score.turns_more for score in found if score.turns_more is not None]
    off = [score.turns_off for score in found if score.turns_off is not None]
    return RuleAnswers(
        length,
        len(found),
        sum(score.answer for score in found),
        sum(score.exact for score in found),
        sum(each < 0 for each in more) if more else None,
        sum(each > 0 for each in more) if more else None,
        sum(off) / len(off) if off else None,
    )


def _scores(network: nn.Module, task: RuleTask, batch: Batch) -> Iterator[Score]:
    longer = _longer(batch, token_limit(network))
    said_BT, target_BT = generate(network, longer).cpu(), batch.target["answer"].cpu()
    vocabulary = task.words
    for said_T, target_T, tokens_T in zip(said_BT, target_BT, batch.tokens_BT.cpu(), strict=True):
        words, asked_T = task.decode(tokens_T), target_T != IGNORE
        rule = task.told(words[1 : words.index("<sep>")])[0].rule
        said = _ended([vocabulary[token] for token in said_T[said_T != IGNORE].tolist()])
        right = _ended([vocabulary[token] for token in target_T[asked_T].tolist()])
        yield score_words(said, right, task.written, rule)


def _longer(batch: Batch, limit: int | None) -> Batch:
    """The same, asked on after its end: what is wanted there is not looked at."""
    tokens = batch.tokens_BT.shape[1]
    more = tokens // 2 if limit is None else max(0, min(tokens // 2, limit - tokens))
    tokens_BT = pad_tokens(batch.tokens_BT, 0, more)
    target_BT = pad_tokens(batch.target["answer"], 0, more, IGNORE)
    place_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
    beyond_BT = (place_T >= batch.length_B[:, None] - 1) & (place_T < batch.length_B[:, None] - 1 + more)
    return Batch(tokens_BT, {"answer": target_BT.masked_fill(beyond_BT, 0)}, batch.length_B + more)


def _ended(words: list[str]) -> list[str]:
    return words[: words.index(END)] if END in words else words
