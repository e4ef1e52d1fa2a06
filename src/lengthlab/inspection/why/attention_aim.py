"""Is attention sharp: what heads weigh where a question is answered that one position decides.

Which position that is, the task's own plain-Python answer tells: change a word for the one that stands there in another
sequence, and see whether the answer changes. A question that hangs on more than a few positions has
no right one, and is not asked here.

Shapes: B samples, T tokens, H heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor, nn

from lengthlab.inspection.why.cuts import Watched, watch_attention
from lengthlab.inspection.why.parts import Parts
from lengthlab.inspection.why.patience import OutOfPatience, counted
from lengthlab.inspection.why.samples import Questions, questions_at
from lengthlab.models.model import logits
from lengthlab.store.diagnosis import Aim
from lengthlab.tasks import IGNORE, Task

SAMPLES = 100
FEW = 2.0
"""Positions that an answer hangs on, on average, up to which a question is one of recall."""
TRIED = 8
"""Sequences by which that is found."""
ENOUGH = 6
"""So many positions of a sequence are more than a few, and no more are looked for."""
SCANNED = 256
"""Tokens of a sequence up to which every position is tried; in longer ones those where the answer's own word stands."""
PATIENCE = 20
"""Times the lines of Python that a task needs for a sequence are enough for a changed one."""
HALF = 0.5
"""A position with more of the weight than this is looked at, right or wrong."""


def is_recall(task: Task, question: str, length: int) -> bool:
    """Whether few positions decide the answer.

    >>> from lengthlab.tasks import ModuloRecall
    >>> task = ModuloRecall(modulus=2, keys=16)
    >>> is_recall(task, "recall", 10), is_recall(task, "modulo", 10)
    (True, False)
    """
    counts = []
    for group in questions_at(task, length, samples=4 * TRIED):
        written = words_of(task, group)
        at_B, wanted_B = group.asked(question)
        for row in range(min(TRIED, len(written))):
            if wanted_B[row] != IGNORE:
                if at_B[row] > SCANNED:
                    return False
                found = deciding(task, written, row, question, range(int(at_B[row])))
                counts.append(len(list(islice(found, ENOUGH))))
    return bool(counts) and 0.5 <= sum(counts) / len(counts) <= FEW


def deciding(task: Task, written: Sequence[Sequence[str]], row: int, question: str, places: Iterable[int]) -> Iterator[int]:
    """Those of some places in a sequence at which another word changes the answer. A sequence that the task cannot read any
    more tells nothing.
    """
    words = list(written[row])
    solved, lines = counted(lambda: task.solve(words))
    for place in places:
        others = (each[place] for each in written if len(each) > place and each[place] != words[place])
        other = next(others, None)
        if other is None:
            continue
        put = [*words[:place], other, *words[place + 1 :]]
        try:
            changed, _ = counted(lambda put=put: task.solve(put), PATIENCE * lines)  # type: ignore[misc]
        except (Exception, OutOfPatience):  # whatever a task makes of a sequence that it would never draw
            continue
        if changed.get(question) != solved[question]:
            yield place


def right_places(task: Task, group: Questions, question: str) -> Tensor:
    """place_B: the position that decides each answer; the last of several, and -1 where none is found."""
    written = words_of(task, group)
    at_B, wanted_B = group.asked(question)
    found = []
    for row, words in enumerate(written):
        before = range(min(int(at_B[row]), len(words)))
        word = task.words[int(wanted_B[row])] if wanted_B[row] != IGNORE else None
        copies = [place for place in before if words[place] == word]
        places = list(deciding(task, written, row, question, copies)) if word is not None else []
        if not places and word is not None and len(words) <= SCANNED:
            places = list(deciding(task, written, row, question, before))
        found.append(places[-1] if places else -1)
    return torch.tensor(found)


def words_of(task: Task, group: Questions) -> list[list[str]]:
    return [task.decode(tokens_T) for tokens_T in group.batch.tokens_BT]


@dataclass(frozen=True)
class Looked:
    """What every attention weighed at one position of each sample, by layer, beside the right place."""

    weights: dict[str, Tensor]
    place_B: Tensor
    at_B: Tensor


@torch.no_grad()
def look(network: nn.Module, parts: Parts, task: Task, group: Questions, question: str) -> Looked:
    """weights_BHT of all attention, where a question is asked."""
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    watches: dict[str, Watched] = dict(zip(parts.weighed, watch_attention(parts), strict=True))
    at_B, _ = group.asked(question)
    for watch in watches.values():
        watch.asked_B, watch.seen_BHT = at_B.to(device), None
    batch = Questions(group.batch.to(device), group.boundary)
    try:
        logits(network, batch.read, replace(batch.layout, query_BQ=at_B[:, None].to(device)))
        weights = {name: watch.seen_BHT.float().cpu() for name, watch in watches.items() if watch.seen_BHT is not None}
    finally:
        for watch in watches.values():
            watch.asked_B = watch.seen_BHT = None
    return Looked(weights, right_places(task, group, question), at_B)


def aims_at(network: nn.Module, parts: Parts, task: Task, question: str, length: int, samples: int = SAMPLES) -> list[Aim]:
    """Every head of every attention at a length."""
    found: dict[tuple[str, int], list[Tensor]] = {}
    for group in questions_at(task, length, samples, tokens=2**14):
        looked = look(network, parts, task, group, question)
        known_B = looked.place_B >= 0
        if not bool(known_B.any()):
            continue
        for layer, weights_BHT in looked.weights.items():
            numbers_HBK = _numbers(weights_BHT[known_B], looked.place_B[known_B])
            for head, numbers_BK in enumerate(numbers_HBK):
                found.setdefault((layer, head), []).append(numbers_BK)
    return [_aim(length, question, layer, head, torch.cat(numbers)) for (layer, head), numbers in found.items()]


def _numbers(weights_BHT: Tensor, place_B: Tensor) -> Tensor:
    """Of every head and sample: weight, rank, entropy, and whether it looks at the right place, at a wrong one, or nowhere."""
    place_B11 = place_B[:, None, None].expand(-1, weights_BHT.shape[1], 1)
    own_BH = weights_BHT.gather(2, place_B11)[..., 0]
    rank_BH = 1 + (weights_BHT > own_BH[..., None]).sum(dim=-1)
    entropy_BH = -(weights_BHT * weights_BHT.clamp(min=1e-30).log()).sum(dim=-1)
    most_BH, best_BH = weights_BHT.max(dim=-1)
    # What a recurrence below has read stands one position later as well, and the key one before.
    near_BH = (best_BH - place_B[:, None]).abs() <= 1
    wrong_BH = ~near_BH & (most_BH > HALF)
    spread_BH = ~near_BH & ~wrong_BH
    numbers = (own_BH, rank_BH, entropy_BH, near_BH, wrong_BH, spread_BH)
    return torch.stack([each.double() for each in numbers], dim=-1).transpose(0, 1)


def _aim(length: int, question: str, layer: str, head: int, numbers_BK: Tensor) -> Aim:
    return Aim(length, question, layer, head, len(numbers_BK), *numbers_BK.mean(dim=0).tolist())


def sharpest(aims: Sequence[Aim], question: str, length: int) -> Aim | None:
    """The head that gives the right position most weight at a length."""
    here = [aim for aim in aims if (aim.question, aim.length) == (question, length)]
    return max(here, key=lambda aim: aim.weight, default=None)
