"""The feed-forward part of a transformer block.

Shapes: D width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from lengthlab.errors import require_whole
from lengthlab.models.activations import Activation, Relu, Silu
from lengthlab.models.linear import Linear
from lengthlab.models.wiring import Links


@dataclass(frozen=True)
class Mlp:
    """Two linear maps with an activation between, `factor` times as wide inside; ReLU, as in the first transformer."""

    factor: int = 4
    activation: Activation = field(default=Relu(), metadata={"added": "0.2"})
    bias: bool = field(default=True, metadata={"added": "0.2"})

    def __post_init__(self) -> None:
        require_whole(self.factor, "model.mlp", 1)

    def build(self, width: int) -> nn.Module:
        inside = self.factor * width
        first, last = Linear(width, inside, self.bias), Linear(inside, width, self.bias)
        return Links(first, self.activation.build(inside), last)


@dataclass(frozen=True)
class GatedMlp:
    """One map opens gates for another: (act(x·W) * x·V)·U (Shazeer 2020, arXiv 2002.05202); SwiGLU with SiLU.

    >>> sum(p.numel() for p in GatedMlp(2).build(width=4).parameters())  # three maps of 4 by 8, with biases
    116
    """

    factor: int = 4
    activation: Activation = Silu()
    bias: bool = field(default=True, metadata={"added": "0.2"})

    def __post_init__(self) -> None:
        require_whole(self.factor, "model.mlp", 1)

    def build(self, width: int) -> nn.Module:
        return _GatedMlp(width, self.factor * width, self.activation.build(self.factor * width), self.bias)


class _GatedMlp(nn.Module):
    tokenwise = True

    def __init__(self, width: int, inside: int, activation: nn.Module, bias: bool) -> None:
        super().__init__()
        self.gate = Linear(width, inside, bias)
        self.up = Linear(width, inside, bias)
        self.activation = activation
        self.down = Linear(inside, width, bias)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(self.activation(self.gate(x)) * self.up(x))
        return out
