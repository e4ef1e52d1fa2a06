"""Who learns: embedding, body, head.

Shapes: B samples, T tokens, D width, V vocabulary, Q positions at which logits are wanted, L position ids.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require, require_whole
from lengthlab.models.attention.learned import LearnedPositions
from lengthlab.models.attention.randomized import RandomizedPositions
from lengthlab.models.compose import Part, keep_name
from lengthlab.models.layout import PLAIN, Layout, pick
from lengthlab.models.linear import Linear
from lengthlab.models.mixer import has_state, read, run


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
    position_ids: int = field(default=0, metadata={"added": "0.2"})
    """So many position ids have a learned vector that is added to the token's; 0: none are added."""

    def __post_init__(self) -> None:
        require_whole(self.width, "model.width", 1)
        require_whole(self.position_ids, "model.position_ids", 0)

    def build(self, vocabulary: int) -> Network:
        return Network(vocabulary, self.width, keep_name(self.body).build(self.width), self.position_ids)


class Network(nn.Module):
    def __init__(self, vocabulary: int, width: int, body: nn.Module, position_ids: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = body
        self.head = Linear(width, vocabulary)
        self.positions = PositionTable(position_ids, width) if position_ids else None

    def forward(self, tokens_BT: Tensor, layout: Layout = PLAIN) -> Tensor:
        """Logits at every token, or only where the layout wants some, which spares much of the work."""
        weight_VD = self.embedding.weight
        x_BTD = kernels.embed(tokens_BT, weight_VD) if kernels.serve_embedding(weight_VD) else self.embedding(tokens_BT)
        if self.positions is not None:
            x_BTD = x_BTD + self.positions(tokens_BT, layout)
        logits: Tensor = self.head(run(self.body, x_BTD, layout))
        return logits

    @property
    def has_state(self) -> bool:
        """Whether it can go on from a state: all its mixers can, and nothing but the order of tokens places them."""
        return self.positions is None and has_state(self.body)

    def read(self, tokens_BT: Tensor, state: Any) -> tuple[Tensor, Any]:
        """logits_BTV of tokens that come after those that `state` has seen (None: none), and the state after them."""
        x_BTD, after = read(self.body, self.embedding(tokens_BT), state)
        return self.head(x_BTD), after


class PositionTable(nn.Module):
    """Learned vectors by position id: the task's own, or 0, 1, 2, …"""

    def __init__(self, limit: int, width: int) -> None:
        super().__init__()
        self.limit = limit
        self.weight_LD = nn.Parameter(0.02 * torch.randn(limit, width))

    def forward(self, tokens_BT: Tensor, layout: Layout) -> Tensor:
        position_BT = layout.position_BT
        if position_BT is None and layout.documents is not None:
            self._check(layout.documents.longest - 1)
            position_BT = layout.documents.index_1N
        elif position_BT is None:
            self._check(tokens_BT.shape[1] - 1)
            position_BT = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)[None]
        elif position_BT.device.type == "cpu" and position_BT.numel():  # on a GPU, training and evaluation look before
            self._check(int(position_BT.max()))
        return self.weight_LD[position_BT]

    def _check(self, largest: int) -> None:
        require_position(largest, self.limit)


def require_position(largest: int, limit: int | None) -> None:
    """Refuse an id without a vector, before a GPU meets it: there it would end the process, and other runs with it."""
    fits = limit is None or largest < limit
    require(fits, f"position id {largest} is too large for a table of {limit}: raise the model's limit")


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
