"""Models as people write them: attention as in nanoGPT, x-transformers and flash-linear-attention, and what is none."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

WIDTH = 8


class CausalSelfAttention(nn.Module):
    """As in nanoGPT."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x_BTD: Tensor) -> Tensor:
        q_BTD, k_BTD, v_BTD = self.c_attn(x_BTD).split(WIDTH, dim=2)
        scores_BTT = q_BTD @ k_BTD.transpose(1, 2) / WIDTH**0.5
        future_TT = torch.ones_like(scores_BTT[0], dtype=torch.bool).triu(1)
        return self.c_proj(F.softmax(scores_BTT.masked_fill(future_TT, -torch.inf), dim=-1) @ v_BTD)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), CausalSelfAttention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.attn(self.ln_1(x_BTD))
        return x_BTD + self.mlp(self.ln_2(x_BTD))


class Gpt(nn.Module):
    """Blocks in a list, each checkpointed if asked for."""

    def __init__(self, blocks: int = 2, reentrant: bool | None = None) -> None:
        super().__init__()
        self.wte, self.h = nn.Linear(WIDTH, WIDTH), nn.ModuleList(Block() for _ in range(blocks))
        self.ln_f, self.reentrant = nn.LayerNorm(WIDTH), reentrant

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.wte(x_BTD)
        for block in self.h:
            recomputed = self.reentrant is not None
            x_BTD = checkpoint(block, x_BTD, use_reentrant=self.reentrant) if recomputed else block(x_BTD)
        return self.ln_f(x_BTD)


class Attend(nn.Module):
    """As in x-transformers: what attends has no weights."""

    def forward(self, q_BTD: Tensor, k_BTD: Tensor, v_BTD: Tensor) -> Tensor:
        return (q_BTD @ k_BTD.transpose(1, 2)).softmax(dim=-1) @ v_BTD


class Attention(nn.Module):
    """As in x-transformers: the maps around it."""

    def __init__(self, qk_norm: bool = False) -> None:
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.q_norm = nn.RMSNorm(WIDTH) if qk_norm else nn.Identity()
        self.attend, self.to_out = Attend(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.to_out(self.attend(self.q_norm(self.to_q(x)), *self.to_kv(x).chunk(2, dim=-1)))


def flash_attn_func(q_BTD: Tensor, k_BTD: Tensor, v_BTD: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q_BTD, k_BTD, v_BTD, is_causal=True)


class FlashAttention(nn.Module):
    """As in flash-linear-attention: three values, of which the last is the cache."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.qkv_proj, self.o_proj, self.layer_idx = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), layer_idx

    def forward(
        self, hidden_states: Tensor, past_key_values: Any = None, output_attentions: bool = False, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None, Any]:
        o = self.o_proj(flash_attn_func(*self.qkv_proj(hidden_states).chunk(3, dim=-1)))
        if not output_attentions:
            attentions = None
        return o, attentions, past_key_values


class LinearAttention(nn.Module):
    """No softmax of scores, though one of queries and one of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv_proj, self.o_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden_states: Tensor) -> Tensor:
        q_BTD, k_BTD, v_BTD = self.qkv_proj(hidden_states).chunk(3, dim=-1)
        state_BTDD = torch.einsum("btd,bte->btde", k_BTD.softmax(dim=-1), v_BTD).cumsum(1)
        return self.o_proj(torch.einsum("btd,btde->bte", q_BTD.softmax(dim=-1), state_BTDD))


class GatedAttention(nn.Module):
    """Another linear attention, which is not even called linear."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.o_proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.o_proj(torch.sigmoid(self.gate(hidden_states)) * hidden_states.cumsum(1))


class Router(nn.Module):
    """A mixture of two experts, weighed by a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(WIDTH, 2), nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        weights_BTE = F.softmax(self.gate(x), dim=-1)
        return sum(weights_BTE[..., [i]] * expert(x) for i, expert in enumerate(self.experts))


class FlaCache:
    """What flash-linear-attention's caches have to be told."""

    def __init__(self) -> None:
        self.seen = 0

    def update(
        self,
        recurrent_state: Any = None,
        attn_state: tuple[Tensor, ...] | None = None,
        conv_state: Any = None,
        layer_idx: int = 0,
        offset: int = 1,
    ) -> None:
        assert recurrent_state is None
        assert attn_state is not None
        assert attn_state[0].shape[1] == offset
        self.seen += offset


class Hybrid(nn.Module):
    """Softmax attention beside two linear ones, and experts."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.linear, self.gated, self.moe = FlashAttention(0), LinearAttention(), GatedAttention(), Router()

    def forward(self, x: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        x = x + self.linear(x) + self.gated(x)
        o, _, cache = self.attn(hidden_states=x, past_key_values=cache)
        return x + o + self.moe(x), cache
