"""Free-running answers: the network reads what it has said itself, token by token.

Where it is asked, it says a token, and the next position reads that token instead of the right one; everywhere else it reads
what is written. A network that can go on from a state reads every token once; any other reads the whole beginning again.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from lengthlab.evaluation.stream import piece_on
from lengthlab.models.layout import Layout
from lengthlab.models.model import Network, logits
from lengthlab.tasks import IGNORE, Batch
from lengthlab.tasks.batch import merged

Placed = Callable[[Tensor], Tensor | None]
"""Position ids of sequences as far as they are written."""
LOOKED = 16
"""So many tokens are said before it is looked whether all samples have ended: a GPU would wait for each look."""


@torch.no_grad()
def generate(network: nn.Module, batch: Batch, end: int | None = None, placed: Placed | None = None) -> Tensor:
    """said_BT: after each position that asks something, the token the network says; IGNORE elsewhere. Where a token is the
    `end`, nothing more is said once every sample has said it. `placed`: ids that follow from what was said, where the batch's
    own do not do.

    >>> from lengthlab import models, tasks
    >>> task = tasks.ModuloRecall(modulus=2, keys=8)
    >>> batch = task.sample(2, (4, 4), torch.Generator().manual_seed(0))
    >>> network = models.lstm(width=8).build(task.vocabulary)
    >>> (generate(network, batch) != IGNORE).sum(dim=1)
    tensor([2, 2])
    """
    asked_BT = merged(batch.target) != IGNORE
    columns = asked_BT.any(dim=0).nonzero()[:, 0].tolist()
    tokens_BT, said_BT = batch.tokens_BT.clone(), torch.full_like(batch.tokens_BT, IGNORE)
    if not columns:
        return said_BT
    reader = _Reader(network, placed or partial(_given, batch))
    ended_B = torch.zeros(len(tokens_BT), dtype=torch.bool, device=tokens_BT.device)
    for column in range(columns[0], columns[-1] + 1):
        said_B = reader.last_logits(tokens_BT, column).argmax(dim=-1)
        said_BT[:, column] = said_B.where(asked_BT[:, column], IGNORE)
        tokens_BT[:, column + 1] = said_B.where(asked_BT[:, column], tokens_BT[:, column + 1])
        if end is not None:
            ended_B |= said_BT[:, column] == end
            if column % LOOKED == 0 and ended_B.all():
                break
    return said_BT


def _given(batch: Batch, tokens_BT: Tensor) -> Tensor | None:
    return None if batch.position_BT is None else batch.position_BT[:, : tokens_BT.shape[1]]


class _Reader:
    """Reads a growing beginning of the sequences."""

    def __init__(self, network: nn.Module, placed: Placed) -> None:
        self.network, self.placed = network, placed
        self.state: object = None
        self.read = 0
        """How many columns the state has seen."""

    def last_logits(self, tokens_BT: Tensor, column: int) -> Tensor:
        """logits_BV after this column."""
        if isinstance(self.network, Network) and self.network.has_state:
            while self.read <= column:
                start, self.read = self.read, min(self.read + piece_on(tokens_BT.device), column + 1)
                written_BT = tokens_BT[:, : self.read]
                logits_B1V, self.state = self.network.read(written_BT[:, start:], self.state, self._layout(written_BT, start))
            return logits_B1V[:, 0]
        beginning_BT = tokens_BT[:, : column + 1]
        return logits(self.network, beginning_BT, self._layout(beginning_BT, 0))[:, 0]

    def _layout(self, written_BT: Tensor, start: int) -> Layout:
        """Of the columns from `start` on, the last of which is asked."""
        samples, tokens = written_BT.shape
        position_BT = self.placed(written_BT)
        query_B1 = torch.full((samples, 1), tokens - start - 1, device=written_BT.device)
        return Layout(None if position_BT is None else position_BT[:, start:], query_B1)
