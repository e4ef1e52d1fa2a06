"""Who learns: embedding, body, head.

Shapes: B samples, T tokens, D width, V vocabulary, Q positions at which logits are wanted.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch.nn.functional as F
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_number, require_whole
from lengthlab.models.attention.learned import LearnedPositions
from lengthlab.models.attention.randomized import RandomizedPositions
from lengthlab.models.compose import Part, keep_name
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import has_state, read, run
from lengthlab.models.position_table import PositionIds, PositionTable
from lengthlab.models.position_table import require_position as require_position


class AnyModel(Protocol):
    """A run's model: a frozen dataclass with a name that builds a causal module `tokens_BT -> logits_BTV`."""

    @property
    def name(self) -> str: ...

    def build(self, vocabulary: int) -> nn.Module: ...


@dataclass(frozen=True)
class Model:
    """A body of parts between an embedding and a head, all of one width.

    >>> from lengthlab.models import Lstm, chain
    >>> network = Model("two-lstms", width=8, body=chain(Lstm(), Lstm())).build(vocabulary=20)
    >>> sum(p.numel() for p in network.parameters())
    1492
    """

    name: str
    width: int
    body: Part
    position_ids: int | PositionIds = field(default=0, metadata={"added": "0.2"})
    """So many position ids have a learned vector that is added to the token's; 0: none are added. `PositionIds` says more."""
    std: float = field(default=0.0, metadata={"added": "0.3"})
    """Of the first weights of all matrices and tables, biases being 0; with 0 they are as PyTorch and each part have them."""
    tied: bool = field(default=False, metadata={"added": "0.3"})
    """Whether the head's weights are those of the embedding (Press & Wolf 2016, arXiv 1608.05859); it has no bias then."""

    def __post_init__(self) -> None:
        require_whole(self.width, "model.width", 1)
        require_number(self.std, "model.std", least=0)
        if not isinstance(self.position_ids, PositionIds):
            require_whole(self.position_ids, "model.position_ids", 0)

    def build(self, vocabulary: int) -> Network:
        body = keep_name(self.body).build(self.width)
        network = Network(vocabulary, self.width, body, self.position_ids, self.tied)
        if self.std:
            network.apply(self._draw)
        return network

    def _draw(self, module: nn.Module) -> None:
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=self.std)
            elif "bias" in name and not isinstance(module, nn.LayerNorm):
                nn.init.zeros_(parameter)


class Network(nn.Module):
    def __init__(
        self, vocabulary: int, width: int, body: nn.Module, position_ids: int | PositionIds = 0, tied: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = body
        self.head = None if tied else Linear(width, vocabulary)
        ids = PositionIds(position_ids) if isinstance(position_ids, int) and position_ids else position_ids
        self.positions = ids.build(width) if isinstance(ids, PositionIds) else None

    def forward(self, tokens_BT: Tensor, layout: Layout = PLAIN) -> Tensor:
        """Logits at every token, or only where the layout wants some, which spares much of the work."""
        weight_VD = self.embedding.weight
        x_BTD = kernels.embed(tokens_BT, weight_VD) if kernels.serve_embedding(weight_VD) else self.embedding(tokens_BT)
        if self.positions is not None:
            x_BTD = x_BTD + self.positions(tokens_BT, layout)
        return self._say(run(self.body, x_BTD, layout))

    def _say(self, x_BTD: Tensor) -> Tensor:
        if self.head is None:
            return F.linear(x_BTD, self.embedding.weight)
        logits_BTV: Tensor = self.head(x_BTD)
        return logits_BTV

    @property
    def has_state(self) -> bool:
        """Whether it can go on from a state: all its mixers can, and none has to know before how long a sequence will be."""
        return self.in_pieces and not any(isinstance(module, RandomizedPositions) for module in self.modules())

    @property
    def in_pieces(self) -> bool:
        """Whether it can read a sequence of known length in pieces: the `piece` of the layout says how long the whole is."""
        return has_state(self.body)

    def read(self, tokens_BT: Tensor, state: Any, layout: Layout = PLAIN) -> tuple[Tensor, Any]:
        """logits_BTV of tokens that come after those that `state` has seen (None: none), and the state after them. A layout may
        want logits at a few of these tokens, or at none.
        """
        seen, inside = state or (0, None)
        layout, x_BTD = layout.after(seen), self.embedding(tokens_BT)
        if self.positions is not None:
            x_BTD = x_BTD + self.positions(tokens_BT, layout)
        x_BTD, after = read(self.body, x_BTD, inside, layout)
        return self._say(x_BTD), (seen + tokens_BT.shape[1], after)


def position_limit(network: nn.Module) -> int | None:
    """How many position ids the shortest table of a network has vectors for; None where there is no table."""
    tables = [module for module in network.modules() if isinstance(module, (PositionTable, LearnedPositions))]
    return min((table.limit for table in tables), default=None)


def token_limit(network: nn.Module) -> int | None:
    """How many tokens it can read where the task has no position ids of its own; None where there is no table that ends."""
    tables = (PositionTable, LearnedPositions, RandomizedPositions)
    return min((module.limit for module in network.modules() if isinstance(module, tables)), default=None)


def logits(network: nn.Module, tokens_BT: Tensor, layout: Layout) -> Tensor:
    """logits_BQV of any module that a model builds, where the layout wants them."""
    if isinstance(network, Network):
        logits_BQV: Tensor = network(tokens_BT, layout)
        return logits_BQV
    if layout.position_BT is None:
        return pick(network(tokens_BT), layout.query_BQ)
    takes = "position_ids" in inspect.signature(network.forward).parameters
    require(takes, f"the task has position ids of its own, and {type(network).__name__}.forward takes no position_ids")
    return pick(network(tokens_BT, position_ids=layout.position_BT), layout.query_BQ)
