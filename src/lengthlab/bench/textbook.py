"""The paper's seven architectures as a reader would write them in PyTorch: what the engine is measured against.

Nothing here comes from `lengthlab.models`, and nothing is spared: every position is computed to the logits.

Shapes: B samples, T tokens, D width, H heads, C = D / H channels of a head, F = C / 2 pairs of them, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ONE_LSTM = ("lstm", "attention-on-lstm", "lstm-on-attention", "parallel", "hybrid-block", "sandwich")


class SelfAttention(nn.Module):
    """Causal multi-head attention with rotary positions; the angles are computed once."""

    def __init__(self, width: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        channels = width // heads
        frequency_F = 10_000.0 ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
        angle_TF = torch.arange(tokens, dtype=torch.float64)[:, None] * frequency_F
        angle_TC = torch.cat((angle_TF, angle_TF), dim=1)
        self.register_buffer("cos_TC", angle_TC.cos().float(), persistent=False)
        self.register_buffer("sin_TC", angle_TC.sin().float(), persistent=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        q_BHTC, k_BHTC, v_BHTC = (self._split(part_BTD) for part_BTD in self.qkv(x_BTD).chunk(3, dim=-1))
        mixed_BHTC = F.scaled_dot_product_attention(self._turn(q_BHTC), self._turn(k_BHTC), v_BHTC, is_causal=True)
        out_BTD: Tensor = self.out(mixed_BHTC.transpose(1, 2).flatten(2))
        return out_BTD

    def _split(self, x_BTD: Tensor) -> Tensor:
        return x_BTD.view(*x_BTD.shape[:2], self.heads, -1).transpose(1, 2)

    def _turn(self, x_BHTC: Tensor) -> Tensor:
        tokens = x_BHTC.shape[2]
        low, high = x_BHTC.chunk(2, dim=-1)
        turned_BHTC = torch.cat((-high, low), dim=-1)
        return x_BHTC * self.get_buffer("cos_TC")[:tokens] + turned_BHTC * self.get_buffer("sin_TC")[:tokens]


class Block(nn.Module):
    """A post-LayerNorm transformer block, or its norms alone."""

    def __init__(self, width: int, heads: int, mlp: int, tokens: int, off: bool) -> None:
        super().__init__()
        self.attend = None if off else SelfAttention(width, heads, tokens)
        self.norm_1 = nn.LayerNorm(width)
        inner = mlp * width
        self.mlp = None if off else nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm_2 = nn.LayerNorm(width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.norm_1(x_BTD if self.attend is None else x_BTD + self.attend(x_BTD))
        out_BTD: Tensor = self.norm_2(x_BTD if self.mlp is None else x_BTD + self.mlp(x_BTD))
        return out_BTD


class Textbook(nn.Module):
    """An architecture of the paper by its name. `off` is for the first phase of delayed training: the whole
    attention part is skipped (`part`), or all of it but its norms (`sublayers`).

    >>> network = Textbook("sandwich", vocabulary=20, width=8, blocks=2, heads=2, mlp=4, tokens=30)
    >>> network(torch.zeros(3, 30, dtype=torch.long)).shape
    torch.Size([3, 30, 20])
    """

    def __init__(
        self,
        kind: str,
        vocabulary: int,
        width: int,
        blocks: int,
        heads: int,
        mlp: int,
        tokens: int,
        off: str | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.skips = kind, off == "part"
        self.embedding = nn.Embedding(vocabulary, width)
        if kind in ONE_LSTM:
            self.lstm = nn.LSTM(width, width, batch_first=True)
        if kind == "hybrid-block":
            self.norm = nn.LayerNorm(width)
        if kind != "lstm" and not self.skips:
            self.attention = nn.Sequential(*(Block(width, heads, mlp, tokens, off is not None) for _ in range(blocks)))
        if kind == "sandwich":
            self.last = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        logits_BTV: Tensor = self.head(self._mix(self.embedding(tokens_BT)))
        return logits_BTV

    def _mix(self, x_BTD: Tensor) -> Tensor:
        if self.kind == "transformer":
            return self._attend(x_BTD)
        if self.kind == "lstm-on-attention":
            return self._recur(self._attend(x_BTD))
        state_BTD = self._recur(x_BTD)
        if self.kind == "lstm":
            return state_BTD
        if self.kind == "parallel":
            return state_BTD if self.skips else state_BTD + self._attend(x_BTD)
        if self.kind == "hybrid-block":
            return self._attend(self.norm(x_BTD + state_BTD))
        out_BTD = self._attend(state_BTD)
        return self.last(out_BTD)[0] if self.kind == "sandwich" else out_BTD

    def _recur(self, x_BTD: Tensor) -> Tensor:
        state_BTD: Tensor = self.lstm(x_BTD)[0]
        return state_BTD

    def _attend(self, x_BTD: Tensor) -> Tensor:
        return x_BTD if self.skips else self.attention(x_BTD)
