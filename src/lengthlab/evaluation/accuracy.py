"""Accuracy at a length: the same fixed samples for every model, counted question by question.

Shapes: B samples, T tokens, Q positions at which a sample is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab.evaluation.cores import map_batches
from lengthlab.evaluation.generation import generate
from lengthlab.evaluation.pace import PieceRead, Watch
from lengthlab.evaluation.samples import USUAL, Samples, samples_at
from lengthlab.evaluation.stream import Told, is_streamed, say_in_pieces, side_by_side
from lengthlab.models.layout import Layout
from lengthlab.models.model import Network, logits, position_limit, require_position
from lengthlab.spec.seeds import seed_for
from lengthlab.store.rows import Count
from lengthlab.tasks import ALL, IGNORE, Batch, Task
from lengthlab.tasks.batch import join

DRAWN = 50
"""Samples are drawn so many at a time, each draw with a seed of its own: the set does not depend on the memory at hand."""
DRAWN_LENGTH = 2**21
"""The lengths of samples that are drawn together add up to this at the most: of long ones, fewer at a time."""
TOKENS = {"cpu": 2**16, "cuda": 2**20}
"""Tokens in one forward pass at the most, so that memory does not grow with the number of samples. A GPU walks many sequences
as fast as few; where so many have no room (at width 256, 2^18 tokens take about 1.6 GB), half as many are tried.
"""


def accuracy(
    network: nn.Module,
    task: Task,
    lengths: Iterable[int],
    samples: int | Samples = USUAL,
    seed: int = 0,
    copies: Sequence[nn.Module] = (),
    watch: Watch | None = None,
) -> list[Count]:
    """Counts for each length, each question and all of them. `copies` of the network spread the batches over as many cores;
    `watch` is told of every piece that is read.

    >>> from lengthlab import models, tasks
    >>> task = tasks.ModuloRecall(modulus=2, keys=8)
    >>> counts = accuracy(models.lstm(width=8).build(task.vocabulary), task, [4], samples=10)
    >>> [(count.length, count.question, count.total) for count in counts]
    [(4, 'modulo', 10), (4, 'recall', 10), (4, 'all', 10)]
    """
    counts: list[Count] = []
    modes = {module: module.training for module in network.modules()}  # a user may have frozen some
    networks = [each.eval() for each in (network, *copies)]
    try:
        for length in lengths:
            counts += _at(networks, task, length, samples_at(samples, task, length), seed, watch or _nobody)
    finally:
        for module, training in modes.items():
            module.training = training
    return counts


def _nobody(read: PieceRead) -> None:
    """Looks on."""


def _at(networks: Sequence[nn.Module], task: Task, length: int, samples: int, seed: int, watch: Watch) -> list[Count]:
    device = next((parameter.device for parameter in networks[0].parameters()), torch.device("cpu"))
    readers = () if task.free_running else networks
    batches = together(evaluation_set(task, length, samples, seed), device, readers)

    def tally(network: nn.Module, batch: Batch) -> dict[str, tuple[int, int, int, int]]:
        return _tally(network, task, batch, _clocked(watch, length, samples, batch, len(networks)))

    tallies = map_batches(tally, networks, batches)
    counts = []
    for question in (*task.questions, ALL):
        numbers = zip(*(tally[question] for tally in tallies), strict=True)
        correct, asked, right, tokens = (sum(each) for each in numbers)
        if asked:  # a mixture may have drawn no sample of a task
            several = tokens > asked * (1 if question != ALL else len(task.questions))  # else tokens say nothing new
            counts.append(Count(length, question, correct, asked, *((right, tokens) if several else ())))
    return counts


def _clocked(watch: Watch, length: int, samples: int, batch: Batch, threads: int) -> Told:
    """Tells of every piece of a batch and how long it took."""
    rows, tokens = batch.tokens_BT.shape
    last = monotonic()

    def told(piece: int, pieces: int) -> None:
        nonlocal last
        before, last = last, monotonic()
        watch(PieceRead(length, samples, rows, tokens, piece, pieces, last - before, threads))

    return told


def _tally(network: nn.Module, task: Task, batch: Batch, told: Told) -> dict[str, tuple[int, int, int, int]]:
    """By question and for all of them: right samples, of those that are asked; right tokens, of so many."""
    predicted, wanted = _predict(network, task, batch, told)
    asked = {question: target_BQ != IGNORE for question, target_BQ in wanted.items()}
    hits = {question: (predicted == target_BQ) & asked[question] for question, target_BQ in wanted.items()}
    right_B = {question: (hits[question] == asked[question]).all(dim=1) for question in wanted}
    asked_B = {question: asked[question].any(dim=1) for question in wanted}
    tallies = {
        question: (right_B[question] & asked_B[question], asked_B[question], hits[question], asked[question])
        for question in wanted
    }
    found = {question: tuple(int(each.sum()) for each in tally) for question, tally in tallies.items()}
    every = torch.stack(list(right_B.values())).all(dim=0)
    found[ALL] = (int(every.sum()), len(every), *(sum(found[question][place] for question in wanted) for place in (2, 3)))
    return cast(dict[str, tuple[int, int, int, int]], found)


def _predict(network: nn.Module, task: Task, batch: Batch, told: Told) -> tuple[Tensor, dict[str, Tensor]]:
    """What the network says where it is asked, and what each question wants there; in halves where a GPU has no room."""
    if batch.position_BT is not None:
        require_position(int(batch.position_BT.max()), position_limit(network))
    try:
        return _said(network, task, batch, told)
    except torch.OutOfMemoryError:
        half = len(batch.tokens_BT) // 2
        if half == 0:
            raise
    halves = [_predict(network, task, batch.rows(rows), told) for rows in (slice(half), slice(half, None))]
    return _stacked(halves)


def _said(network: nn.Module, task: Task, batch: Batch, told: Told) -> tuple[Tensor, dict[str, Tensor]]:
    if task.free_running:
        said_BQ, wanted = generate(network, batch), {question: batch.target[question] for question in task.questions}
    else:
        layout, wanted = layout_of(batch, task.questions)
        read_BT = batch.tokens_BT[:, :-1]
        if is_streamed(network, read_BT.shape[1]):
            return say_in_pieces(cast(Network, network), read_BT, layout, told), wanted
        said_BQ = logits(network, read_BT, layout).argmax(dim=-1)
    told(0, 1)
    return said_BQ, wanted


def _stacked(halves: Sequence[tuple[Tensor, dict[str, Tensor]]]) -> tuple[Tensor, dict[str, Tensor]]:
    """Halves of a batch may be asked at unequally many positions."""
    widest = max(predicted.shape[1] for predicted, _ in halves)

    def stacked(pieces: Sequence[Tensor]) -> Tensor:
        return torch.cat([F.pad(piece, (0, widest - piece.shape[1]), value=IGNORE) for piece in pieces])

    wanted = {question: stacked([half[question] for _, half in halves]) for question in halves[0][1]}
    return stacked([predicted for predicted, _ in halves]), wanted


def layout_of(batch: Batch, questions: Sequence[str]) -> tuple[Layout, dict[str, Tensor]]:
    """Where these questions ask, all tokens but the last being read, and what each wants there. A batch that is asked at most
    of its positions is asked at all of them.
    """
    read = batch.tokens_BT.shape[1] - 1
    position_BT = None if batch.position_BT is None else batch.position_BT[:, :read]
    most = batch.most_asked(questions)
    if 2 * most >= read:
        return Layout(position_BT), {question: batch.target[question][:, :read] for question in questions}
    first = batch.first_asked(questions)
    query_BQ, wanted = batch.after(first).queries(questions, most)
    return Layout(position_BT, first + query_BQ), wanted


def evaluation_set(task: Task, length: int, samples: int, seed: int = 0) -> Iterator[Batch]:
    """The fixed samples of a length. Drawn on the CPU whatever the model runs on, so that all models meet the same."""
    drawn = drawn_together(length)
    for start in range(0, samples, drawn):
        generator = torch.Generator().manual_seed(seed_for("evaluation", seed, length, start))
        yield task.as_measured.sample(min(drawn, samples - start), (length, length), generator)


def drawn_together(length: int) -> int:
    """How many samples of a length are drawn at a time.

    >>> drawn_together(25), drawn_together(1_000_000)
    (50, 2)
    """
    return max(1, min(DRAWN, DRAWN_LENGTH // length))


def together(draws: Iterable[Batch], device: torch.device, networks: Sequence[nn.Module] = ()) -> Iterator[Batch]:
    """The same samples on a device, in batches as large as one forward pass takes there. What the networks, copies of one, read
    in pieces stays on the host, and as many as can be read together are a batch.
    """
    waiting: list[Batch] = []
    for draw in draws:
        tokens = draw.tokens_BT.shape[1]
        streamed = bool(networks) and is_streamed(networks[0], tokens - 1)
        most = TOKENS.get(device.type, TOKENS["cpu"]) // tokens
        rows = side_by_side(networks[0], tokens, device, len(networks)) if streamed else max(1, most)
        for start in range(0, len(draw.tokens_BT), rows):
            piece = draw.rows(slice(start, start + rows))
            if waiting and sum(len(batch.tokens_BT) for batch in (*waiting, piece)) > rows:
                yield _placed(join(waiting), device, networks)
                waiting = []
            waiting.append(piece)
    if waiting:
        yield _placed(join(waiting), device, networks)


def _placed(batch: Batch, device: torch.device, networks: Sequence[nn.Module]) -> Batch:
    streamed = bool(networks) and is_streamed(networks[0], batch.tokens_BT.shape[1] - 1)
    return batch if streamed else batch.to(device)
