"""Free-running answers: the network reads what it has said itself, token by token.

Where it is asked, it says a token, and the next position reads that token instead of the right one; everywhere else it reads
what is written. A network that can go on from a state reads every token once; any other reads the whole beginning again.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lengthlab.evaluation.stream import piece_on
from lengthlab.models.layout import Layout
from lengthlab.models.model import Network, logits
from lengthlab.tasks import IGNORE, Batch
from lengthlab.tasks.batch import merged


@torch.no_grad()
def generate(network: nn.Module, batch: Batch) -> Tensor:
    """said_BT: after each position that asks something, the token the network says; IGNORE elsewhere.

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
    reader = _Reader(network, batch.position_BT)
    for column in range(columns[0], columns[-1] + 1):
        said_B = reader.last_logits(tokens_BT, column).argmax(dim=-1)
        said_BT[:, column] = said_B.where(asked_BT[:, column], IGNORE)
        tokens_BT[:, column + 1] = said_B.where(asked_BT[:, column], tokens_BT[:, column + 1])
    return said_BT


class _Reader:
    """Reads a growing beginning of the sequences."""

    def __init__(self, network: nn.Module, position_BT: Tensor | None) -> None:
        self.network, self.position_BT = network, position_BT
        self.state: object = None
        self.read = 0
        """How many columns the state has seen."""

    def last_logits(self, tokens_BT: Tensor, column: int) -> Tensor:
        """logits_BV after this column."""
        if isinstance(self.network, Network) and self.network.has_state:
            while self.read <= column:
                start, self.read = self.read, min(self.read + piece_on(tokens_BT.device), column + 1)
                piece_BT = tokens_BT[:, start : self.read]
                logits_B1V, self.state = self.network.read(piece_BT, self.state, self._layout(piece_BT, start))
            return logits_B1V[:, 0]
        beginning_BT = tokens_BT[:, : column + 1]
        return logits(self.network, beginning_BT, self._layout(beginning_BT, 0))[:, 0]

    def _layout(self, tokens_BT: Tensor, start: int) -> Layout:
        """Of the columns from `start` on, the last of which is asked."""
        samples, tokens = tokens_BT.shape
        position_BT = None if self.position_BT is None else self.position_BT[:, start : start + tokens]
        return Layout(position_BT, torch.full((samples, 1), tokens - 1, device=tokens_BT.device))
