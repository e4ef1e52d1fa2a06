"""What a model answers in its own words: it reads what it has said itself, to the end or half as far again as the right answer.

As long as it says what is right, reading its own words is reading the right ones. So a sample is read once as it is written,
and goes on by itself from the first token that is wrong; one that has none is done.

Shapes: B samples, T tokens, Q positions at which a sample is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from lengthlab.evaluation.accuracy import evaluation_set, layout_of
from lengthlab.evaluation.generation import generate
from lengthlab.models.model import logits, token_limit
from lengthlab.store.rows import Count
from lengthlab.tasks import IGNORE, Batch, Task
from lengthlab.tasks.batch import join, merged, pad_tokens

SAMPLES = 100
"""Of a length: free-running takes a pass of the network for every token."""
TOKENS = 2**14
"""Of the longest sample; where it has more, nothing is counted."""
TOGETHER = 2**18
"""Tokens of samples that are read side by side."""


def outcome_counts(network: nn.Module, task: Task, lengths: Iterable[int], samples: int = SAMPLES) -> list[Count]:
    """How many of the first samples of each length come to each of the task's outcomes; nothing where it has none, or where
    sequences are too long.

    >>> from lengthlab import models
    >>> from lengthlab.tasks import coin_flips_rule
    >>> task = coin_flips_rule("scratchpad")
    >>> counts = outcome_counts(models.lstm(width=8).build(task.vocabulary), task, [2], samples=5)
    >>> [(count.question, count.total) for count in counts]
    [('result', 5), ('enough-turns', 5), ('no-extra-turn', 5)]
    """
    return [count for length in lengths for count in _at(network, task, length, samples)] if task.outcomes else []


def _at(network: nn.Module, task: Task, length: int, samples: int) -> Iterator[Count]:
    held: dict[str, list[bool]] = {outcome: [] for outcome in task.outcomes}
    for right, said in own_words(network, task, length, samples):
        for outcome, holds in task.outcome_of(right, said).items():
            held[outcome].append(holds)
    yield from (Count(length, outcome, sum(found), len(found)) for outcome, found in held.items() if found)


def own_words(network: nn.Module, task: Task, length: int, samples: int = SAMPLES) -> Iterator[tuple[list[str], list[str]]]:
    """Of the first samples of a length, each as it is written, and the words that the network says in the place of its answer;
    nothing where sequences are too long.
    """
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    batch, words = join(tuple(evaluation_set(task, length, samples))), task.words
    tokens = batch.tokens_BT.shape[1]
    rows = max(1, TOGETHER // tokens)
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        for start in range(0, samples, rows) if tokens <= TOKENS else ():
            piece = batch.rows(slice(start, start + rows))
            for tokens_T, said in zip(piece.tokens_BT, _said(network, task, piece.to(device)), strict=True):
                yield task.decode(tokens_T), [words[token] for token in said]
    finally:
        for module, training in modes.items():
            module.training = training


@torch.no_grad()
def _said(network: nn.Module, task: Task, batch: Batch) -> list[list[int]]:
    """The tokens of every answer, up to the one that ends sequences."""
    target_BT = merged({question: batch.target[question] for question in task.questions})
    wrong_BT = _wrong(network, task, batch, target_BT)
    said = [target_T[target_T != IGNORE].tolist() for target_T in target_BT]
    (own_S,) = wrong_BT.any(dim=1).nonzero(as_tuple=True)
    if len(own_S):
        end = int(batch.tokens_BT[0, batch.length_B[0] - 1])
        limit = token_limit(network) if batch.position_BT is None else None  # its own ids end by themselves
        longer = _longer(batch.take(own_S), target_BT[own_S], wrong_BT[own_S], limit)
        spoken_BT = generate(network, longer, end, lambda tokens_BT: task.ids_of(longer, tokens_BT))
        right_BT = longer.tokens_BT[:, 1:]
        whole_BT = spoken_BT[:, :-1].where(spoken_BT[:, :-1] != IGNORE, right_BT)  # what is right, and then its own
        begin_S = (target_BT[own_S] != IGNORE).byte().argmax(dim=1)
        for sample, whole_T, begin in zip(own_S.tolist(), whole_BT.tolist(), begin_S.tolist(), strict=True):
            said[sample] = _ended(whole_T[begin:], end)
    return said


def _wrong(network: nn.Module, task: Task, batch: Batch, target_BT: Tensor) -> Tensor:
    """wrong_BT: where it says something else, after the right tokens."""
    layout, wanted = layout_of(batch, task.questions)
    said_BQ = logits(network, batch.tokens_BT[:, :-1], layout).argmax(dim=-1)
    wanted_BQ = merged(wanted)
    wrong_BQ = (said_BQ != wanted_BQ) & (wanted_BQ != IGNORE)
    if layout.query_BQ is None:
        return pad_tokens(wrong_BQ, 0, 1)
    return torch.zeros_like(target_BT).scatter_add_(1, layout.query_BQ, wrong_BQ.long()) > 0


def _longer(batch: Batch, target_BT: Tensor, wrong_BT: Tensor, limit: int | None) -> Batch:
    """Asked from the first wrong token on, half as far again as the longest sample has tokens."""
    tokens = batch.tokens_BT.shape[1]
    more = tokens // 2 if limit is None else max(0, min(tokens // 2, limit - tokens))
    tokens_BT = pad_tokens(batch.tokens_BT, 0, more)
    place_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
    first_B1 = wrong_BT.byte().argmax(dim=1)[:, None]
    asked_BT = (place_T >= first_B1) & (place_T < tokens_BT.shape[1] - 1)
    target = {"own": torch.zeros_like(tokens_BT).masked_fill(~asked_BT, IGNORE)}
    return replace(batch, tokens_BT=tokens_BT, target=target)


def _ended(tokens: list[int], end: int) -> list[int]:
    return tokens[: tokens.index(end) + 1] if end in tokens else tokens
