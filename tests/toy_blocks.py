"""Small blocks with attention written in the ways that people write it, and a model that stacks one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, WORDS = 16, 20


def heads(x_BTD: Tensor, projection: nn.Linear) -> tuple[Tensor, Tensor, Tensor]:
    q_BTD, k_BTD, v_BTD = projection(x_BTD).chunk(3, -1)
    return q_BTD, k_BTD, v_BTD


class Attention(nn.Module):
    """Softmax attention, as a sub-layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def mix(self, x: Tensor) -> Tensor:
        return self.out(F.scaled_dot_product_attention(*heads(x, self.qkv), is_causal=True))

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x)


class Plain(nn.Module):
    """Added from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.norm, self.mlp = Attention(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class ByMethod(Plain):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn.mix(self.norm(x))
        return x + self.mlp(x)


class Adding(Attention):
    """Attention that adds the residual by itself, with `torch.add`."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.add(x, self.mix(x))


class AddsItself(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.attn = Adding()

    def forward(self, x: Tensor) -> Tensor:
        x = self.attn(x)
        return x + self.mlp(self.norm(x))


class Handed(Attention):
    """Attention that is given the residual and adds it, through a dropout."""

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, None]:
        return residual + F.dropout(self.mix(x), 0.1, self.training), None


class ResidualAsArgument(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.attn = Handed()

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.attn(self.norm(x), residual=x)
        return x + self.mlp(x)


class PostNorm(Attention):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.mix(x))


class NormsItself(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.attn = PostNorm()

    def forward(self, x: Tensor) -> Tensor:
        x = self.attn(x)
        return x + self.mlp(x)


class InFunction(nn.Module):
    """Attention in the block's own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.mlp = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = heads(x, self.qkv)
        x = x + self.out(torch.einsum("bts,bsd->btd", (torch.einsum("btd,bsd->bts", q, k) / 4).softmax(-1), v))
        return x + self.mlp(x)


class Router(nn.Module):
    """Two experts and a softmax that is no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(WIDTH, 2), nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1)
        return x + sum(weights[..., number, None] * expert(x) for number, expert in enumerate(self.experts))


class LinearMixer(nn.Module):
    """Linear attention with a softmax of queries and of keys, each by itself; a state is what it comes to."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = heads(x, self.qkv)
        return x + q.softmax(-1) @ (k.softmax(1).transpose(1, 2) @ v)


class Model(nn.Module):
    """Tokens to logits through some blocks."""

    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.table, self.blocks, self.head = nn.Embedding(WORDS, WIDTH), nn.ModuleList(blocks), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def tokens(length: int = 9) -> Tensor:
    return torch.randint(0, WORDS, (2, length), generator=torch.Generator().manual_seed(0))
