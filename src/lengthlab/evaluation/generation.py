"""Free-running answers: the network reads what it has said itself, token by token.

Where it is asked, it says a token, and the next position reads that token instead of the right one; everywhere else it reads
what is written. A network that can go on from a state reads every token once; any other reads the whole beginning again.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lengthlab.evaluation.stream import PIECE
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
        if isinstance(self.network, Network) and self.network.has_state and self.position_BT is None:
            for piece_BT in torch.split(tokens_BT[:, self.read : column + 1], PIECE, dim=1):
                last_B1 = torch.full((len(piece_BT), 1), piece_BT.shape[1] - 1, device=piece_BT.device)
                logits_B1V, self.state = self.network.read(piece_BT, self.state, Layout(query_BQ=last_B1))
            self.read = column + 1
            return logits_B1V[:, 0]
        position_BT = None if self.position_BT is None else self.position_BT[:, : column + 1]
        query_B1 = torch.full((len(tokens_BT), 1), column, device=tokens_BT.device)
        return logits(self.network, tokens_BT[:, : column + 1], Layout(position_BT, query_B1))[:, 0]
