"""Who learns: embedding, body, head.

Shapes: B samples, T tokens, D width, V vocabulary, Q positions at which the model is asked to speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from lengthlab import kernels
from lengthlab.errors import require
from lengthlab.models.asked import ask, pick
from lengthlab.models.compose import Part, keep_name
from lengthlab.models.linear import Linear


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

    def __post_init__(self) -> None:
        require(self.width >= 1, f"model.width must be at least 1, not {self.width}")

    def build(self, vocabulary: int) -> Network:
        return Network(vocabulary, self.width, keep_name(self.body).build(self.width))


class Network(nn.Module):
    def __init__(self, vocabulary: int, width: int, body: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = body
        self.head = Linear(width, vocabulary)

    def forward(self, tokens_BT: Tensor, at_BQ: Tensor | None = None) -> Tensor:
        """Logits at every token, or only at the positions asked for, which spares much of the work."""
        weight_VD = self.embedding.weight
        x_BTD = kernels.embed(tokens_BT, weight_VD) if kernels.serve_embedding(weight_VD) else self.embedding(tokens_BT)
        logits: Tensor = self.head(ask(self.body, x_BTD, at_BQ))
        return logits


def speak(network: nn.Module, tokens_BT: Tensor, at_BQ: Tensor) -> Tensor:
    """logits_BQV of any module that a model builds."""
    if isinstance(network, Network):
        logits_BQV: Tensor = network(tokens_BT, at_BQ)
        return logits_BQV
    return pick(network(tokens_BT), at_BQ)
